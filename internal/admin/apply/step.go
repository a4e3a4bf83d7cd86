package apply

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Action is the action of a step.
type Action string

// The actions. A policy is never deleted.
const (
	Create Action = "create"
	Change Action = "change"
	Delete Action = "delete"
)

// The kinds of objects that a step changes.
const (
	KindModel  = "model"
	KindPolicy = "policy"
)

// Step is one thing that a plan does.
type Step struct {
	Kind         string                   `json:"kind"`
	Action       Action                   `json:"action"`
	Name         string                   `json:"name"`    // of the policy, or the uid
	Changes      []definitions.Difference `json:"changes"` // fields that become others, of Change alone
	StartsAtOnce bool                     `json:"starts_at_once"`
	RefreshAt    time.Time                `json:"refresh_at"` // of a model, what follows; zero: none
	Applied      bool                     `json:"applied"`    // it was carried out
	Error        string                   `json:"error"`      // why it was not, with the position of its document; empty: it was, or nobody has tried

	position   func(field string) string // nil: it is in no document
	policy     policy.Policy
	definition model.Definition
	rev        string // as the plan has read it; empty: there was no such model
}

// carryOut takes steps about models of a part, if the models have not changed since they were planned.
func carryOut(ctx context.Context, part *store.Store, steps []*Step, by string) error {
	_, commands := putsOf(steps, by)
	for i, step := range steps {
		if step.Action == Delete {
			commands[i].Type = model.CommandRemove
		}
	}
	refused, err := store.Execute(ctx, part, commands, func(i int, snapshot *store.Snapshot, now time.Time) (*store.Transition, error) {
		step := steps[i]
		record := snapshot.Records[step.Name]
		if record.Rev() != step.rev {
			return nil, document.Refuse("", "the model "+step.Name+" as it was planned", "it changed since; plan again")
		}
		decision, outcome, err := record.Execute(commands[i], snapshot.Policies, record.Exists, now)
		if err != nil || outcome != model.Applied {
			return nil, err
		}
		return snapshot.Apply(commands[i], decision, now), nil
	})
	for i, reason := range refused {
		switch step := steps[i]; {
		case reason == nil:
			step.Applied = true
		case step.position == nil:
			step.Error = step.Name + ": " + reason.Error()
		default:
			step.Error = definitions.Document{Position: step.position}.At(reason).Error()
		}
	}
	return err
}

// Summary is the content of a plan, or its result.
type Summary struct {
	Kind      string   `json:"kind"` // summary
	Owner     string   `json:"owner"`
	Policies  Count    `json:"policies"`
	Models    Count    `json:"models"`
	Unchanged int      `json:"unchanged"` // of both: as the directory says
	Owned     int      `json:"owned"`     // models that the owner had
	Spared    int      `json:"spared"`    // of these the directory has not, and nobody asked to prune
	AtOnce    int      `json:"starts_at_once"`
	Refused   []string `json:"refused"` // documents; then nothing is applied
}

// Count counts the steps of one kind, planned or carried out.
type Count struct {
	Create int `json:"create"`
	Change int `json:"change"`
	Delete int `json:"delete"`
	Failed int `json:"failed"`
}

// Summary sums up a plan, or the result of one that was carried out.
func (p *Plan) Summary(carriedOut bool) Summary {
	sum := p.sum
	sum.Refused = redis.Map(p.Refused, error.Error)
	for _, step := range p.Steps {
		count := &sum.Models
		if step.Kind == KindPolicy {
			count = &sum.Policies
		}
		switch {
		case carriedOut && !step.Applied:
			count.Failed++
		case step.Action == Create:
			count.Create++
		case step.Action == Change:
			count.Change++
		default:
			count.Delete++
		}
		if step.StartsAtOnce && step.Error == "" {
			sum.AtOnce++
		}
	}
	return sum
}
