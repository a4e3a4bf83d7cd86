package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

// Executor can change models. *Store is one.
type Executor interface {
	Now(ctx context.Context) (time.Time, error)
	Read(ctx context.Context, uids []string, commands []*model.Command) (*Snapshot, error)
	Commit(ctx context.Context, batch Batch) ([]Code, error)
}

// MaxPasses bounds how often Execute decides a command again because its model changed meanwhile.
const MaxPasses = 50

// Decide decides the command with a number on top of what was read and decided before. It returns nil where there is nothing to change, or why the
// command is refused. It is called again if the model has changed meanwhile.
type Decide func(i int, snapshot *Snapshot, now time.Time) (*Transition, error)

// Refusal is why a decision was not committed.
type Refusal struct {
	Code      Code
	WrongType string // the key of another type; empty: the model kept changing
}

func (r *Refusal) Error() string {
	if r.WrongType != "" {
		return r.WrongType
	}
	return fmt.Sprintf("expected the model to stand still for a moment, found it changed %d times", MaxPasses)
}

// Execute reads models, decides a command about each, and commits all decisions in one script. It decides again what changed meanwhile. refused has
// the refusal of each command; nil: it is done. After an error nobody knows which commands were carried out.
func Execute(ctx context.Context, on Executor, commands []*model.Command, decide Decide) (refused []error, err error) {
	e := execution{Executor: on, commands: commands, decide: decide, refused: make([]error, len(commands)), taken: map[string]string{}}
	pending := make([]int, len(commands))
	for i := range pending {
		pending[i] = i
	}
	for pass := 0; len(pending) > 0 && pass < MaxPasses; pass++ {
		if pending, err = e.pass(ctx, pending); err != nil {
			return nil, err
		}
	}
	for _, i := range pending {
		e.refused[i] = &Refusal{Code: CodeConflict}
	}
	return e.refused, nil
}

type execution struct {
	Executor
	commands []*model.Command
	decide   Decide
	refused  []error
	taken    map[string]string // models to the attempts that workers were found to have
}

// pass decides and commits commands once, and returns those to be decided again.
func (e *execution) pass(ctx context.Context, pending []int) (again []int, err error) {
	now, err := e.Now(ctx)
	if err != nil {
		return nil, err
	}
	commands := redis.Map(pending, func(i int) *model.Command { return e.commands[i] })
	uids := redis.Map(commands, uidOf)
	snapshot, err := e.Read(ctx, uids, commands)
	if err != nil {
		return nil, err
	}
	batch, changing := Batch{Now: now}, []int{}
	for at, i := range pending {
		record := snapshot.Records[uids[at]]
		record.Taken = record.AttemptUID != "" && e.taken[record.UID] == record.AttemptUID
		var transition *Transition
		if transition, e.refused[i] = e.decide(i, snapshot, now); transition != nil {
			changing, batch.Items = append(changing, i), append(batch.Items, Item{Transition: transition})
		}
	}
	committing, retried := redis.TrackRetry(ctx)
	codes, err := e.Commit(committing, batch)
	if err == nil && *retried {
		err = e.recognize(ctx, batch, codes)
	}
	if err != nil {
		return nil, err
	}
	changed, settled := map[string]bool{}, map[int]bool{}
	for at, code := range codes {
		i, item := changing[at], &batch.Items[at]
		settled[i] = !code.Retry()
		changed[item.Transition.UID()] = changed[item.Transition.UID()] || code.Retry()
		switch code {
		case CodeTaken:
			e.taken[item.Transition.UID()] = item.Transition.AttemptUID()
		case CodeBroken, CodeBlocked:
			e.refused[i] = &Refusal{code, item.WrongType}
		}
	}
	for _, i := range pending {
		// A decision that changes nothing may depend on a refused one, and falls with it.
		if changed[e.commands[i].UID] && !settled[i] {
			again = append(again, i)
		}
	}
	return again, nil
}

// recognize corrects the codes of a batch that was committed again: what was applied before is refused then, as its model has changed.
func (e *execution) recognize(ctx context.Context, batch Batch, codes []Code) error {
	last := map[string]*Transition{} // of each model that has changed
	var uids []string
	var commands []*model.Command // so that payloads are read
	for at, code := range codes {
		if t := batch.Items[at].Transition; code.Retry() {
			last[t.uid], uids, commands = t, append(uids, t.uid), append(commands, &model.Command{UID: t.uid})
		}
	}
	if len(uids) == 0 {
		return nil
	}
	snapshot, err := e.Read(ctx, uids, commands)
	for at := range codes {
		if t := batch.Items[at].Transition; err == nil && codes[at].Retry() && snapshot.Records[t.uid].follows(last[t.uid], batch.Now.UnixMilli()) {
			codes[at] = CodeApplied
		}
	}
	return err
}

// follows reports whether the model shows a transition that was applied at now or later, in Unix ms, or that its purpose is reached since. If not,
// the command is decided again on the new state, which does no harm.
func (r *Record) follows(t *Transition, now int64) bool {
	saved := t.decision.Definition
	stored := r.stored()
	switch {
	case t.removes():
		return !r.Exists || redis.ParseInt(t.rev) < now && redis.ParseInt(r.rev) >= now // a new one of that uid begins at the clock
	case !r.Exists:
		return false
	case saved != nil && (r.Payload != saved.Payload || !maps.Equal(model.AllLabels(&r.Model), t.isLabels) ||
		!slices.Equal(stored[:definedFields], t.after[:definedFields])):
		return false
	case r.rev == t.newRev && slices.Equal(stored, t.after):
		return true
	}
	started := r.Ticket != 0 && stored.of(fieldTicket) != t.before.of(fieldTicket) // each start draws one
	switch t.decision.Event {
	case model.EventRun:
		return started
	case model.EventEnable: // or somebody has disabled it since
		return score(r.Scores().Disabled) != t.was.at("disabled")
	case model.EventUpdate:
		return started || t.redefines()
	default:
		return saved != nil && t.redefines()
	}
}

// redefines reports whether the definition of the model has changed.
func (t *Transition) redefines() bool {
	return t.creates() || t.payload != "" || !slices.Equal(t.before[:definedFields], t.after[:definedFields])
}
