package store

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// Transition is one decided change of one model, with what must still hold when it is committed.
type Transition struct {
	uid, rev, attemptUID string // as read
	decision             model.Decision
	queueCircuit         model.QueueCircuit
	newRev               string   // empty: it stays
	before, after        values   // of the fields of the hash; nil: they stay
	others               []string // fields of the hash that go
	payload              string   // empty: it stays
	policy               []string // name and text of the policy of the definition; nil: it has none of its own
	was                  indexed
	circuit              *policy.Circuit // in force
	wasLabels, isLabels  map[string]string

	// TakeBack is the entry of the attempt that loses its fence, or is changed. If it stands in the input list it is removed, or gives
	// its place to the changed one. Empty: none.
	TakeBack string
}

// Event is what the transition is called in the journal.
func (t *Transition) Event() model.Event { return t.decision.Event }

// UID is the model that the transition is about.
func (t *Transition) UID() string { return t.uid }

// AttemptUID is the attempt that was running when the transition was decided; empty: none.
func (t *Transition) AttemptUID() string { return t.attemptUID }

// Decision is what was decided. It must not be changed.
func (t *Transition) Decision() *model.Decision { return &t.decision }

// Was is what was so of a model before a transition, as far as it can be read.
type Was struct {
	RefreshAt, ProcessingAt time.Time
	Parked, Traced          bool
}

// Was tells what was so before, for those who measure.
func (t *Transition) Was() (w Was) {
	c := codec{get: t.before.of}
	c.time(fieldRefreshAt, &w.RefreshAt)
	c.time("processing_at", &w.ProcessingAt)
	c.flag("traced", &w.Traced)
	w.Parked = t.was.parked != 0
	return w
}

// Attempt is the attempt that a transition at now has started, changed or ended; without a uid: none.
func (t *Transition) Attempt(now time.Time) model.Attempt {
	next := &t.decision.Next
	if t.decision.Ended != nil {
		return *t.decision.Ended
	}
	running, ended := next, time.Time{}
	if !next.Running() && t.attemptUID != "" { // it ends without a record of it
		before := decode(t.uid, t.before)
		running, ended = &before.State, now
	}
	return model.Attempt{
		AttemptUID: running.AttemptUID, AttemptNo: running.AttemptNo, StartedAt: running.StartedAt, EndedAt: ended,
		DeadlineAt: running.DeadlineAt, Worker: running.Worker,
	}
}

// Decide turns a decision about the record into a transition and moves the record on to the state that follows, so that the next message
// of the same batch is decided on top of it.
func (r *Record) Decide(decision model.Decision, now time.Time) *Transition {
	t := &Transition{uid: r.UID, rev: r.rev, attemptUID: r.stored.of(fieldAttemptUID), decision: decision, queueCircuit: r.QueueCircuit, was: indexedAs(&r.State), circuit: r.Policy.Circuit, wasLabels: r.Labels, isLabels: r.Labels}
	if decision.TakesBack() {
		t.TakeBack = r.Entry()
	}
	switch decision.Event {
	case model.EventMend: // the hash stays as it is, also what cannot be read of it
		return t
	case model.EventRemove, model.EventOrphan:
		t.isLabels, t.decision.WasFreshness = nil, r.Freshness
		*r = Record{Model: model.Model{UID: r.UID}, former: r.rev}
		return t
	}
	r.Watch(&t.decision, now)
	if definition := decision.Definition; definition != nil {
		if definition.Payload != r.Payload || !r.Exists {
			t.payload = definition.Payload
		}
		if policy.IsInline(definition.PolicyName) {
			text, _ := json.Marshal(definition.Policy) // its name could be made of its content
			t.policy = []string{definition.PolicyName, string(text)}
		}
		t.isLabels = definition.Labels
		r.Model = *definition
	}
	t.decision.PolicyError, r.RuleError = cmp.Or(t.decision.PolicyError, r.RuleError), ""
	r.State = t.decision.Next
	t.before, t.after, t.others = r.stored, encode(&r.Model), r.others
	if t.before == nil {
		t.before = make(values, len(fieldNames))
	}
	if next := r.nextRev(decision.Event, now); next != r.rev {
		t.newRev, r.rev = next, next
	}
	r.stored, r.others, r.Exists = t.after, nil, true
	return t
}

// Mend writes the due and running sets anew from the state as it was read, for a model that stands in one of them by mistake.
func (r *Record) Mend() *Transition { return r.Decide(r.Model.Mend(), time.Time{}) }

