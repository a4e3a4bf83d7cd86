package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/model"
)

// Pass is the cost of refreshing all models once.
type Pass struct {
	Cycles     int
	Took       time.Duration // from the first start to the last applied result
	Redis      time.Duration // CPU time
	RedisKnown bool
	Daemons    time.Duration // CPU time, including their start
}

// Drain starts the daemons and workers, waits until every model was refreshed once, and stops them.
func (b *Bench) Drain(ctx context.Context, plan Plan) (pass Pass, err error) {
	pass.Cycles = plan.Models
	done, err := b.successes(ctx)
	if err != nil {
		return pass, err
	}
	before, err := b.Store.Report().Server(ctx)
	if err != nil {
		return pass, err
	}
	working, stopWorking := context.WithCancel(ctx)
	var workers sync.WaitGroup
	failed := make(chan error, plan.Workers)
	began := make(chan time.Time, plan.Workers)
	for range plan.Workers {
		workers.Go(func() { failed <- b.work(working, began) })
	}
	stop, err := plan.Start()
	if err == nil {
		if err = await(ctx, failed, func() (bool, error) {
			found, err := b.successes(ctx)
			return found >= done+plan.Models, err
		}); err == nil {
			pass.Took = b.Now().Sub(<-began)
		}
		busy, stopErr := stop()
		pass.Daemons, err = busy, errors.Join(err, stopErr)
	}
	stopWorking()
	workers.Wait()
	if err != nil {
		return pass, err
	}
	after, err := b.Store.Report().Server(ctx)
	sys, known := used(before, after, "used_cpu_sys")
	user, _ := used(before, after, "used_cpu_user")
	pass.Redis, pass.RedisKnown = time.Duration((sys+user)*float64(time.Second)), known
	return pass, err
}

func (b *Bench) successes(ctx context.Context) (int, error) {
	stats, err := report.Of(b.Store).Stats(ctx)
	return int(stats.Counters[string(model.EventSuccess)]), err
}

// await waits until a condition holds, or a worker has failed.
func await(ctx context.Context, failed <-chan error, holds func() (bool, error)) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if yes, err := holds(); yes || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case err := <-failed:
			return fmt.Errorf("work: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

const popped = 500

// work pops attempts and pushes a success for each, until ctx ends. It sends the time of the first one.
func (b *Bench) work(ctx context.Context, began chan<- time.Time) error {
	for first := true; ctx.Err() == nil; {
		entries, err := b.popBlocking(ctx)
		if err == nil {
			if first {
				first = false
				began <- b.Now()
			}
			err = b.Redis.RPush(ctx, b.Store.Keys.Output, results(entries)...).Err()
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func results(entries []string) []any {
	messages := make([]any, len(entries))
	for i, text := range entries {
		uid, attempt := uidsOf(text)
		messages[i] = `{"type":"success","big_table_uid":"` + uid + `","refresh_attempt_uid":"` + attempt + `"}`
	}
	return messages
}

func uidsOf(text string) (uid, attempt string) {
	var entry struct {
		UID     string `json:"big_table_uid"`
		Attempt string `json:"refresh_attempt_uid"`
	}
	_ = json.Unmarshal([]byte(text), &entry) // written by the dispatcher
	return entry.UID, entry.Attempt
}
