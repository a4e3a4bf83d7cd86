package dashboard

import (
	"context"
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
	late    time.Duration // how long the model waits that is due for longest
}

// sampler keeps the samples of an hour. It is safe for concurrent use.
type sampler struct {
	mu      sync.Mutex
	samples []sample // guarded by mu: oldest first
}

func (s *sampler) add(one sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := 0
	for old < len(s.samples) && one.at.Sub(s.samples[old].at) > kept {
		old++
	}
	if last := len(s.samples) - 1; last >= 0 && !one.at.After(s.samples[last].at) {
		old = len(s.samples) // the clock has been set back: what was before tells no rates
	}
	s.samples = append(s.samples[old:], one)
}

func (s *sampler) all() []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sample{}, s.samples...)
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
	stats, err := site.queue.Report().Gauges(ctx)
	if err != nil {
		return err
	}
	one := sample{at: stats.At, line: stats.Input, late: waits(&stats)}
	for i, name := range counted {
		one.counted[i] = stats.Counters[name]
	}
	site.sampler.add(one)
	return nil
}

// waits is how long the model waits that is due for longest; 0: none is due.
func waits(g *store.Gauges) time.Duration {
	if g.OldestDue.IsZero() {
		return 0
	}
	return g.At.Sub(g.OldestDue)
}
