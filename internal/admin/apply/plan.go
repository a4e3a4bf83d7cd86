package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Plan lists the steps to take.
type Plan struct {
	// Steps: the policies first, and then the models, each by their names.
	Steps []*Step
	// Refused are documents that cannot be applied. Then nothing is.
	Refused []error

	options  Options
	queue    *store.Queue
	policies map[string]policy.Policy // of the directory
	sum      Summary                  // without the results of its steps
}

const chunk = 500

// New plans. It changes nothing.
func New(ctx context.Context, queue *store.Queue, d definitions.Directory, options Options) (*Plan, error) {
	if err := errors.Join(options.Validate(), queue.RequireWhole()); err != nil {
		return nil, err
	}
	p := &Plan{options: options, queue: queue, policies: map[string]policy.Policy{}, sum: Summary{Kind: "summary", Owner: options.Owner}}
	for _, doc := range d.Refused {
		p.refuse(doc.Position, doc.Err)
	}
	if err := p.planPolicies(ctx, d.Policies); err != nil {
		return nil, err
	}
	wanted := make(map[string]bool, len(d.Models))
	for models := range slices.Chunk(d.Models, chunk) {
		var steps []*Step
		for _, m := range models {
			wanted[m.Definition.UID] = true
			if err := p.own(&m.Definition); err != nil {
				p.refuse(m.Position, err)
				continue
			}
			steps = append(steps, &Step{Kind: KindModel, Name: m.Definition.UID, definition: m.Definition, position: m.Position})
		}
		for part, own := range store.ByPart(queue, steps, func(s *Step) string { return s.Name }) {
			if err := p.planPart(ctx, part, own); err != nil {
				return nil, queue.PartError(part, err)
			}
		}
	}
	if err := p.planOthers(ctx, wanted); err != nil {
		return nil, err
	}
	deleted := p.Summary(false).Models.Delete
	if most, _ := options.maxDeleted(p.sum.Owned); deleted > most { // it was validated
		want := fmt.Sprintf("at most %d models to delete, which is %s of the %d of %s", most, options.MaxDelete, p.sum.Owned, options.Owner)
		p.Refused = append(p.Refused, document.Refuse("max-delete", want, fmt.Sprint(deleted)))
	}
	slices.SortStableFunc(p.Steps, func(a, b *Step) int { return cmp.Or(-strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name)) })
	return p, nil
}

func (p *Plan) refuse(position func(string) string, err error) {
	p.Refused = append(p.Refused, definitions.Document{Position: position}.At(err))
}

