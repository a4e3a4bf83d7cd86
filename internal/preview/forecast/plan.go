package forecast

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
)

// Plan has the phase of each model.
type Plan struct {
	// Before and After count the planned refreshes of the period, as they come now and under the plan: equally many.
	Before, After *Counts
	// Moved is how many models get another phase.
	Moved int
	// Models is how many may be moved.
	Models int

	step  time.Duration
	moves map[groupKey]map[uint64]uint16 // the slots of the moved models
}

// Plan chooses the phases, those of the rules with the most starts first. Each rule fills the valleys that are left. As many models as possible keep
// their phase, so that planning again moves little. A plan that is no better moves nothing.
func (l *Leveller) Plan() *Plan {
	p := &Plan{Before: l.Before, step: l.step, moves: map[groupKey]map[uint64]uint16{}}
	p.After = &Counts{From: l.Before.From, PerMinute: slices.Clone(l.fixed.PerMinute)}
	groups := slices.DeleteFunc(slices.Collect(maps.Values(l.groups)), func(g *group) bool { return g == nil })
	slices.SortFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(len(b.times)*b.size(), len(a.times)*a.size()), cmp.Compare(a.key.text, b.key.text),
			cmp.Compare(a.key.timezone, b.key.timezone), cmp.Compare(a.key.dtstart, b.key.dtstart), cmp.Compare(a.key.spread, b.key.spread))
	})
	for _, g := range groups {
		p.Models += g.size()
		quotas := l.fill(g, p.After)
		for slot, models := range quotas {
			if models == 0 {
				continue
			}
			for _, at := range g.times {
				shifted := time.Unix(at, 0).Add(time.Duration(slot) * l.step)
				l.bins[l.bin(shifted.Unix())] += models
				p.After.addAnyway(shifted, models)
			}
		}
		p.moves[g.key] = g.move(quotas)
		p.Moved += len(p.moves[g.key])
	}
	if p.After.Most() > p.Before.Most() || p.After.uneven() >= p.Before.uneven() {
		p.After, p.Moved, p.moves = p.Before, 0, nil
	}
	return p
}

// fill returns how many models of a group get each slot. One after another they get the slot whose fullest minute, and then whose fullest step, is
// emptiest.
func (l *Leveller) fill(g *group, counts *Counts) (quotas []int) {
	quotas = make([]int, g.slots)
	valleys := make([]valley, 0, g.slots) // as the groups before it have left them
	for _, slot := range g.spaced() {
		phase := time.Duration(slot) * l.step
		v := valley{slot: slot, phase: int(phase / time.Minute), have: len(g.have[slot])}
		for _, at := range g.times {
			shifted := time.Unix(at, 0).Add(phase)
			v.step = max(v.step, l.bins[l.bin(shifted.Unix())])
			if i := counts.minute(shifted); i < len(counts.PerMinute) {
				v.minute = max(v.minute, counts.PerMinute[i])
			}
		}
		valleys = append(valleys, v)
	}
	for range g.size() {
		lowest := &valleys[0]
		for i := range valleys {
			if valleys[i].below(lowest) {
				lowest = &valleys[i]
			}
		}
		quotas[lowest.slot]++
		lowest.step++
		lowest.have--
		minute := lowest.phase
		for i := range valleys {
			if valleys[i].phase == minute {
				valleys[i].minute++
			}
		}
	}
	return quotas
}

type valley struct {
	slot         int
	phase        int // in whole minutes: slots that share it share their minutes
	minute, step int // starts in the fullest minute, and in the fullest step
	have         int // models of the group that have it and may keep it
}

// below reports whether a valley is deeper than another, or equal and used already.
func (v *valley) below(other *valley) bool {
	switch {
	case v.minute != other.minute:
		return v.minute < other.minute
	case v.step != other.step:
		return v.step < other.step
	default:
		return v.have > 0 && other.have <= 0
	}
}

// spaced lists the slots so that neighbours in the list are far apart: by steps of the golden section.
func (g *group) spaced() []int {
	count := g.slots - g.first
	stride := max(1, int(float64(count)*0.618))
	for gcd(stride, count) > 1 {
		stride++
	}
	slots := make([]int, count)
	for i := range slots {
		slots[i] = g.first + i*stride%count
	}
	return slots
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// move gives free phases to the models that cannot keep theirs, those of one host far apart.
func (g *group) move(quotas []int) map[uint64]uint16 {
	free := slices.Clone(quotas)
	movers := slices.Clone(g.rest)
	for slot, ids := range g.have {
		slices.Sort(ids)
		keep := min(len(ids), quotas[slot])
		free[slot] -= keep
		movers = append(movers, hostsInTurn(ids)[keep:]...)
	}
	slices.Sort(movers)
	moves := make(map[uint64]uint16, len(movers))
	for len(movers) > 0 {
		for _, slot := range g.spaced() {
			if free[slot] > 0 {
				free[slot]--
				moves[movers[0]], movers = uint16(slot), movers[1:]
			}
		}
	}
	return moves
}

// hostsInTurn orders models, sorted by host: the first one of each host, then the second ones.
func hostsInTurn(ids []uint64) []uint64 {
	var turns [][]uint64 // the first of each host, and so on
	turn := 0
	for i, id := range ids {
		if turn++; i == 0 || ids[i-1]>>32 != id>>32 {
			turn = 0
		}
		if turn == len(turns) {
			turns = append(turns, nil)
		}
		turns[turn] = append(turns[turn], id)
	}
	return slices.Concat(turns...)
}

// Phase is the phase of a model under the plan: the one that it has, unless it was added to the leveller and is to be moved.
func (p *Plan) Phase(m *model.Model) time.Duration {
	if m.Schedule == nil {
		return m.Phase
	}
	slot, moves := p.moves[groupKey{ruleOf(m), m.Policy.Spread}][idOf(m)]
	if !moves {
		return m.Phase
	}
	return time.Duration(slot) * p.step
}
