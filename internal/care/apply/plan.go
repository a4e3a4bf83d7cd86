package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// OwnerLabel is the label that says whose a model is.
const OwnerLabel = "owner"

// Options say how a directory is applied.
type Options struct {
	Owner string
	// Prune: what the owner has and the directory has not is deleted, unless that is more than MaxDelete.
	Prune     bool
	MaxDelete Share
	// Adopt: what belongs to another owner, or to nobody, and stands in the directory becomes the owner's. Otherwise it is refused.
	Adopt bool
	// By is who wants it, for the journal; empty: nobody says.
	By string
}

// Validate refuses an owner that cannot be the value of a label.
func (o Options) Validate() error {
	if err := model.ValidateLabel(OwnerLabel, o.Owner); err != nil {
		return document.Refuse("owner", "1-60 letters, digits or _.:@/+-", document.Found(o.Owner))
	}
	return nil
}

// Plan is what is to be done.
type Plan struct {
	// Steps: the policies first, and then the models, each by their names.
	Steps []*Step
	// Unchanged is how many models and policies of the directory are as it says.
	Unchanged int
	// Owned is how many models the owner has, and Spared how many of them the directory has not and stay, as nobody asks to prune.
	Owned, Spared int
	// Refused are documents that cannot be applied, a line each. Then nothing is.
	Refused []string
}

// Deletes is how many models the plan deletes.
func (p *Plan) Deletes() (n int) {
	for _, step := range p.Steps {
		if step.Action == Delete {
			n++
		}
	}
	return n
}

type planner struct {
	Options
	queue    *store.Queue
	plan     *Plan
	policies map[string]policy.Policy // of the directory
}

const chunk = 500

