package store

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model"
)

// Executor is what it takes to change models. *Store is one.
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
	Code   Code
	Misfit string // the key of another type; empty: the model kept changing
}

func (r *Refusal) Error() string {
	if r.Misfit != "" {
		return r.Misfit
	}
	return fmt.Sprintf("expected the model to stand still for a moment, found it changed %d times", MaxPasses)
}

// Execute reads the models that commands name, decides each command, and commits all decisions in one script. What changed meanwhile is read and
// decided again. refused tells of each command why it was refused; nil: it is done. An error is a failure of Redis; it is then unknown which
// commands were carried out.
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
	commands := Map(pending, func(i int) *model.Command { return e.commands[i] })
	uids := Map(commands, uidOf)
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
	committing, unheard := listen(ctx)
	codes, err := e.Commit(committing, batch)
	if err == nil && *unheard {
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
			e.refused[i] = &Refusal{code, item.Misfit}
		}
	}
	for _, i := range pending {
		// What changes nothing may have been decided on top of a decision that was refused, and falls with it.
		if changed[e.commands[i].UID] && !settled[i] {
			again = append(again, i)
		}
	}
	return again, nil
}
