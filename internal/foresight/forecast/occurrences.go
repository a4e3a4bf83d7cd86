package forecast

import (
	"cmp"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

// rule is the text of a schedule. Models that share it share their occurrences.
type rule struct{ text, timezone, dtstart string }

func ruleOf(m *model.Model) rule {
	return rule{cmp.Or(m.Rule, m.Policy.Rule), m.Zone(), cmp.Or(m.Dtstart, m.Policy.Anchor())}
}

// occurrences are those of a schedule in a period: the last one that has begun before it, if there is one, all within it, and the first one
// behind it, if there is one. So whatever is shifted into the period, and how far, follows from them.
type occurrences struct {
	times    []int64       // Unix seconds, in rising order
	ends     bool          // nothing comes behind the last of times
	shortest time.Duration // distance between two of them; 0: there are not two
}

// each hands over the occurrences whose shift may bring them behind an instant, each as it is and as it is shifted, until visit returns false.
func (o *occurrences) each(after time.Time, spread schedule.Spread, visit func(at, shifted time.Time) bool) {
	first, _ := slices.BinarySearch(o.times, after.Unix()+1)
	for i := max(0, first-1); i < len(o.times); i++ {
		at, distance, found := time.Unix(o.times[i], 0).UTC(), time.Duration(0), i+1 < len(o.times)
		if found {
			distance = time.Duration(o.times[i+1]-o.times[i]) * time.Second
		} else if !o.ends {
			return
		}
		if !visit(at, at.Add(spread.Shift(distance, found))) {
			return
		}
	}
}

// memory keeps the occurrences of rules that were asked for lately, each evaluated once.
type memory struct {
	from, to time.Time
	known    map[rule]*occurrences
	kept     int                                 // instants
	recent   map[*schedule.Schedule]*occurrences // the same, found in a tenth of the time
}

// maxKept bounds the instants that are kept: 32 MB. More than that are forgotten, and evaluated again. maxRecent bounds the schedules.
const (
	maxKept   = 4_000_000
	maxRecent = 4096
)

func (k *memory) of(m *model.Model) *occurrences {
	o := k.recent[m.Schedule]
	if o == nil {
		if o = k.find(m); len(k.recent) >= maxRecent || k.recent == nil {
			k.recent = map[*schedule.Schedule]*occurrences{}
		}
		k.recent[m.Schedule] = o
	}
	return o
}

func (k *memory) find(m *model.Model) *occurrences {
	r := ruleOf(m)
	if o := k.known[r]; o != nil {
		return o
	}
	o := &occurrences{}
	at, found, err := m.Schedule.Begun(k.from)
	if found && err == nil {
		o.times = append(o.times, at.Unix())
	}
	for at = k.from; at.Before(k.to) && !o.ends; {
		if at, found, err = m.Schedule.Evaluate(at); found && err == nil {
			o.times = append(o.times, at.Unix())
		} else {
			o.ends = true // what takes too many steps to evaluate ends there
		}
	}
	for i := 1; i < len(o.times); i++ {
		if distance := time.Duration(o.times[i]-o.times[i-1]) * time.Second; o.shortest == 0 || distance < o.shortest {
			o.shortest = distance
		}
	}
	if k.kept += len(o.times) + 20; k.known == nil || k.kept > maxKept {
		k.known, k.kept = map[rule]*occurrences{}, len(o.times)+20
	}
	k.known[r] = o
	return o
}