// planPolicies completes the policies with the policy default, of the directory if it has one, and plans those that some part has not as they are.
func (p *Plan) planPolicies(ctx context.Context, all []definitions.Source) error {
	stored, err := p.queue.Parts[0].Policies(ctx, []string{policy.DefaultName})
	if err != nil {
		return err
	}
	usual, readable := stored[policy.DefaultName]
	if !readable {
		usual = policy.Default()
	}
	for _, one := range all {
		if one.Draft.Name() == policy.DefaultName {
			usual, _ = one.Draft.Complete(usual) // if it is too large it is refused below
		}
	}
	for _, one := range all {
		name := one.Draft.Name()
		whole, err := one.Draft.Complete(usual)
		if err != nil {
			p.refuse(one.Position, err)
			continue
		}
		p.policies[name] = whole
		step := &Step{Action: Create, Kind: KindPolicy, Name: name, policy: whole, position: one.Position}
		same := true
		err = p.queue.Each(func(part *store.Store) error {
			stored, err := part.Policies(ctx, []string{name})
			here, found := stored[name]
			same = same && found && here.Equal(whole)
			if found && part == p.queue.Parts[0] {
				step.Action, step.Changes = Change, definitions.Compare(here, whole)
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case same:
			p.sum.Unchanged++
		default:
			p.Steps = append(p.Steps, step)
		}
	}
	return nil
}

func (p *Plan) own(d *model.Definition) error {
	owner := p.options.Owner
	named, is := d.Labels[OwnerLabel]
	switch {
	case d.Refresh == model.RefreshNow:
		return document.Refuse("refresh", "planned or nothing, as a directory is applied again and again", document.Found(string(d.Refresh)))
	case is && named != owner:
		return document.Refuse("labels."+OwnerLabel, owner+" or nothing", document.Found(named))
	case !is && len(d.Labels) == model.MaxLabels:
		return document.Refuse("labels", fmt.Sprintf("at most %d beside %s", model.MaxLabels-1, OwnerLabel), fmt.Sprint(len(d.Labels)))
	}
	owned := map[string]string{OwnerLabel: owner}
	maps.Copy(owned, d.Labels)
	d.Labels = owned
	return nil
}

// planPart plans models of one part: it decides what a put would do, under the policies of the directory.
func (p *Plan) planPart(ctx context.Context, part *store.Store, steps []*Step) error {
	now, err := part.Now(ctx)
	if err != nil {
		return err
	}
	uids, commands := putsOf(steps, p.options.By)
	snapshot, err := part.Read(ctx, uids, commands)
	if err != nil {
		return err
	}
	maps.Copy(snapshot.Policies.ByName, p.policies)
	usual, own := p.policies[policy.DefaultName]
	if own {
		snapshot.Policies.ByName[""] = usual
	}
	for i, step := range steps {
		if own {
			commands[i].Definition.Complete(usual)
		}
		record := snapshot.Records[step.Name]
		decision, outcome, err := record.Execute(commands[i], snapshot.Policies, record.Exists, now)
		switch err = cmp.Or(p.refuseForeign(record), err); {
		case err != nil:
			p.refuse(step.position, err)
			continue
		case outcome == model.Unchanged:
			p.sum.Unchanged++
			continue
		}
		step.Action, step.rev = Create, record.Rev()
		if record.Exists {
			step.Action, step.Changes = Change, definitions.CompareModels(&record.Model, decision.Definition)
		}
		step.StartsAtOnce = decision.Next.Due(now) && !record.Due(now)
		step.RefreshAt = decision.Next.RefreshAt
		p.Steps = append(p.Steps, step)
	}
	return nil
}

// refuseForeign refuses a stored model that is not the owner's, unless it is to be adopted.
func (p *Plan) refuseForeign(record *store.Record) error {
	owner := record.Labels[OwnerLabel]
	switch {
	case record.Broken:
		return document.Refuse("uid", "a key that holds a model", "something else")
	case !record.Exists || owner == p.options.Owner || p.options.Adopt:
		return nil
	default:
		return document.Refuse("uid", "a model of "+p.options.Owner+", or --adopt", "one of "+cmp.Or(owner, "nobody"))
	}
}

func putsOf(steps []*Step, by string) (uids []string, commands []*model.Command) {
	for _, step := range steps {
		uids = append(uids, step.Name)
		commands = append(commands, &model.Command{Type: model.CommandPut, UID: step.Name, Definition: step.definition, By: by})
	}
	return uids, commands
}

func (p *Plan) planOthers(ctx context.Context, wanted map[string]bool) error {
	selector, err := model.ParseSelector(OwnerLabel + "=" + p.options.Owner)
	if err != nil {
		return err
	}
	return p.queue.Each(func(part *store.Store) error {
		return part.Report().EachPicked(ctx, selector, func(record *store.Record) error {
			p.sum.Owned++
			switch {
			case wanted[record.UID]:
			case p.options.Prune:
				p.Steps = append(p.Steps, &Step{Kind: KindModel, Action: Delete, Name: record.UID, rev: record.Rev()})
			default:
				p.sum.Spared++
			}
			return nil
		})
	})
}

// CarryOut takes the steps of a plan: the policies first, and then each model that has not changed since. It refuses the others, and notes that in
// their steps. A plan with refused documents is not carried out. An error is one of Redis: some steps may have been carried out.
func (p *Plan) CarryOut(ctx context.Context) error {
	if len(p.Refused) > 0 {
		return errors.New("expected a plan that refuses nothing, found one that does")
	}
	if len(p.Steps) == 0 {
		return nil
	}
	return p.queue.AsOneDeed(ctx, model.Deed{Verb: "apply", What: OwnerLabel + "=" + p.options.Owner}, func(ctx context.Context, end *model.Deed) error {
		err := p.carryOut(ctx)
		sum := p.Summary(true)
		end.Number = sum.Models.Create + sum.Models.Change + sum.Models.Delete
		end.After = fmt.Sprintf("%d created, %d changed, %d deleted; policies %d", sum.Models.Create, sum.Models.Change, sum.Models.Delete, sum.Policies.Create+sum.Policies.Change)
		return err
	})
}

func (p *Plan) carryOut(ctx context.Context) error {
	var models []*Step
	for _, step := range p.Steps {
		if step.Kind == KindModel {
			models = append(models, step)
			continue
		}
		if err := p.queue.Fleet().PutPolicy(ctx, step.policy); err != nil {
			return err
		}
		step.Applied = true
	}
	for some := range slices.Chunk(models, chunk) {
		for part, own := range store.ByPart(p.queue, some, func(s *Step) string { return s.Name }) {
			if err := carryOut(ctx, part, own, p.options.By); err != nil {
				return p.queue.PartError(part, err)
			}
		}
	}
	return nil
}
