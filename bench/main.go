// Command bench does the same work with refreshd and with its peers, in turns on one Redis, and writes a table of the medians.
//
//	go run . [--rounds 5] [--models 20000] [--write ../docs/performance.md]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// run is the work that each contender does once, on an empty Redis: n models are due at once, each is handed to a worker that does nothing,
// and is then due again in an hour. What it takes to save them first does not count.
type run func(ctx context.Context, s *server, n int) (result, error)

type contender struct {
	name, version string
	run           run
}

func main() {
	rounds := flag.Int("rounds", 5, "how often each does the work")
	models := flag.Int("models", 20_000, "how many models")
	program := flag.String("server", "redis-server", "redis-server or valkey-server")
	write := flag.String("write", "", "file whose table is replaced")
	flag.Parse()
	if err := measure(context.Background(), *program, *rounds, *models, *write); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, program string, rounds, models int, write string) error {
	dir, err := os.MkdirTemp("", "refreshd-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r, err := startServer(ctx, program, dir)
	if err != nil {
		return err
	}
	defer r.stop()
	contenders, err := enter(ctx, dir)
	if err != nil {
		return err
	}
	results := make(map[string][]result)
	for round := range rounds {
		for _, c := range contenders {
			if err := r.client.FlushAll(ctx).Err(); err != nil {
				return err
			}
			one, err := c.run(ctx, r, models)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", c.name, round+1, err)
			}
			fmt.Fprintf(os.Stderr, "%d/%d  %-34s %7.0f cycles/s %7.1f µs of Redis\n", round+1, rounds, c.name, one.perSecond, one.redisMicros)
			results[c.name] = append(results[c.name], one)
		}
	}
	table := render(r, contenders, results, rounds, models)
	if write == "" {
		_, err := fmt.Print(table)
		return err
	}
	return replaceTable(write, table)
}

// enter builds what has to be built. A peer whose program is not installed does not take part, and that is said.
func enter(ctx context.Context, dir string) ([]contender, error) {
	refreshd := filepath.Join(dir, "refreshd")
	build := exec.CommandContext(ctx, "go", "build", "-o", refreshd, "./cmd/refreshd")
	build.Dir = ".."
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build refreshd: %w\n%s", err, output)
	}
	all := []contender{
		{"refreshd", "this tree", bySelf(refreshd)},
		{"refreshd, 4 dispatchers, 4 pollers", "this tree", bySelf(refreshd, "--dispatchers", "4", "--pollers", "4")},
		{"refreshd, no history, no journal", "this tree", bySelf(refreshd, "--history-cap", "0", "--journal-cap", "0")},
		{"bare pipelines", "", barePipelines},
		{"asynq", moduleVersion("github.com/hibiken/asynq"), asynqCycles},
	}
	bullmq, version, err := enterBullMQ(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: BullMQ does not take part:", err)
		return all, nil
	}
	return append(all, contender{"BullMQ", version, bullmq}), nil
}

// payload is what each job carries beside its name.
func payload(n int) string {
	url := fmt.Sprintf("https://feeds.example.com/tbl_%09d/", n)
	return `{"big_table_uid":"` + uid(n) + `","input_url":"` + url + strings.Repeat("x", 100-len(url)) + `"}`
}

func uid(n int) string { return fmt.Sprintf("tbl_%09d", n) }
