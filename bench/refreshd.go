package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

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
			if err := d.start(stop, "dispatcher", "poller"); err != nil {
				return err
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
