// Command bench does the same work with refreshd and with its peers, in turns on one Redis or on two, and writes a table of the medians.
//
//	go run . [--rounds 5] [--models 20000] [--write ../docs/performance.md]
//	go run . --models 2000 --hosts 20 [--at-a-time 4] [--work 50ms] [--now]
//	go run . --models 2000 --rate 200 [--hosts 20 --at-a-time 2 --work 110ms]
//
// The first line measures plain cycles. The second one has models of hosts, of each of which no more than so many attempts may run at a time: all
// are due at once, or none is, and somebody asks for all to run now. In the third one they become due one after the other, so many a second.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// run is the work that each contender does once, on an empty Redis: n models are due at once, each is handed to a worker that does nothing,
// and is then due again in an hour. What it takes to save them first does not count.
type run func(ctx context.Context, s *server, n int) (result, error)

type contender struct {
	name, version string
	run           run
}

type plan struct {
	rounds, models int
	server, write  string
	load           load
}

func main() {
	var p plan
	flag.IntVar(&p.rounds, "rounds", 5, "how often each does the work")
	flag.IntVar(&p.models, "models", 20_000, "how many models")
	flag.StringVar(&p.server, "server", "redis-server", "redis-server or valkey-server")
	flag.StringVar(&p.write, "write", "", "file whose table is replaced")
	flag.IntVar(&p.load.hosts, "hosts", 0, "how many hosts the models are of, each with a limit; 0: nothing is limited")
	flag.IntVar(&p.load.atATime, "at-a-time", 4, "with --hosts: how many attempts of a host may run")
	flag.DurationVar(&p.load.work, "work", 50*time.Millisecond, "with --hosts: how long an attempt takes")
	flag.BoolVar(&p.load.now, "now", false, "with --hosts: no model is due, and all are asked for")
	flag.IntVar(&p.load.rate, "rate", 0, "how many models become due a second, one after the other; 0: all at once")
	flag.Parse()
	if p.load.now && (p.load.hosts == 0 || p.load.rate > 0) {
		fmt.Fprintln(os.Stderr, "bench: --now: expected --hosts, and no --rate")
		os.Exit(2)
	}
	if err := p.measure(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (p plan) measure(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "refreshd-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r, err := startServer(ctx, p.server, dir)
	if err != nil {
		return err
	}
	defer r.stop()
	contenders, err := p.enter(ctx, dir)
	if err != nil {
		return err
	}
	results := make(map[string][]result)
	for round := range p.rounds {
		for _, c := range contenders {
			if err := r.client.FlushAll(ctx).Err(); err != nil {
				return err
			}
			one, err := c.run(ctx, r, p.models)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", c.name, round+1, err)
			}
			fmt.Fprintf(os.Stderr, "%d/%d  %-34s %7.0f/s %7.1f µs of Redis\n", round+1, p.rounds, c.name, one.perSecond, one.redisMicros)
			results[c.name] = append(results[c.name], one)
		}
	}
	table := p.load.table(p.models)
	if p.load.none() {
		table = cyclesTable(p.models)
	}
	rendered := table.render(r, contenders, results, p.rounds)
	if p.write == "" {
		_, err := fmt.Print(rendered)
		return err
	}
	return table.replace(p.write, rendered)
}

// enter builds what has to be built. A peer whose program is not installed does not take part, and the table says so.
func (p plan) enter(ctx context.Context, dir string) ([]contender, error) {
	refreshd := filepath.Join(dir, "refreshd")
	build := exec.CommandContext(ctx, "go", "build", "-o", refreshd, "./cmd/refreshd")
	build.Dir = ".."
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build refreshd: %w\n%s", err, output)
	}
	all, bullmq := p.load.contenders(dir, refreshd)
	if p.load.none() {
		all, bullmq = p.contenders(dir, refreshd)
	}
	version, err := installBullMQ(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: BullMQ does not take part:", err)
		return all, nil
	}
	return append(all, contender{"BullMQ", version, bullmq}), nil
}

func (p plan) contenders(dir, refreshd string) (all []contender, bullmq run) {
	peer := moduleVersion("github.com/hibiken/asynq")
	return []contender{
		{"refreshd", "this tree", bySelf(refreshd)},
		{"refreshd, 4 dispatchers, 4 pollers", "this tree", bySelf(refreshd, "--dispatchers", "4", "--pollers", "4")},
		{"refreshd, no history, no journal", "this tree", bySelf(refreshd, "--history-cap", "0", "--journal-cap", "0")},
		{"refreshd, two parts, two Redis", "this tree", p.onTwo(dir, refreshdParts(refreshd), "--cluster-enabled", "yes")},
		{"bare pipelines", "", barePipelines},
		{"asynq", peer, asynqCycles},
		{"asynq, two queues, two Redis", peer, p.onTwo(dir, asynqQueues)},
	}, bullmqCycles(dir)
}

// contenders bear a load. By default asynq looks at an empty queue once a second. Where that decides, it takes part a second time.
func (l load) contenders(dir, refreshd string) (all []contender, bullmq run) {
	peer, bears := moduleVersion("github.com/hibiken/asynq"), l.once
	if !l.asked() {
		bears = l.twice
	}
	all = []contender{{"refreshd", "this tree", bears(bySelfLoad(refreshd))}, {"asynq", peer, bears(asynqLoad(0))}}
	if l.asked() {
		all = append(all, contender{"asynq, looks every 10 ms", peer, bears(asynqLoad(10 * time.Millisecond))})
	}
	if l.hosts == 0 {
		all = append(all, contender{"bare pipelines", "", bears(barePipeline)})
	}
	return all, bears(bullmqLoad(dir))
}

// feeds is the host of all models where there are no limits.
const feeds = "feeds.example.com"

func payload(n int, host string) string {
	return `{"big_table_uid":"` + uid(n) + `","input_url":"` + address(n, host) + `"}`
}

func address(n int, host string) string {
	url := "https://" + host + "/" + uid(n) + "/"
	return url + strings.Repeat("x", 100-len(url))
}

const uidPrefix = "tbl_"

func uid(n int) string { return fmt.Sprintf(uidPrefix+"%09d", n) }
