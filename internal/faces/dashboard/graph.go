package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// graph is a small picture of an hour, with what it shows in words.
type graph struct {
	About         string
	Most          string // what the top of the picture stands for; its bottom is 0
	Width, Height int
	Bars          []bar
	Line          string // points
	Legend        []key
}

type bar struct {
	Class               string
	X, Y, Width, Height string
}

type key struct{ Class, Text string }

// minutes is how many of them a graph shows.
const minutes = int(kept / time.Minute)

const (
	minuteWidth = 10 // of the picture, in its own units
	graphHeight = 100
)

// perMinute are how often something was counted in each of the last minutes; the last one goes on.
type perMinute [minutes]int64

// rates are the rates of all counters. What was counted between two samples counts in the minute of the later one.
func rates(samples []sample, now time.Time) (all [len(counted)]perMinute) {
	for i := 1; i < len(samples); i++ {
		at := minuteOf(samples[i].at, now)
		for c := range counted {
			if more := samples[i].counted[c] - samples[i-1].counted[c]; at >= 0 && at < minutes && more > 0 {
				all[c][at] += more
			}
		}
	}
	return all
}

// minuteOf is the number of the minute in which an instant lies; less than 0: before all of them.
func minuteOf(at, now time.Time) int {
	return minutes - 1 - int(now.Truncate(time.Minute).Sub(at.Truncate(time.Minute))/time.Minute)
}

// line draws the greatest value of each minute. A minute without a sample has no point.
func line(samples []sample, now time.Time, value func(sample) float64) (points string, most float64) {
	var values [minutes]float64
	var known [minutes]bool
	for _, one := range samples {
		if at := minuteOf(one.at, now); at >= 0 && at < minutes {
			values[at], known[at] = max(values[at], value(one)), true
			most = max(most, values[at])
		}
	}
	var text []string
	for m, value := range values {
		if known[m] {
			text = append(text, fmt.Sprintf("%d,%s", m*minuteWidth+minuteWidth/2, number(graphHeight-value/max(most, 1)*(graphHeight-2))))
		}
	}
	return strings.Join(text, " "), most
}

func number(value float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") }

func newGraph(about string) graph {
	return graph{About: about, Width: minutes * minuteWidth, Height: graphHeight}
}

// stack draws columns of which each is made of stacked parts. The highest one is as high as the picture.
func (g *graph) stack(classes []string, stacks ...perMinute) {
	most := int64(1)
	for m := range minutes {
		sum := int64(0)
		for _, stack := range stacks {
			sum += stack[m]
		}
		most = max(most, sum)
	}
	for m := range minutes {
		bottom := float64(graphHeight)
		for i, class := range classes {
			if height := float64(stacks[i][m]) / float64(most) * graphHeight; height > 0 {
				bottom -= height
				g.Bars = append(g.Bars, bar{class, fmt.Sprint(m*minuteWidth + 1), number(bottom), fmt.Sprint(minuteWidth - 2), number(height)})
			}
		}
	}
	g.Most = fmt.Sprint(most)
}

func (p perMinute) total() (total int64) {
	for _, count := range p {
		total += count
	}
	return total
}

// last is that of the last full minute.
func (p perMinute) last() int64 { return p[minutes-2] }

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
