package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// maxPasses bounds how often a step is decided again because a worker takes the attempt meanwhile.
const maxPasses = 10

// CarryOut does what a plan says: the policies first, and then each model that is as it was when it was planned. Any other is refused, which
// its step tells. A plan that has refused something is not carried out. An error is one of Redis: some steps may have been carried out.
func (p *Plan) CarryOut(ctx context.Context, queue *store.Queue, by string) error {
	if len(p.Refused) > 0 {
		return errors.New("expected a plan that refuses nothing, found one that does")
	}
	for _, step := range p.Steps {
		if step.Policy {
			if err := queue.Fleet().PutPolicy(ctx, step.policy); err != nil {
				return err
			}
			step.applied = true
		}
	}
	models := slices.DeleteFunc(slices.Clone(p.Steps), func(s *Step) bool { return s.Policy })
	for some := range slices.Chunk(models, chunk) {
		for part, own := range store.ByPart(queue, some, func(s *Step) string { return s.Name }) {
			if err := carryOut(ctx, part, own, by); err != nil {
				return queue.PartError(part, err)
			}
		}
	}
	return nil
}

// carryOut carries out steps about models of one part.
func carryOut(ctx context.Context, part *store.Store, steps []*Step, by string) error {
	taken := map[string]string{} // attempt of a model that a worker was found to have
	for range maxPasses {
		if err := pass(ctx, part, steps, by, taken); err != nil {
			return err
		}
		steps = slices.DeleteFunc(slices.Clone(steps), func(s *Step) bool { return s.applied || s.Err != nil })
		if len(steps) == 0 {
			return nil
		}
	}
	for _, step := range steps {
		step.Err = fmt.Errorf("expected the model to stand still for a moment, found it changed %d times", maxPasses)
	}
	return nil
}

// pass decides and commits once.
func pass(ctx context.Context, part *store.Store, steps []*Step, by string, taken map[string]string) error {
	now, err := part.Now(ctx)
	if err != nil {
		return err
	}
	uids, commands := putsOf(steps, by)
	snapshot, err := part.Read(ctx, uids, commands)
	if err != nil {
		return err
	}
	batch := store.Batch{Now: now}
	var changing []*Step
	for i, step := range steps {
		record, command := snapshot.Records[step.Name], commands[i]
		if step.Action == Delete {
			command.Type = model.CommandRemove
		}
		if record.Rev() != step.rev {
			step.Err = document.Refuse("", "the model "+step.Name+" as it was planned", "it changed since; plan again")
			continue
		}
		record.Taken = taken[step.Name] != "" && taken[step.Name] == record.AttemptUID
		decision, outcome, err := record.Execute(command, snapshot.Policies, record.Exists, now)
		if err != nil || outcome != model.Applied {
			step.Err, step.applied = err, err == nil
			continue
		}
		changing, batch.Items = append(changing, step), append(batch.Items, store.Item{Transition: snapshot.Apply(command, decision, now)})
	}
	codes, err := part.Commit(ctx, batch)
	if err != nil {
		return err
	}
	for i, code := range codes {
		switch step := changing[i]; code {
		case store.CodeTaken:
			taken[step.Name] = batch.Items[i].Transition.AttemptUID()
		case store.CodeBroken, store.CodeBlocked:
			step.Err = errors.New(batch.Items[i].Misfit)
		case store.CodeConflict: // read again, and then refused
		default:
			step.applied = true
		}
	}
	return nil
}
