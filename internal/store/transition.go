package store

import (
	"cmp"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// Transition is one decided change of one model, with its conditions when it is committed.
type Transition struct {
	uid, rev, attemptUID string // as read
	decision             model.Decision
	queueCircuit         model.QueueCircuit
	newRev               string   // empty: it stays
	before, after        values   // of the fields of the hash; nil: they stay
	others               []string // fields of the hash that go
	payload              string   // empty: it stays
	policy               []string // name and text of the policy of the definition; nil: it has none of its own
	was                  standing
	circuit              *policy.Circuit // in force
	wasLabels, isLabels  map[string]string
	stray                string // set of a label that has the model by mistake

	// TakeBack is the entry to remove from the input list, or to replace by the changed one; empty: none.
	TakeBack string
}

// Event is the name of the transition in the journal.
func (t *Transition) Event() model.Event { return t.decision.Event }

// UID is the model that the transition is about.
func (t *Transition) UID() string { return t.uid }

// AttemptUID is the attempt that was running when the transition was decided; empty: none.
func (t *Transition) AttemptUID() string { return t.attemptUID }

// Decision returns the decision. It must not be changed.
func (t *Transition) Decision() *model.Decision { return &t.decision }

// Prior is a model before a transition, as far as it can be read.
type Prior struct {
	RefreshAt, ProcessingAt time.Time
	Parked, Traced          bool
}

// Prior returns the model before the transition, for those who measure.
func (t *Transition) Prior() (w Prior) {
	c := codec{get: t.before.of}
	c.time(fieldRefreshAt, &w.RefreshAt)
	c.time("processing_at", &w.ProcessingAt)
	c.flag("traced", &w.Traced)
	w.Parked = t.was.at("parked") != 0
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

// Frees lists the keys of limits that get a place back, as an attempt ends.
func (t *Transition) Frees() []string {
	if t.decision.Next.Counted != "" && !t.removes() {
		return nil
	}
	return model.CountedBy(t.was.counted, model.BlockerLimit)
}

// Awaited is when dispatchers have to look at the model again that a transition at now has changed; zero: never.
func (t *Transition) Awaited(now time.Time) []time.Time {
	is := &t.decision.Next
	scores := is.Scores()
	switch {
	case t.decision.Event == model.EventMend:
		return []time.Time{now} // it may be anywhere
	case !scores.Parked.IsZero():
		return []time.Time{cmp.Or(t.decision.Recheck, now), scores.StaleAt}
	}
	return []time.Time{scores.Due, scores.Urgent, is.ExpiresAt(), scores.StaleAt}
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
func (t *Transition) Revise(now time.Time) { t.newRev = redis.Millis(now) }
