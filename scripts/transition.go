package scripts

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

//go:embed apply-transitions.lua
var applyTransitionsSource string

var applyTransitions = redis.NewScript(applyTransitionsSource)

// Code is what a script answers for one item of a batch. A refusal is a result, not an error.
type Code int

// The codes of all scripts.
const (
	CodeApplied  Code = 1 // done
	CodeConflict Code = 2 // the model has changed since it was read: read again and decide again
	CodeGone     Code = 3 // the message is not claimed any more: somebody else has handled it
	CodeTaken    Code = 4 // the attempt to withdraw is not queued any more: a worker has taken it
	CodeFull     Code = 5 // the input list has reached the high-water mark
	CodeBroken   Code = 6 // the key of the model holds something else
)

func (c Code) String() string {
	names := map[Code]string{CodeApplied: "applied", CodeConflict: "conflict", CodeGone: "gone", CodeTaken: "taken", CodeFull: "full", CodeBroken: "broken"}
	if name, known := names[c]; known {
		return name
	}
	return "code " + strconv.Itoa(int(c))
}

// Transition is one decided change of one model, with what must still hold when it is applied.
type Transition struct {
	uid, rev, attemptUID string // as read
	remove               bool
	set, deleted         []string
	dueAt, deadlineAt    time.Time
	payload              string
	decision             model.Decision
	brake                model.Brake

	// Claimed is the claimed message that this transition answers; both change together or not at all. Empty: none.
	Claimed string
	// TakeBack is an entry of the input list that must still stand there and is removed. Empty: none.
	TakeBack string
}

// Decide turns a decision about the record into a transition and moves the record on to the state that follows, so that
// the next message of the same batch is decided on top of it.
func (r *Record) Decide(decision model.Decision, now time.Time) *Transition {
	if decision.Event == model.EventRemove {
		return r.Remove()
	}
	t := &Transition{uid: r.UID, rev: r.Rev(), attemptUID: r.AttemptUID, decision: decision, brake: r.Brake}
	if decision.Definition != nil {
		if decision.Definition.Payload != r.Payload || !r.Exists {
			t.payload = decision.Definition.Payload
		}
		r.Model = *decision.Definition
	}
	r.State = decision.Next
	after := encode(&r.Model)
	after[fieldRev] = r.nextRev(decision.Event, now)
	t.set, t.deleted = difference(r.hash, after)
	r.hash, r.Exists = after, true
	t.index(&r.State)
	return t
}

// index derives the scores in the due and running sets from the state: nothing else may set them.
func (t *Transition) index(state *model.State) {
	if state.Waiting() {
		t.dueAt = state.RefreshAt
	}
	t.deadlineAt = state.DeadlineAt
}

// Mend writes the due and running sets anew from the state as it was read, for a model that stands in one of them by
// mistake. It is no transition: it is not counted, and nobody's decision fails by it.
func (r *Record) Mend() *Transition {
	t := &Transition{uid: r.UID, rev: r.Rev(), attemptUID: r.AttemptUID}
	t.decision.Event = eventMend
	t.index(&r.State)
	return t
}

// nextRev counts transitions. A new model starts at the clock, so that a model removed and put again cannot be mistaken for
// its former self. A status is no transition and must not make one fail.
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

const (
	eventOrphan model.Event = "orphan" // the end of a uid that stood in a set without a model
	eventMend   model.Event = "mend"   // sets written anew; neither counted nor journaled
)

// Remove turns the end of a model into a transition: its keys go, and it is forgotten in both sets.
func (r *Record) Remove() *Transition {
	t := &Transition{uid: r.UID, rev: r.Rev(), attemptUID: r.hash[fieldAttemptUID], remove: true}
	t.decision.Event = model.EventRemove
	if !r.Exists {
		t.decision.Event = eventOrphan
	}
	*r = Record{Model: model.Model{UID: r.UID}}
	return t
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

// Apply runs transitions decided at now, in order, in one script: one code for each. owner names the claimed list that the
// Claimed messages stand in; maxQueued is the high-water mark of the input list. An error means that it is unknown whether
// the batch was applied: read again and decide again, which is safe.
func (s *Store) Apply(ctx context.Context, transitions []*Transition, owner string, maxQueued int, now time.Time) ([]Code, error) {
	if len(transitions) == 0 {
		return nil, nil
	}
	k := s.Keys
	keys := []string{k.Due(), k.Running(), k.Input(), k.Claimed(owner), k.Journal(), k.Outbox(), k.Stats(), k.Wake()}
	args := []any{maxQueued, s.config.JournalCap, s.config.HistoryCap}
	for _, t := range transitions {
		keys = append(keys, k.Model(t.uid), k.Payload(t.uid), k.History(t.uid))
		args = t.arguments(args, now)
	}
	codes, err := runCodes(ctx, s.clients.Write, applyTransitions, keys, args)
	if err == nil && len(codes) != len(transitions) {
		err = fmt.Errorf("expected %d codes, found %d", len(transitions), len(codes))
	}
	if err != nil {
		return nil, fmt.Errorf("apply transitions: %w", err)
	}
	return codes, nil
}

// wakeWithin is how soon something must happen for a sleeping dispatcher to be called: it looks by itself once a second.
const wakeWithin = time.Second

func (t *Transition) arguments(args []any, now time.Time) []any {
	op, wake := "set", ""
	if t.remove {
		op = "remove"
	}
	next := t.dueAt
	if next.IsZero() {
		next = t.deadlineAt
	}
	if !next.IsZero() && next.Before(now.Add(wakeWithin)) && t.decision.Event != model.EventStart {
		wake = "1"
	}
	args = append(args, op, t.uid, t.rev, t.attemptUID, t.Claimed, t.decision.Message, t.TakeBack,
		millis(t.dueAt), millis(t.deadlineAt), t.payload, t.historyEntry(), wake)
	for _, list := range [][]string{t.set, t.deleted, t.journalEntry(now), t.notice(now), t.counters(now)} {
		args = append(args, len(list))
		for _, item := range list {
			args = append(args, item)
		}
	}
	return args
}

// runCodes runs a script that answers with one code per item.
func runCodes(ctx context.Context, client redis.UniversalClient, script *redis.Script, keys []string, args []any) ([]Code, error) {
	replies, err := script.Run(ctx, client, keys, args...).Int64Slice()
	if err != nil {
		return nil, err
	}
	codes := make([]Code, len(replies))
	for i, reply := range replies {
		codes[i] = Code(reply)
	}
	return codes, nil
}

// historyEntry is the ended attempt as JSON; empty: none ended.
func (t *Transition) historyEntry() string {
	if t.decision.Ended == nil {
		return ""
	}
	text, _ := json.Marshal(t.decision.Ended) // texts and numbers only
	return string(text)
}
