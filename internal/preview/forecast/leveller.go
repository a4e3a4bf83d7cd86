package forecast

import (
	"hash/fnv"
	"time"

	"github.com/refreshd/refreshd/model"
)

// Leveller chooses phases for models so that their planned refreshes in a period come as evenly as possible. It keeps 8 bytes of each model.
type Leveller struct {
	// Before is how the planned refreshes come now.
	Before *Counts

	now, to time.Time
	within  time.Duration
	step    time.Duration // between two phases
	memory  memory
	fixed   *Counts // of models that keep their times
	bins    []int   // the same by step, from the minute of now on
	groups  map[groupKey]*group
	kept    int // instants in groups
}

// groupKey is common to models that may take each other's phases.
type groupKey struct {
	rule

	spread time.Duration // of their policy
}

type group struct {
	key   groupKey
	times []int64          // the occurrences within the period, Unix seconds
	first int              // the first phase that they may have, in steps: without one, a spread would shift them
	slots int              // the first that they may not have
	have  map[int][]uint64 // models by the phase that they have
	rest  []uint64         // models with a phase that they may not have, or that none has chosen
}

// The bounds of levelling: rules are looked at one by one, and a model with a rule of its own cannot be levelled.
const (
	maxGroups  = 10_000
	finestStep = time.Second
	manySlots  = 60 // phases within the length, about
)

// NewLeveller levels the planned refreshes from now to the end of a period. It moves them by less than within, at least two seconds.
func NewLeveller(now, to time.Time, within time.Duration) *Leveller {
	l := &Leveller{
		Before: NewCounts(now, to), fixed: NewCounts(now, to), now: now, to: to, within: within,
		step:   max(finestStep, (within / manySlots).Truncate(finestStep)),
		memory: memory{from: now, to: to}, groups: map[groupKey]*group{},
	}
	l.bins = make([]int, l.bin(to.Add(within).Unix())+1)
	return l
}

func (l *Leveller) bin(unix int64) int {
	return int((unix - l.Before.From.Unix()) / int64(l.step/time.Second))
}

// Add takes a model into account, and remembers it if it may be moved. Models of one host get phases far apart.
func (l *Leveller) Add(m *model.Model, movable bool) {
	if m.Schedule == nil || m.Disabled {
		return
	}
	g := (*group)(nil)
	if movable {
		g = l.group(m)
	}
	if slot := int(m.Phase / l.step); g != nil && m.Phase%l.step == 0 && slot >= g.first && slot < g.slots {
		g.have[slot] = append(g.have[slot], idOf(m))
	} else if g != nil {
		g.rest = append(g.rest, idOf(m))
	}
	l.memory.planned(m, l.now, func(at, shifted time.Time) bool {
		if !at.Before(l.to) {
			return false
		}
		if !at.After(l.now) {
			return true
		}
		l.Before.addAnyway(shifted, 1)
		if g == nil {
			l.fixed.addAnyway(shifted, 1)
			if bin := l.bin(shifted.Unix()); bin < len(l.bins) {
				l.bins[bin]++
			}
		}
		return true
	})
}

func (l *Leveller) group(m *model.Model) *group {
	key := groupKey{ruleOf(m), m.Policy.Spread}
	if g, known := l.groups[key]; known {
		return g
	}
	if len(l.groups) >= maxGroups || l.kept > maxKept {
		return nil
	}
	o := l.memory.of(m)
	g := &group{key: key, have: map[int][]uint64{}, slots: int((l.within + l.step - 1) / l.step)}
	if o.shortest > 0 {
		g.slots = min(g.slots, int((o.shortest+l.step-1)/l.step))
	}
	if m.Policy.Spread > 0 {
		g.first = 1
	}
	for _, at := range o.times {
		if at > l.now.Unix() && at < l.to.Unix() {
			g.times = append(g.times, at)
		}
	}
	l.kept += len(g.times)
	if len(g.times) == 0 || g.slots < g.first+2 {
		g = nil
	}
	l.groups[key] = g
	return g
}

func (g *group) size() int {
	n := len(g.rest)
	for _, ids := range g.have {
		n += len(ids)
	}
	return n
}

// idOf orders models by host, and those of one host by uid, both by hash: 32 bits each.
func idOf(m *model.Model) uint64 {
	return uint64(hash32(hostOf(m)))<<32 | uint64(hash32(m.UID))
}

func hash32(text string) uint32 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text)) // a hash takes everything
	sum := hash.Sum64()
	return uint32(sum>>32) ^ uint32(sum)
}
