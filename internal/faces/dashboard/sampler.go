package dashboard

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// kept is how long samples are kept.
const kept = time.Hour

// counted are the counters of which rates are shown, in the order of sample.counted.
var counted = [...]string{string(model.EventStart), string(model.EventSuccess), string(model.EventFailure), string(model.EventTimeout)}

// sample is what is kept of a queue at one instant.
type sample struct {
	at      time.Time
	counted [len(counted)]int64
	line    int64         // attempts that no worker has taken
	late    time.Duration // how long the oldest due model waits
}

// sampler keeps the samples of an hour. It is safe for concurrent use.
type sampler struct {
	mu      sync.Mutex
	samples []sample // guarded by mu: oldest first
}

func (s *sampler) add(one sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = slices.DeleteFunc(s.samples, func(old sample) bool { return one.at.Sub(old.at) > kept })
	if last := len(s.samples) - 1; last >= 0 && !one.at.After(s.samples[last].at) {
		s.samples = nil // the clock has been set back: older samples give no rates
	}
	s.samples = append(s.samples, one)
}

func (s *sampler) all() []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.samples)
}

// sample reads the counters of a queue until ctx ends. A reading that fails leaves a gap.
func (d *Dashboard) sample(ctx context.Context, site *site) {
	ticker := time.NewTicker(d.config.Sample)
	defer ticker.Stop()
	for ctx.Err() == nil {
		ended := func(error) {}
		if site.observe != nil {
			ended = site.observe()
		}
		if err := takeSample(ctx, site); ctx.Err() == nil {
			ended(err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

func takeSample(ctx context.Context, site *site) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	stats, err := site.queue.Report().Stats(ctx)
	if err != nil {
		return err
	}
	one := sample{at: stats.At, line: stats.Input, late: oldestWait(&stats)}
	for i, name := range counted {
		one.counted[i] = stats.Counters[name]
	}
	site.sampler.add(one)
	return nil
}

// oldestWait is how long the oldest due model waits; 0: none is due.
func oldestWait(s *store.Stats) time.Duration {
	if s.OldestDue.IsZero() {
		return 0
	}
	return s.At.Sub(s.OldestDue)
}
