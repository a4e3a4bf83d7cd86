package dashboard

import (
	"time"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/model/document"
)

// period is how far back charts go.
type period struct {
	name  string // in the address
	text  string
	step  time.Duration // of a slot
	slots int
}

// periods begin with the default.
var periods = []period{
	{"", "Hour", time.Minute, 60}, {"24h", "24 hours", time.Hour, 24},
	{"7d", "7 days", 3 * time.Hour, 56}, {"90d", "90 days", 24 * time.Hour, 90},
}

func findPeriod(name string) (*period, error) {
	for i := range periods {
		if periods[i].name == name {
			return &periods[i], nil
		}
	}
	return nil, document.Refuse("period", "24h, 7d, 90d or none", document.Found(name))
}

// slot has counts of a part of a period, and levels: the highest input and wait, otherwise the last one; -1: unknown.
type slot struct {
	from   time.Time
	values [report.Metrics]int64
}

// fill makes the slots of a period that ends at now. The difference between two samples counts in the slot of the first one. A slot without a sample
// is unknown, and so are its counts if the next sample is beyond the next slot, or is smaller: somebody has reset the counters.
func (p *period) fill(samples []report.Sample, now time.Time) []slot {
	slots := make([]slot, p.slots)
	first := now.Truncate(p.step).Add(-time.Duration(p.slots-1) * p.step)
	at := func(one report.Sample) int { return int(one.At.Sub(first) / p.step) }
	for i := range slots {
		slots[i].from = first.Add(time.Duration(i) * p.step)
		for m := range slots[i].values {
			slots[i].values[m] = -1
		}
	}
	for i, one := range samples {
		if one.At.Before(first) || at(one) >= p.slots {
			continue
		}
		next := samples[min(i+1, len(samples)-1)]
		slots[at(one)].add(&one, &next, at(next) <= at(one)+1)
	}
	return slots
}

// add adds the levels of a sample, and the counts until the next one.
func (s *slot) add(one, next *report.Sample, near bool) {
	begins := s.values[report.MetricModels] < 0
	for m := range report.MetricModels {
		near = near && next.Values[m] >= one.Values[m]
	}
	for m := range report.Metrics {
		switch value := &s.values[m]; {
		case m == report.MetricInput || m == report.MetricWait:
			*value = max(*value, one.Values[m])
		case !m.Counts():
			*value = one.Values[m]
		case !near || !begins && *value < 0:
			*value = -1
		default:
			*value = max(0, *value) + next.Values[m] - one.Values[m]
		}
	}
}

func total(slots []slot, m report.Metric) (sum int64) {
	for i := range slots {
		sum += max(0, slots[i].values[m])
	}
	return sum
}
