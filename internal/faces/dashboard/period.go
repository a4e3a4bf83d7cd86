package dashboard

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/document"
)

// period is how far back charts go.
type period struct {
	name  string // in the address
	text  string
	parts string        // how slots are called
	step  time.Duration // of a slot
	slots int
}

// periods begin with the one that is shown if nobody asks for another. Its samples are those of this process, the others are of the hours that
// dispatchers note.
var periods = []period{
	{"", "Hour", "minutes", time.Minute, 60}, {"24h", "24 hours", "hours", time.Hour, 24},
	{"7d", "7 days", "parts of 3 hours", 3 * time.Hour, 56}, {"90d", "90 days", "days", 24 * time.Hour, 90},
}

func findPeriod(name string) (*period, error) {
	for i := range periods {
		if periods[i].name == name {
			return &periods[i], nil
		}
	}
	return nil, document.Refuse("period", "24h, 7d, 90d or none", document.Found(name))
}

// samples are those of the period, the oldest first; the last is of now.
func (p *period) samples(ctx context.Context, req *request, now store.Sample) (all []store.Sample, err error) {
	if p.name == "" {
		all = req.sampler.all()
	} else if all, err = req.queue.Report().Hours(ctx); err != nil {
		return nil, err
	}
	return append(all, now), nil
}

// slot is what was counted in a part of a period, and what was held: the most that waited, and else the last that is known.
type slot struct {
	from    time.Time
	values  [store.Metrics]int64
	held    bool // values of what was held are known
	counted bool // values of what was counted are known
}

// fill makes the slots of a period that ends at now. What was counted between two samples counts in the slot of the first one. In a slot without a
// sample nothing is known. Nor is what was counted in a slot whose next sample is farther away than in the next slot, or has counted less: somebody has
// reset the counters.
func (p *period) fill(samples []store.Sample, now time.Time) []slot {
	slots := make([]slot, p.slots)
	first := now.Truncate(p.step).Add(-time.Duration(p.slots-1) * p.step)
	at := func(one store.Sample) int { return int(one.At.Sub(first) / p.step) }
	for i := range slots {
		slots[i].from = first.Add(time.Duration(i) * p.step)
	}
	for i, one := range samples {
		if one.At.Before(first) || at(one) >= p.slots {
			continue
		}
		here := &slots[at(one)]
		begins := !here.held
		here.counted, here.held = begins || here.counted, true
		for m := store.MetricModels; m < store.Metrics; m++ {
			if (m == store.MetricInput || m == store.MetricWait) && here.values[m] > one.Values[m] {
				continue
			}
			here.values[m] = one.Values[m]
		}
		if i+1 < len(samples) {
			here.count(&one, &samples[i+1], at(samples[i+1]) <= at(one)+1)
		}
	}
	return slots
}

func (s *slot) count(from, to *store.Sample, near bool) {
	for m := range store.MetricModels {
		s.counted = s.counted && near && to.Values[m] >= from.Values[m]
		s.values[m] += to.Values[m] - from.Values[m]
	}
}

// value is that of a metric; -1: it is not known.
func (s *slot) value(m store.Metric) int64 {
	if m.Counts() && !s.counted || !s.held {
		return -1
	}
	return s.values[m]
}

// known says of how many slots anything is known, unless it is all of them.
func (p *period) known(slots []slot) string {
	known := 0
	for i := range slots {
		if slots[i].counted {
			known++
		}
	}
	if known == len(slots) {
		return ""
	}
	return fmt.Sprintf("Of %d %s, %d are known.", p.slots, p.parts, known)
}

// total sums up what was counted, and most is the most of what was held.
func total(slots []slot, m store.Metric) (total, most int64) {
	for i := range slots {
		if value := slots[i].value(m); value > 0 {
			total, most = total+value, max(most, value)
		}
	}
	return total, most
}
