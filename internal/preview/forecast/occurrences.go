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

// occurrences are those of a schedule in a period, with the last one before it and the first one behind it, so that all shifted starts in the period
// follow from them.
type occurrences struct {
	times    []int64       // Unix seconds, in rising order
	ends     bool          // nothing comes behind the last of times
	shortest time.Duration // distance between two of them; 0: there are not two
}

// each visits the occurrences whose shifted time may be after an instant, with the next one if there is one, until visit returns false.
func (o *occurrences) each(after time.Time, visit func(at, next time.Time, found bool) bool) {
	first, _ := slices.BinarySearch(o.times, after.Unix()+1)
	for i := max(0, first-1); i < len(o.times); i++ {
		at, next, found := time.Unix(o.times[i], 0).UTC(), time.Time{}, i+1 < len(o.times)
		if found {
			next = time.Unix(o.times[i+1], 0)
		}
		if !found && !o.ends || !visit(at, next, found) {
			return
		}
	}
}

// memory caches the occurrences of schedules.
type memory struct {
	from, to time.Time
	known    map[*schedule.Schedule]*occurrences
	kept     int // instants
}

// maxKept bounds the cached instants; a schedule counts as 150 more. That is 32 MB.
const maxKept = 4_000_000

func (k *memory) of(m *model.Model) *occurrences {
	if o := k.known[m.Schedule]; o != nil {
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
			o.ends = true // a schedule that takes too many steps ends there
		}
	}
	for i := 1; i < len(o.times); i++ {
		if distance := time.Duration(o.times[i]-o.times[i-1]) * time.Second; o.shortest == 0 || distance < o.shortest {
			o.shortest = distance
		}
	}
	if k.kept += len(o.times) + 150; k.known == nil || k.kept > maxKept {
		k.known, k.kept = map[*schedule.Schedule]*occurrences{}, len(o.times)+150
	}
	k.known[m.Schedule] = o
	return o
}
