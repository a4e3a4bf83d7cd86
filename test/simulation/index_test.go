package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model"
)

// checkIndexes checks that what stands in the sets beside the models is what their hashes say.
func (s *snapshot) checkIndexes(steers bool) {
	want := steered{
		failing: map[string]float64{}, disabled: map[string]float64{}, parked: map[string]float64{},
		ages: map[string]float64{}, late: map[string]float64{}, stale: map[string]float64{}, errors: map[string]float64{},
		parkedBy: map[string]map[string]float64{}, labels: map[string][]string{},
	}
	for _, uid := range slices.Sorted(maps.Keys(s.models)) {
		m := parse(uid, s.models[uid], "")
		if !m.FailingSince.IsZero() {
			want.failing[uid] = float64(m.FailingSince.UnixMilli())
		}
		if m.Disabled {
			want.disabled[uid] = float64(m.DisabledAt.UnixMilli())
		}
		if m.Parked() {
			at, gate := float64(m.RefreshAt.UnixMilli()), string(m.ParkedBy)
			want.parked[uid] = at
			if want.parkedBy[gate] == nil {
				want.parkedBy[gate] = map[string]float64{}
			}
			want.parkedBy[gate][uid] = at
		}
		want.growOld(m)
		if m.FingerprintID != "" {
			want.errors[m.FingerprintID]++
		}
		for _, term := range model.LabelTerms(m.Labels) {
			want.labels[term] = append(want.labels[term], uid)
		}
	}
	for gate := range want.parkedBy {
		_, known := s.gates[gate]
		failIf(!known, "%v wait for the gate %s, and nobody will look at it", want.parkedBy[gate], gate)
	}
	for name, state := range s.circuits {
		_, known := s.gates[string(model.NewBlocker(model.BlockerCircuit, name))]
		failIf(state["opened_at"] != "" && !known, "the circuit of %s is open, and people are not told: %v", name, s.gates)
	}
	pairs := [][3]any{{"failing", want.failing, s.failing}, {"disabled", want.disabled, s.disabled}, {"parked", want.parked, s.parked},
		{"stale_at", want.ages, s.ages}, {"late", want.late, s.late}, {"stale", want.stale, s.stale}, {"errors", want.errors, s.errors}}
	if steers {
		pairs = append(pairs, [3]any{"parked by gate", want.parkedBy, s.parkedBy}, [3]any{"labels", want.labels, s.labels})
	}
	for _, pair := range pairs {
		models, index := fmt.Sprint(pair[1]), fmt.Sprint(pair[2])
		failIf(models != index, "in the index %s stands %s, the models say %s", pair[0], index, models)
	}
}

// checkKeys checks that each key counts the running attempts that say so, and nothing else.
func (s *snapshot) checkKeys() {
	counted := map[string]map[string]float64{}
	for uid, hash := range s.models {
		m := parse(uid, hash, "")
		failIf(m.Counted != "" && !m.Running(), "%s does not run, and is counted by %s", uid, m.Counted)
		for _, name := range model.CountedBy(m.Counted, model.BlockerLimit) {
			if counted[name] == nil {
				counted[name] = map[string]float64{}
			}
			counted[name][uid] = float64(m.DeadlineAt.UnixMilli())
		}
	}
	for _, name := range keyNames {
		is := maps.Clone(s.keys[name])
		for uid, deadline := range counted[name] {
			got, found := is[uid]
			failIf(!found || got != deadline, "the key %s counts %s until %s%v, want until %v", name, uid, digits(int(got)), found, deadline)
			delete(is, uid)
		}
		failIf(len(is) > 0, "the key %s counts what does not run: %v", name, is)
	}
	s.checkProbes()
}

// checkProbes checks that each probe is a running attempt that its circuit counts: only the end of that settles it.
func (s *snapshot) checkProbes() {
	for name, state := range s.circuits {
		probe := state["probe"]
		if probe == "" {
			continue
		}
		counted := strings.Fields(s.models[probe]["counted_by"])
		switch {
		case state["opened_at"] == "":
			fail("%s tries the circuit of %s, which is closed", probe, name)
		case !slices.Contains(counted, string(model.NewBlocker(model.BlockerCircuit, name))):
			fail("%s is to try the circuit of %s, but it is no running model of that: %v", probe, name, s.models[probe])
		}
	}
}