// Leave is Mend, or Remove, of a model that stands in an index by mistake.
func (r *Record) Leave(index Index) *Transition {
	if !r.Exists {
		return r.Remove().Leaving(index)
	}
	return r.Mend().Leaving(index)
}

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

// nextRev counts transitions. A new model starts at the clock, and beyond what the same batch has removed, so that a model removed and put
// again cannot be mistaken for its former self. A status is no transition and must not make one fail.
func (r *Record) nextRev(event model.Event, now time.Time) string {
	rev, err := strconv.ParseInt(r.Rev(), 10, 64)
	switch {
	case err != nil:
		former, _ := strconv.ParseInt(r.former, 10, 64)
		return strconv.FormatInt(max(now.UnixMilli(), former+1), 10)
	case event == model.EventStatus:
		return r.Rev()
	default:
		return strconv.FormatInt(rev+1, 10)
	}
}

// encode encodes the transition for commit.lua; the journal may be told of a create or not.
func (t *Transition) encode(e *encoder, item *Item, now time.Time, config *Config, k *Keys, tellsCreates bool) {
	next, event := &t.decision.Next, t.decision.Event
	e.values = append(e.values, t.uid)
	item.message(e)
	e.addAny("rev", t.rev)
	e.add("attempt", t.attemptUID)
	e.add("push", t.decision.Message)
	e.add("back", t.TakeBack)
	e.flag("must", event == model.EventWithdrawn || t.decision.MustBeQueued)
	e.addList("policy", t.policy...)
	e.addList("unknown", t.others...)
	e.add("due", Millis(next.DueAt()))
	e.add("urgent", Millis(next.UrgentAt()))
	e.add("running", Millis(next.DeadlineAt))
	e.add("payload", t.payload)
	if t.decision.Ended != nil && config.HistoryCap > 0 {
		e.add("history", string(t.decision.Ended.AppendEntry(make([]byte, 0, 256))))
	}
	e.flag("instead", t.decision.Ended != nil && t.decision.Ended.Times > 1)
	if past := t.decision.Past; past != nil {
		past = slices.Clone(past[:min(len(past), max(0, config.HistoryCap))])
		slices.Reverse(past)
		e.addEach("attempts", past)
	}
	e.addNotifications(t, now)
	e.count("keys", item.keys(config))
	t.encodeChanges(e, k, now, config)
	e.flag("remove", t.removes())
	e.flag("ticket", event == model.EventStart)
	e.flag("fenced", event == model.EventStart || event == model.EventParked)
	e.flag("wake", t.decision.NotifiesDispatcher(now))
	entry, journaled := t.decision.Journal(t.uid, now)
	if journaled = journaled && config.JournalCap > 0 && (tellsCreates || !t.creates()); journaled {
		e.word("event=", string(entry.Event))
		c := codec{set: func(name, value string) { e.add("note="+name, value) }}
		c.notes(&entry)
	}
	e.addFields(t, model.FormatTime(now), journaled)
	for _, name := range t.decision.Counters(t.queueCircuit, now) {
		e.word("count=", name)
	}
}

// addFields adds what turns the hash that was read into the one that follows, and in any case why, if that is for the journal.
func (e *encoder) addFields(t *Transition, now string, journaled bool) {
	e.add("field=rev", t.newRev)
	if t.after != nil && len(t.wasLabels)+len(t.isLabels) > 0 { // otherwise the hash stays as it is, or goes
		e.addLabels(t.wasLabels, t.isLabels)
	}
	for i, value := range t.after {
		switch before := t.before[i]; {
		case value == before && (!journaled || value == "" || fieldNames[i] != fieldWhy):
		case value != "" && fieldNames[i] == FieldError: // the script decides it
		case value == "":
			e.word("gone=", fieldNames[i])
		case value == now:
			e.word("now=", fieldNames[i])
		default:
			e.word("field=", fieldNames[i])
			e.values = append(e.values, value)
		}
	}
}

// creates reports whether there was no such model before.
func (t *Transition) creates() bool {
	return t.decision.Event == model.EventCreate || t.decision.Event == model.EventImport && t.rev == ""
}

// removes reports whether the model goes.
func (t *Transition) removes() bool {
	return t.decision.Event == model.EventRemove || t.decision.Event == model.EventOrphan
}

// Revise gives the model a revision, for one that has none.
func (t *Transition) Revise(now time.Time) { t.newRev = Millis(now) }
