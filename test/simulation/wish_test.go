package simulation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
			w := wish{Bulk: model.Bulk{
				Action: model.BulkAction(hash["action"]), Force: hash["force"] != "", Reason: hash["reason"], By: hash["by"],
				Since: instant(hash["since"]), Ticket: count(hash["ticket"]),
			}, started: map[string]bool{}, changed: map[string]bool{}}
			w.Selector, _ = model.ParseSelector(hash["selector"])
			w.noteRunning(p.after)
			o.wishes[id] = w
		}
	}
}

// checkWishes checks that each bulk has counted all models that it has picked, and changed those that it says.
func (o *oracle) checkWishes(before, s *snapshot) {
	for _, id := range slices.Sorted(maps.Keys(s.bulks)) {
		hash, was := s.bulks[id], before.bulks[id]
		if steps := count(hash["step"]) - count(was["step"]); fmt.Sprint(hash) != fmt.Sprint(was) && hash["since"] == was["since"] && steps != 1 {
			fail("the bulk %s is moved by %d steps from %v to %v", id, steps, was, hash)
		}
		o.checkTakenBack(id, was, hash)
		picked, done := count(cmp.Or(hash["picked"], "0")), count(cmp.Or(hash["done"], "0"))
		others := 0
		for name, value := range hash {
			if strings.HasPrefix(name, "refused:") || name == "unchanged" || name == "already" {
				others += count(value)
			}
		}
		failIf(picked != done+others || done > o.wishes[id].applied+o.wishes[id].doubted && o.wishes[id].By != "",
			"the bulk %s counts %d picked, %d done and %d others, and has changed %d: %v", id, picked, done, others, o.wishes[id].applied, hash)
	}
}

// checkOver checks that every bulk is over, and no model waits for a gate.
func (s *snapshot) checkOver() {
	failIf(len(s.openBulks)+len(s.parked) > 0, "left are the bulks %v and the parked %v: gates %v", s.openBulks, s.parkedBy, s.gates)
	for id, hash := range s.bulks {
		failIf(hash["ended"] == "", "the bulk %s is not over, and nobody knows of it: %v", id, hash)
	}
	for name, state := range s.circuits {
		failIf(state["probe"] != "", "the circuit of %s is tried for ever: %v", name, state)
	}
}

// cancelHeld does what `refreshd hold --cancel` does when the hold has begun: it takes back what runs of the models that the hold picks.
func (o *operatorRole) cancelHeld(ctx context.Context, hold *model.Hold) error {
	runs := model.SelectStatus + "=" + string(model.StatusRunning)
	selector, err := model.ParseSelector(strings.Trim(hold.Selector.String()+","+runs, ","))
	if err != nil {
		return err
	}
	o.bulks++
	id := "b" + strconv.Itoa(o.bulks)
	_, err = o.server.store.Fleet().BeginBulk(ctx, id, model.Bulk{Action: model.BulkCancel, Selector: selector, By: id, Since: hold.Since})
	return err
}

// noteRunning notes the attempts that a bulk is to take back which begins: those that were started before.
func (w *wish) noteRunning(s *snapshot) {
	if w.Action != model.BulkCancel {
		return
	}
	w.running = map[string]string{}
	for uid, hash := range s.models {
		m := parse(uid, hash, "")
		if m.Running() && m.Ticket <= w.Ticket && w.Selector.Matches(m, model.StatusProcessing) {
			w.running[uid] = m.AttemptUID
		}
	}
}

// checkCancelled checks that an attempt which was taken back as a hold began counts for nothing.
func (p *replay) checkCancelled(m *model.Model, decision model.Decision) {
	if decision.Event != model.EventCancel {
		return
	}
	was, is := m.State, decision.Next
	switch {
	case is.AttemptNo != max(0, was.AttemptNo-1):
		fail("a cancelled attempt counts: it was number %d, the next is behind %d", was.AttemptNo, is.AttemptNo)
	case is.FingerprintID != was.FingerprintID || !is.FailingSince.Equal(was.FailingSince) || is.Disabled || is.TotalRetries != was.TotalRetries:
		fail("a cancelled attempt counts as a failure: %+v", is)
	}
}

// checkTakenBack checks that a bulk that is over has taken back whatever ran when it began, and ran on.
func (o *oracle) checkTakenBack(id string, was, is map[string]string) {
	if was["ended"] != "" || is["ended"] != "done" {
		return
	}
	for uid, attemptUID := range o.wishes[id].running {
		facts := o.attempts[attemptUID]
		failIf(facts.ended == "", "the bulk %s is over, and the attempt %s of %s runs on: %v", id, attemptUID, uid, is)
	}
}

// checkLateResults checks that what comes of an attempt which was superseded is stale.
func (p *replay) checkLateResults() {
	late := 0
	for _, claimed := range p.consumed {
		message, err := model.Wire{}.DecodeMessage([]byte(claimed[1:]))
		if claimed[0] != 'o' || err != nil || message.Type == "" {
			continue
		}
		facts, was, is := p.oracle.attempts[message.AttemptUID], p.before.models[message.UID], p.after.models[message.UID]
		lives := was != nil && is != nil && !p.forgotten[message.UID]
		if facts != nil && facts.model == message.UID && superseded[facts.ended] && lives && was["last_attempt_uid"] != message.AttemptUID {
			late++
		}
	}
	stale := p.after.grown(p.before, "stale")
	failIf(stale < late, "%d results of attempts that were taken back are not counted as stale, but %d: %q", late, stale, p.consumed)
}

// superseded are the events that take the fence from an attempt which nobody has answered.
var superseded = map[model.Event]bool{model.EventCancel: true, model.EventDisable: true, model.EventRun: true}
