package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/refreshd/refreshd/model"
)

// Pass is what it took to refresh all models once.
type Pass struct {
	Cycles    int
	Took      time.Duration // from the first start to the last applied result
	Redis     time.Duration // CPU time
	RedisTold bool
	Daemons   time.Duration // CPU time, that of their start included
}

func (p *Pass) add(more Pass) {
	p.Cycles += more.Cycles
	p.Took += more.Took
	p.Redis += more.Redis
	p.RedisTold = more.RedisTold
	p.Daemons += more.Daemons
}

// look is how often the progress of a pass is looked at.
const look = 5 * time.Millisecond

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
		err = b.awaitSuccesses(ctx, done+plan.Models, failed)
		if err == nil {
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
	sys, told := used(before, after, "used_cpu_sys")
	user, _ := used(before, after, "used_cpu_user")
	pass.Redis, pass.RedisTold = time.Duration((sys+user)*float64(time.Second)), told
	return pass, err
}

func (b *Bench) successes(ctx context.Context) (int, error) {
	stats, err := b.Store.Report().Stats(ctx)
	return int(stats.Counters[string(model.EventSuccess)]), err
}

func (b *Bench) awaitSuccesses(ctx context.Context, want int, failed <-chan error) error {
	return await(ctx, failed, func() (bool, error) {
		found, err := b.successes(ctx)
		return found >= want, err
	})
}

// await looks until a condition holds, or a worker has failed.
func await(ctx context.Context, failed <-chan error, holds func() (bool, error)) error {
	ticker := time.NewTicker(look)
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
