package scripts

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
)

// Transition is one decided change of one model, with what must still hold when it is committed.
type Transition struct {
	uid, rev, attemptUID string // as read
	decision             model.Decision
	brake                model.Brake
	set, deleted         []string // fields of the hash: with values, and without
	payload              string   // empty: it stays
	use                  []string // of inline policies, as policyUse tells it

	// TakeBack is the entry of the attempt that loses its fence, or is changed. If it stands in the input list it is removed, or gives
	// its place to the changed one. Empty: none.
	TakeBack string
}

// Event is what the transition is called in the journal.
func (t *Transition) Event() model.Event { return t.decision.Event }

// UID is the model that the transition is about.
func (t *Transition) UID() string { return t.uid }

// Decide turns a decision about the record into a transition and moves the record on to the state that follows, so that the next message
// of the same batch is decided on top of it.
func (r *Record) Decide(decision model.Decision, now time.Time) *Transition {
	t := &Transition{uid: r.UID, rev: r.Rev(), attemptUID: r.hash[fieldAttemptUID], decision: decision, brake: r.Brake}
	if decision.TakesBack() {
		t.TakeBack = r.Entry()
	}
	switch decision.Event {
	case model.EventMend: // the hash stays as it is, also what cannot be read of it
		return t
	case model.EventRemove, model.EventOrphan:
		t.use = policyUse(r.PolicyName, &model.Model{})
		*r = Record{Model: model.Model{UID: r.UID}}
		return t
	}
	if definition := decision.Definition; definition != nil {
		if definition.Payload != r.Payload || !r.Exists {
			t.payload = definition.Payload
		}
		t.use = policyUse(r.PolicyName, definition)
		r.Model = *definition
	}
	t.decision.PolicyError, r.RuleError = cmp.Or(t.decision.PolicyError, r.RuleError), ""
	r.State = decision.Next
	after := encode(&r.Model)
	after[fieldRev] = r.nextRev(decision.Event, now)
	t.set, t.deleted = difference(r.hash, after)
	r.hash, r.Exists = after, true
	return t
}

// Mend writes the due and running sets anew from the state as it was read, for a model that stands in one of them by mistake.
func (r *Record) Mend() *Transition { return r.Decide(r.Model.Mend(), time.Time{}) }

// Remove turns the end of a model into a transition: its keys go, and it is forgotten in both sets. So does what is left of a model
// that is not stored.
func (r *Record) Remove() *Transition {
	event := model.EventRemove
	if !r.Exists {
		event = model.EventOrphan
	}
	return r.Decide(model.Decision{Event: event}, time.Time{})
}

// OrphanEnd is the transition that removes what is left of a model that is not stored, from both sets too.
func OrphanEnd(uid string) *Transition {
	return (&Record{Model: model.Model{UID: uid}}).Remove()
}

// nextRev counts transitions. A new model starts at the clock, so that a model removed and put again cannot be mistaken for its former
// self. A status is no transition and must not make one fail.
func (r *Record) nextRev(event model.Event, now time.Time) string {
	rev, err := strconv.ParseInt(r.Rev(), 10, 64)
	switch {
	case err != nil:
		return millis(now)
	case event == model.EventStatus:
		return r.Rev()
	default:
		return strconv.FormatInt(rev+1, 10)
	}
}

// difference lists what turns one hash into the other: fields with values to set, and fields to delete.
func difference(before, after map[string]string) (set, deleted []string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			set = append(set, name, after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[name]; !kept {
			deleted = append(deleted, name)
		}
	}
	return set, deleted
}

// arguments appends what commit.lua is told of the transition.
func (t *Transition) arguments(args []any, message Claimed, now time.Time) []any {
	op := "set"
	if t.decision.Event == model.EventRemove || t.decision.Event == model.EventOrphan {
		op = "remove"
	}
	next := &t.decision.Next
	args = appendList(append(args, op, t.uid, message.Entry), t.decision.Counters(t.brake, now))
	args = append(args, t.rev, t.attemptUID, t.decision.Message, t.TakeBack, flag(t.decision.Event == model.EventWithdrawn),
		millis(next.DueAt()), millis(next.DeadlineAt), t.payload, t.historyEntry(), flag(t.decision.WakesDispatcher(now)))
	for _, list := range [][]string{t.set, t.deleted, t.journalEntry(now), t.notification(now), t.use} {
		args = appendList(args, list)
	}
	return args
}

// appendList appends a list behind its length.
func appendList(args []any, list []string) []any {
	args = append(args, len(list))
	for _, item := range list {
		args = append(args, item)
	}
	return args
}

// historyEntry is the ended attempt as JSON; empty: none ended.
func (t *Transition) historyEntry() string {
	if t.decision.Ended == nil {
		return ""
	}
	text, _ := json.Marshal(t.decision.Ended) // texts and numbers only
	return string(text)
}
