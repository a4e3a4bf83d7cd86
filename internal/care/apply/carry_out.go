package apply

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

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

func carryOut(ctx context.Context, part *store.Store, steps []*Step, by string) error {
	_, commands := putsOf(steps, by)
	for i, step := range steps {
		if step.Action == Delete {
			commands[i].Type = model.CommandRemove
		}
	}
	refused, err := store.Execute(ctx, part, commands, func(i int, snapshot *store.Snapshot, now time.Time) (*store.Transition, error) {
		return steps[i].decide(commands[i], snapshot, now)
	})
	for i, reason := range refused {
		steps[i].Err, steps[i].applied = reason, reason == nil
	}
	return err
}

// decide refuses a step whose model is not as it was when it was planned.
func (s *Step) decide(command *model.Command, snapshot *store.Snapshot, now time.Time) (*store.Transition, error) {
	record := snapshot.Records[s.Name]
	if record.Rev() != s.rev {
		return nil, document.Refuse("", "the model "+s.Name+" as it was planned", "it changed since; plan again")
	}
	decision, outcome, err := record.Execute(command, snapshot.Policies, record.Exists, now)
	if err != nil || outcome != model.Applied {
		return nil, err
	}
	return snapshot.Apply(command, decision, now), nil
}
