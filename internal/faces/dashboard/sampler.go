package dashboard

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/store"
)

// kept is how long samples are kept.
const kept = time.Hour

// sampler keeps the samples of an hour. It is safe for concurrent use.
type sampler struct {
	mu      sync.Mutex
	samples []store.Sample // guarded by mu: oldest first
}

func (s *sampler) add(one store.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = slices.DeleteFunc(s.samples, func(old store.Sample) bool { return one.At.Sub(old.At) > kept })
	if last := len(s.samples) - 1; last >= 0 && !one.At.After(s.samples[last].At) {
		s.samples = nil // the clock has been set back: older samples give no rates
	}
	s.samples = append(s.samples, one)
}

func (s *sampler) all() []store.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.samples)
}

// sample reads the counters of a queue until ctx ends. A reading that fails leaves a gap.
func (d *Dashboard) sample(ctx context.Context, site *site) {
	ticker := time.NewTicker(d.config.Sample)
	defer ticker.Stop()
	for ctx.Err() == nil {
		ended := site.observe()
		if err := takeSample(ctx, site); ctx.Err() == nil {
			ended(err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// sampleTime bounds a sample: a loop of which no round ends for 15 s counts as stuck, and while Redis hangs none is to be restarted.
const sampleTime = 10 * time.Second

func takeSample(ctx context.Context, site *site) error {
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	stats, err := site.queue.Report().Stats(ctx)
	if err == nil {
		site.sampler.add(stats.Sample())
	}
	return err
}
