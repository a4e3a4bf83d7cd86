package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
)

// bySelfLimits says the limit in a policy. One dispatcher and one poller are processes; the workers, one for each attempt that is handed out, know
// two lists and JSON.
func bySelfLimits(program string) keep {
	return func(ctx context.Context, s *server, l limits, n int) (seen, result, error) {
		d := daemons{program: program, url: "redis://" + s.addr}
		policy := fmt.Sprintf(`{"name":"bench","rrule":"FREQ=DAILY","timeout":"10m","limits":[{"key":"{host(input_url)}","running":%d}]}`, l.atATime)
		if err := d.save(ctx, policy, "now", n, func(i int) string { return l.host(i, n) }); err != nil {
			return seen{}, result{}, err
		}
		book := newLedger(l, n)
		ctx, stop := context.WithCancelCause(ctx)
		var working sync.WaitGroup
		working.Go(func() { stop(takeAttempts(ctx, s.client, book)) })
		r, err := around(ctx, n, func() error {
			for _, name := range []string{"dispatcher", "poller"} {
				if err := d.start(name, stop); err != nil {
					return err
				}
			}
			select {
			case <-book.finished:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}, s)
		stop(nil)
		working.Wait()
		d.end()
		return book.seen, r, err
	}
}

// takeAttempts begins each attempt when it is handed out, until ctx ends.
func takeAttempts(ctx context.Context, client *redis.Client, book *ledger) error {
	keys, err := store.NewKeys("bigtables")
	if err != nil {
		return err
	}
	results := make(chan string, 500)
	var working, pushing sync.WaitGroup
	pushing.Go(func() { pushResults(context.WithoutCancel(ctx), client, keys.Output, results) })
	defer pushing.Wait()
	defer close(results)
	defer working.Wait()
	for ctx.Err() == nil {
		_, entries, err := client.BLMPop(ctx, time.Second, "LEFT", 500, keys.Input).Result()
		if err != nil && !errors.Is(err, redis.Nil) && ctx.Err() == nil {
			return fmt.Errorf("take attempts: %w", err)
		}
		for _, text := range entries {
			var entry struct {
				UID     string `json:"big_table_uid"`
				Attempt string `json:"refresh_attempt_uid"`
				URL     string `json:"input_url"`
			}
			if err := json.Unmarshal([]byte(text), &entry); err != nil {
				return fmt.Errorf("read attempt %s: %w", text, err)
			}
			at, err := url.Parse(entry.URL)
			if err != nil {
				return err
			}
			working.Go(func() {
				book.do(at.Host)
				results <- `{"type":"success","big_table_uid":"` + entry.UID + `","refresh_attempt_uid":"` + entry.Attempt + `"}`
			})
		}
	}
	return nil
}

// pushResults pushes results until there are no more, those together that have come meanwhile.
func pushResults(ctx context.Context, client *redis.Client, key string, results <-chan string) {
	for first := range results {
		together := []any{first}
		for len(results) > 0 {
			together = append(together, <-results)
		}
		client.RPush(ctx, key, together...)
	}
}

type daemons struct {
	program, url string
	running      []*exec.Cmd
	waiting      sync.WaitGroup
}

// save saves a policy and n models, which are refreshed now or as planned.
func (d *daemons) save(ctx context.Context, policy, refresh string, n int, host func(i int) string) error {
	if err := d.say(ctx, policy, "policy", "put", "-"); err != nil {
		return err
	}
	if err := d.walk(ctx); err != nil {
		return err
	}
	var models strings.Builder
	for i := range n {
		fmt.Fprintf(&models, `{"uid":"%s","policy":"bench","refresh":"%s","payload":{"input_url":"%s"}}`+"\n", uid(i), refresh, address(i, host(i)))
	}
	return d.say(ctx, models.String(), "model", "put", "-", "--format", "jsonl")
}

// walk lets a poller walk over all models, of which there is none yet, as it does when a policy was saved.
func (d *daemons) walk(ctx context.Context) error {
	queue, clients, err := store.Dial(ctx, d.url, store.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = clients.Close() }()
	poller := daemons{program: d.program, url: d.url}
	defer poller.end()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err = poller.start("poller", stop)
	for open := 1; err == nil && open > 0; time.Sleep(100 * time.Millisecond) {
		open = 0
		err = queue.Each(func(part *store.Store) error {
			bulks, err := flow.Of(part).Bulks(ctx)
			open += len(bulks)
			return err
		})
	}
	return err
}

func (d *daemons) say(ctx context.Context, input string, args ...string) error {
	command := exec.CommandContext(ctx, d.program, append(args, "--redis", d.url)...)
	command.Stdin = strings.NewReader(input)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("refreshd %s %s: %w: %s", args[0], args[1], err, output)
	}
	return nil
}

// start starts a daemon, and calls stop if it ends by itself.
func (d *daemons) start(name string, stop context.CancelCauseFunc) error {
	var complaint strings.Builder
	daemon := exec.Command(d.program, name, "--redis", d.url, "--log-level", "error")
	daemon.Stderr = &complaint
	if err := daemon.Start(); err != nil {
		return fmt.Errorf("start a %s: %w", name, err)
	}
	d.running = append(d.running, daemon)
	d.waiting.Go(func() {
		_ = daemon.Wait() // its state says the same
		stop(fmt.Errorf("%s ended: %s: %s", name, daemon.ProcessState, &complaint))
	})
	return nil
}

// end ends all and returns for how long they kept processors busy.
func (d *daemons) end() (busy time.Duration) {
	for _, daemon := range d.running {
		_ = daemon.Process.Signal(syscall.SIGTERM)
	}
	d.waiting.Wait()
	for _, daemon := range d.running {
		busy += daemon.ProcessState.UserTime() + daemon.ProcessState.SystemTime()
	}
	return busy
}

func bySelf(program string, flags ...string) run {
	return func(ctx context.Context, s *server, n int) (result, error) {
		args := append([]string{"bench", "--redis", "redis://" + s.addr, "--models", strconv.Itoa(n), "--paced", "0", "-o", "json"}, flags...)
		output, err := exec.CommandContext(ctx, program, args...).Output()
		if err != nil {
			return result{}, fmt.Errorf("refreshd bench: %w", err)
		}
		var report struct {
			PerSecond   float64 `json:"cycles_per_second"`
			RedisMicros float64 `json:"redis_cpu_us_per_cycle"`
			Micros      float64 `json:"daemon_cpu_us_per_cycle"`
		}
		err = json.Unmarshal(output, &report)
		return result{perSecond: report.PerSecond, redisMicros: report.RedisMicros, processMicros: report.Micros}, err
	}
}
