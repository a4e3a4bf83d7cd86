package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

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

// bySelfLoad says the limit in a policy. One dispatcher and one poller are processes; the workers, one for each attempt that is handed out, know
// two lists and JSON.
func bySelfLoad(program string) keep {
	return func(ctx context.Context, s *server, book *ledger) (r result, err error) {
		keys, err := store.NewKeys("bigtables")
		if err != nil {
			return r, err
		}
		d := daemons{program: program, url: "redis://" + s.addr}
		if err := d.saveFor(ctx, book); err != nil {
			return r, err
		}
		ctx, stop := context.WithCancelCause(ctx)
		var working sync.WaitGroup
		working.Go(func() { stop(takeAttempts(ctx, s.client, keys, book)) })
		begin := func() error { return d.start(stop, "dispatcher", "poller") }
		if book.asked() { // the daemons live before the first is to start
			if err = begin(); err == nil {
				begin, err = prepare(ctx, s.client, keys, book)
			}
		}
		if err == nil {
			r, err = around(ctx, book.n, func() error { return book.all(ctx, begin) }, s)
		}
		stop(nil)
		working.Wait()
		d.end()
		return r, err
	}
}

// prepare waits for a dispatcher and a poller, and returns what makes the models start: nothing but time, or a command for each.
func prepare(ctx context.Context, client *redis.Client, keys store.Keys, book *ledger) (begin func() error, err error) {
	for alive := int64(0); alive < 2 && err == nil; time.Sleep(20 * time.Millisecond) {
		alive = min(client.ZCard(ctx, keys.Dispatchers).Val(), 1) + min(client.ZCard(ctx, keys.Pollers).Val(), 1)
		err = context.Cause(ctx)
	}
	if book.now {
		run := func(i int) error { return client.RPush(ctx, keys.Control, `{"type":"run","uid":"`+uid(i)+`"}`).Err() }
		return func() error { return book.ask(run) }, err
	}
	return func() error { return nil }, cmp.Or(err, pace(ctx, client, keys, book))
}

// pace makes each model due at its time, and returns when the first is. No rule has such times: they are whole seconds.
func pace(ctx context.Context, client *redis.Client, keys store.Keys, book *ledger) error {
	book.from = time.Now().Add(time.Second + time.Duration(book.n)*100*time.Microsecond).Truncate(time.Millisecond)
	defer func() { time.Sleep(time.Until(book.from)) }()
	return eachBatch(ctx, client, book.n, func(pipe redis.Pipeliner, i int) {
		due := book.from.Add(book.after(i))
		pipe.HSet(ctx, keys.Model(uid(i)), "refresh_at", model.FormatTime(due))
		pipe.ZAdd(ctx, keys.Due, redis.Z{Score: float64(due.UnixMilli()), Member: uid(i)})
	})
}

// takeAttempts begins each attempt when it is handed out, until ctx ends.
func takeAttempts(ctx context.Context, client *redis.Client, keys store.Keys, book *ledger) error {
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
			}
			if err := json.Unmarshal([]byte(text), &entry); err != nil {
				return fmt.Errorf("read attempt %s: %w", text, err)
			}
			working.Go(func() {
				book.do(entry.UID)
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
