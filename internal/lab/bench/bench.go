// Package bench measures a queue on a real Redis: how many cycles a second it can do, what a cycle costs, and how late it is. A cycle is one
// attempt, from its start to the model that waits for its schedule again. Its workers only pop and push.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
)

// Plan is the plan of a measurement.
type Plan struct {
	// Models in the queue, at least 1.
	Models int
	// Duration is for how long all models are made due and refreshed again; at least one pass is finished.
	Duration time.Duration
	// Workers is how many connections pop attempts and push results, up to 500 at once. At least 1.
	Workers int
	// Paced is how many more models become due, one each millisecond, to measure lateness. 0: none.
	Paced int
	// Start starts the daemons.
	Start func() (Stop, error)
}

// Stop ends the daemons and returns their CPU time.
type Stop func() (busy time.Duration, err error)

// Report is a measurement. A cost is nil if Redis does not report it.
type Report struct {
	Models          int      `json:"models"`
	Cycles          int      `json:"cycles"`
	CyclesPerSecond float64  `json:"cycles_per_second"`
	RedisCPU        *float64 `json:"redis_cpu_us_per_cycle"`
	DaemonCPU       float64  `json:"daemon_cpu_us_per_cycle"`
	BytesPerModel   *float64 `json:"bytes_per_model"`
	StartLateness   *Spread  `json:"start_lateness_ms"`
	ApplyLateness   *Spread  `json:"apply_lateness_ms"`
	RedisVersion    string   `json:"redis_version"`
}

// Spread summarizes durations, in milliseconds.
type Spread struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// NewSpread sums up lengths of time; nil: there are none.
func NewSpread(all []time.Duration) *Spread {
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	ms := func(share float64) float64 {
		return float64(all[int(share*float64(len(all)-1))].Microseconds()) / 1000
	}
	return &Spread{ms(0.50), ms(0.99), ms(1)}
}

// Bench measures one queue. Nothing else may use the Redis meanwhile.
type Bench struct {
	Store *store.Store
	Redis redis.UniversalClient
	Now   func() time.Time
}

// Run fills the queue, measures as planned, and removes all keys of the queue again.
func (b *Bench) Run(ctx context.Context, plan Plan) (report Report, err error) {
	defer func() {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, b.Store.Report().Clear(ctx), b.Redis.Del(ctx, b.Store.Keys.Settings).Err())
	}()
	// A new queue has no layout. Raising it would walk over all models within the measurement.
	if err := b.Redis.HSet(ctx, b.Store.Keys.Settings, "layout", store.Layout).Err(); err != nil {
		return report, err
	}
	if err := b.putPolicy(ctx); err != nil {
		return report, err
	}
	if err := b.fill(ctx, plan, &report); err != nil {
		return report, err
	}
	if err := b.passes(ctx, plan, &report); err != nil || plan.Paced == 0 {
		return report, err
	}
	late, err := b.Paced(ctx, plan, plan.Models)
	report.StartLateness, report.ApplyLateness = NewSpread(late.Starts), NewSpread(late.Applied)
	return report, err
}

// fill saves all models, and measures their memory without the journal, whose length does not depend on them.
func (b *Bench) fill(ctx context.Context, plan Plan, report *Report) error {
	before, err := b.Store.Report().Server(ctx)
	if err != nil {
		return err
	}
	report.Models, report.RedisVersion = plan.Models, before["redis_version"]
	if err := b.Fill(ctx, 0, plan.Models, AtOnce); err != nil {
		return err
	}
	filled, err := b.Store.Report().Server(ctx)
	if err != nil {
		return err
	}
	if bytes, known := used(before, filled, "used_memory"); known {
		journal, _ := b.Redis.MemoryUsage(ctx, b.Store.Keys.Journal, 0).Result() // none is 0
		report.BytesPerModel = new((bytes - float64(journal)) / float64(plan.Models))
	}
	return nil
}

// passes makes all models due and lets them be refreshed, until the time is over.
func (b *Bench) passes(ctx context.Context, plan Plan, report *Report) error {
	var total Pass
	for began := b.Now(); ; {
		pass, err := b.Drain(ctx, plan)
		if err != nil {
			return err
		}
		total.Cycles += pass.Cycles
		total.Took += pass.Took
		total.Redis += pass.Redis
		total.RedisKnown = pass.RedisKnown
		total.Daemons += pass.Daemons
		if b.Now().Sub(began) >= plan.Duration {
			break
		}
		if err := b.Fill(ctx, 0, plan.Models, AtOnce); err != nil {
			return err
		}
	}
	report.Cycles = total.Cycles
	cycles := float64(total.Cycles)
	report.CyclesPerSecond = cycles / total.Took.Seconds()
	report.DaemonCPU = float64(total.Daemons.Microseconds()) / cycles
	if total.RedisKnown {
		report.RedisCPU = new(float64(total.Redis.Microseconds()) / cycles)
	}
	return nil
}

// used returns by how much a number of Redis has grown; false: Redis does not report it.
func used(before, after store.Server, field string) (float64, bool) {
	var a, b float64
	_, errA := fmt.Sscan(before[field], &a)
	_, errB := fmt.Sscan(after[field], &b)
	return b - a, errA == nil && errB == nil
}