// New plans. It changes nothing.
func New(ctx context.Context, queue *store.Queue, d definitions.Directory, options Options) (*Plan, error) {
	if err := errors.Join(options.Validate(), queue.RequireWhole()); err != nil {
		return nil, err
	}
	p := &planner{Options: options, queue: queue, plan: &Plan{}, policies: map[string]policy.Policy{}}
	for _, doc := range d.Refused {
		p.refuse(doc.Position, doc.Err)
	}
	if err := p.planPolicies(ctx, d.Policies); err != nil {
		return nil, err
	}
	wanted := make(map[string]bool, len(d.Models))
	for part := range slices.Chunk(d.Models, chunk) {
		for _, m := range part {
			wanted[m.Definition.UID] = true
		}
		if err := p.planModels(ctx, part); err != nil {
			return nil, err
		}
	}
	if err := p.planOthers(ctx, wanted); err != nil {
		return nil, err
	}
	if n, most := p.plan.Deletes(), p.MaxDelete.Of(p.plan.Owned); n > most {
		want := fmt.Sprintf("at most %d models to delete, which is %s of the %d of %s", most, p.MaxDelete, p.plan.Owned, p.Owner)
		p.plan.Refused = append(p.plan.Refused, document.Refuse("max-delete", want, fmt.Sprint(n)).Error())
	}
	slices.SortStableFunc(p.plan.Steps, func(a, b *Step) int {
		if a.Policy != b.Policy {
			return map[bool]int{true: -1, false: 1}[a.Policy]
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return p.plan, nil
}

func (p *planner) refuse(position func(string) string, err error) {
	p.plan.Refused = append(p.plan.Refused, problem(position, "", err))
}

// planPolicies completes the policies with the policy default, of the directory if it has one, and compares them with what is stored.
func (p *planner) planPolicies(ctx context.Context, all []definitions.Policy) error {
	stored, err := p.queue.Parts[0].Policies(ctx, []string{policy.DefaultName})
	if err != nil {
		return err
	}
	usual, readable := stored[policy.DefaultName]
	if !readable {
		usual = policy.Default()
	}
	for _, one := range all {
		if one.Name == policy.DefaultName {
			usual, _ = one.Draft.Complete(usual) // if it is too large it is refused below
		}
	}
	for _, one := range all {
		whole, err := one.Draft.Complete(usual)
		if err != nil {
			p.refuse(one.Position, err)
			continue
		}
		p.policies[one.Name] = whole
		if err := p.planPolicy(ctx, one, whole); err != nil {
			return err
		}
	}
	return nil
}

// planPolicy plans a policy, unless all parts have it already.
func (p *planner) planPolicy(ctx context.Context, one definitions.Policy, whole policy.Policy) error {
	step := &Step{Action: Create, Policy: true, Name: one.Name, policy: whole, position: one.Position}
	same := true
	for i, part := range p.queue.Parts {
		stored, err := part.Policies(ctx, []string{one.Name})
		if err != nil {
			return p.queue.PartError(part, err)
		}
		here, found := stored[one.Name]
		same = same && found && here.Equal(whole)
		if i == 0 && found {
			step.Action, step.Changes = Change, definitions.Compare(here, whole)
		}
	}
	if same {
		p.plan.Unchanged++
		return nil
	}
	p.plan.Steps = append(p.plan.Steps, step)
	return nil
}

func (p *planner) planModels(ctx context.Context, models []definitions.Model) error {
	var steps []*Step
	for _, m := range models {
		if err := p.own(&m.Definition); err != nil {
			p.refuse(m.Position, err)
			continue
		}
		steps = append(steps, &Step{Name: m.Definition.UID, definition: m.Definition, position: m.Position})
	}
	for part, own := range store.ByPart(p.queue, steps, func(s *Step) string { return s.Name }) {
		if err := p.planPart(ctx, part, own); err != nil {
			return p.queue.PartError(part, err)
		}
	}
	return nil
}

// own gives a definition the label of the owner.
func (p *planner) own(d *model.Definition) error {
	named, is := d.Labels[OwnerLabel]
	switch {
	case d.Refresh == model.RefreshNow:
		return document.Refuse("refresh", "planned or nothing, as a directory is applied again and again", document.Found(string(d.Refresh)))
	case is && named != p.Owner:
		return document.Refuse("labels."+OwnerLabel, p.Owner+" or nothing", document.Found(named))
	case !is && len(d.Labels) == model.MaxLabels:
		return document.Refuse("labels", fmt.Sprintf("at most %d beside %s", model.MaxLabels-1, OwnerLabel), fmt.Sprint(len(d.Labels)))
	}
	owned := maps.Clone(d.Labels)
	if owned == nil {
		owned = make(map[string]string, 1)
	}
	owned[OwnerLabel] = p.Owner
	d.Labels = owned
	return nil
}

// planPart plans models of one part: it decides what a put would do.
func (p *planner) planPart(ctx context.Context, part *store.Store, steps []*Step) error {
	now, err := part.Now(ctx)
	if err != nil {
		return err
	}
	uids, commands := putsOf(steps, p.By)
	snapshot, err := part.Read(ctx, uids, commands)
	if err != nil {
		return err
	}
	p.foresee(snapshot, commands)
	for i, step := range steps {
		record := snapshot.Records[step.Name]
		if err := p.refuseForeign(record); err != nil {
			p.refuse(step.position, err)
			continue
		}
		decision, outcome, err := record.Execute(commands[i], snapshot.Policies, record.Exists, now)
		switch {
		case err != nil:
			p.refuse(step.position, err)
			continue
		case outcome == model.Unchanged:
			p.plan.Unchanged++
			continue
		}
		step.Action, step.rev = Create, record.Rev()
		if record.Exists {
			step.Action, step.Changes = Change, changesOf(&record.Model, decision.Definition)
		}
		step.StartsAtOnce = decision.Next.Due(now) && !record.Due(now)
		step.RefreshAt = decision.Next.RefreshAt
		p.plan.Steps = append(p.plan.Steps, step)
	}
	return nil
}

// foresee lets puts be decided under the policies of the directory.
func (p *planner) foresee(snapshot *store.Snapshot, commands []*model.Command) {
	for name, own := range p.policies {
		snapshot.Policies.ByName[name] = own
		if name == policy.DefaultName {
			snapshot.Policies.ByName[""] = own
		}
	}
	usual, own := p.policies[policy.DefaultName]
	for _, command := range commands {
		if own {
			command.Definition.Complete(usual)
		}
	}
}

// refuseForeign refuses a stored model that is not the owner's, unless it is to be adopted.
func (p *planner) refuseForeign(record *store.Record) error {
	owner := record.Labels[OwnerLabel]
	switch {
	case record.Broken:
		return document.Refuse("uid", "a key that holds a model", "something else")
	case !record.Exists || owner == p.Owner || p.Adopt:
		return nil
	case owner == "":
		return document.Refuse("uid", "a model of "+p.Owner+", or --adopt", "one that belongs to nobody")
	default:
		return document.Refuse("uid", "a model of "+p.Owner+", or --adopt", "one of "+owner)
	}
}

func putsOf(steps []*Step, by string) (uids []string, commands []*model.Command) {
	for _, step := range steps {
		uids = append(uids, step.Name)
		commands = append(commands, &model.Command{Type: model.CommandPut, UID: step.Name, Definition: step.definition, By: by})
	}
	return uids, commands
}

func (p *planner) planOthers(ctx context.Context, wanted map[string]bool) error {
	selector, err := model.ParseSelector(OwnerLabel + "=" + p.Owner)
	if err != nil {
		return err
	}
	return p.queue.Each(func(part *store.Store) error {
		return part.Report().EachPicked(ctx, selector, func(record *store.Record) error {
			p.plan.Owned++
			switch {
			case wanted[record.UID]:
			case p.Prune:
				p.plan.Steps = append(p.plan.Steps, &Step{Action: Delete, Name: record.UID, rev: record.Rev()})
			default:
				p.plan.Spared++
			}
			return nil
		})
	})
}
