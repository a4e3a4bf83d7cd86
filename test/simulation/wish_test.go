package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// wish is a bulk, and what has come of it.
type wish struct {
	model.Bulk
	started map[string]bool   // models of which an attempt was started since it began
	running map[string]string // attempts that it is to take back, by model
	applied int               // entries of the journal that it has brought about
	changed map[string]bool   // models that these are about
	doubted int               // models that a step was about to change which nobody has ended, and that others have changed since
}

func readWish(hash map[string]string) wish {
	w := wish{Bulk: model.Bulk{
		Action: model.BulkAction(hash["action"]), Force: hash["force"] != "", Reason: hash["reason"], By: hash["by"],
		Since: instant(hash["since"]), Ticket: count(hash["ticket"]),
	}, started: map[string]bool{}, changed: map[string]bool{}}
	w.Selector, _ = model.ParseSelector(hash["selector"])
	return w
}

// wished finds the bulk that an entry carries out; false: none.
func (p *replay) wished(m *model.Model, event model.Event, entry map[string]string) (decision model.Decision, id string, found bool) {
	if m == nil {
		return decision, "", false
	}
	for _, id := range slices.Sorted(maps.Keys(p.oracle.wishes)) {
		w, at := p.oracle.wishes[id], instant(entry["at"])
		if w.By != entry["by"] {
			continue
		}
		decision, outcome, picked := w.Decide(m, m.Status(at, false), at)
		if picked && outcome == model.Applied && says(decision, event, entry) {
			return decision, id, true
		}
	}
	return decision, "", false
}

// grant checks that a bulk which runs a model has started no attempt of it before.
func (p *replay) grant(id, uid string, event model.Event) error {
	if event == model.EventRun && (p.oracle.wishes[id].started[uid] || p.begun[uid]) {
		return fmt.Errorf("the bulk %s runs the model again, though an attempt was started since it began", id)
	}
	p.granted[id]++
	return nil
}

// noteWishes notes bulks that have begun, and what was started since.
func (o *oracle) noteWishes(p *replay) {
	for id, w := range o.wishes {
		w.applied += p.granted[id]
		maps.Copy(w.started, p.begun)
		for _, entry := range p.after.journal {
			if entry["event"] == string(model.EventUpdate) {
				delete(w.running, entry["uid"]) // it may have other labels
			}
			if entry["by"] == w.By {
				w.changed[entry["uid"]] = true
			}
		}
		was, is := p.before.bulks[id], p.after.bulks[id]
		for _, uid := range slices.Compact(slices.Sorted(strings.FieldsSeq(was["trying"]))) {
			if was["step"] != is["step"] && !w.changed[uid] && !slices.Contains(strings.Fields(is["trying"]), uid) {
				w.doubted++
			}
		}
		o.wishes[id] = w
	}
	for id, hash := range p.after.bulks {
		if _, known := o.wishes[id]; !known {
			w := readWish(hash)
			w.noteRunning(p.after)
			o.wishes[id] = w
		}
	}
}

// checkWishes checks that each bulk has counted all models that it has picked, and changed those that it says.
func (o *oracle) checkWishes(before, s *snapshot) error {
	for _, id := range slices.Sorted(maps.Keys(s.bulks)) {
		hash, was := s.bulks[id], before.bulks[id]
		if steps := count(hash["step"]) - count(was["step"]); fmt.Sprint(hash) != fmt.Sprint(was) && hash["since"] == was["since"] && steps != 1 {
			return fmt.Errorf("the bulk %s is moved by %d steps from %v to %v", id, steps, was, hash)
		}
		if err := o.checkTakenBack(id, was, hash); err != nil {
			return err
		}
		picked, done := count(cmp.Or(hash["picked"], "0")), count(cmp.Or(hash["done"], "0"))
		others := 0
		for name, value := range hash {
			if strings.HasPrefix(name, "refused:") || name == "unchanged" || name == "already" {
				others += count(value)
			}
		}
		if picked != done+others || done > o.wishes[id].applied+o.wishes[id].doubted && o.wishes[id].By != "" {
			return fmt.Errorf("the bulk %s counts %d picked, %d done and %d others, and has changed %d: %v", id, picked, done, others, o.wishes[id].applied, hash)
		}
	}
	return nil
}

// wishedFrom is from when on a bulk may take its next step: what runs models waits for a clock that was set back, and for its rate.
func (s *snapshot) wishedFrom(id string) time.Time {
	hash := s.bulks[id]
	if hash["rate"] == "" {
		return instant(hash["since"])
	}
	return instant(cmp.Or(hash["next_at"], hash["since"]))
}

// checkOver checks that every bulk is over, and no model waits for a gate.
func (s *snapshot) checkOver() error {
	if len(s.openBulks)+len(s.parked) > 0 {
		return fmt.Errorf("left are the bulks %v and the parked %v: gates %v", s.openBulks, s.parkedBy, s.gates)
	}
	for id, hash := range s.bulks {
		if hash["ended"] == "" {
			return fmt.Errorf("the bulk %s is not over, and nobody knows of it: %v", id, hash)
		}
	}
	for name, state := range s.circuits {
		if state["probe"] != "" {
			return fmt.Errorf("the circuit of %s is tried for ever: %v", name, state)
		}
	}
	return nil
}
