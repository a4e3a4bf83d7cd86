package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/commands"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// policyOutcome is what became of one policy, as -o json shows it: every field but read_as is always there.
type policyOutcome struct {
	Name     string   `json:"name"`
	Result   string   `json:"result"`
	Warnings []string `json:"warnings"`
	Plan     *impact  `json:"plan"` // null: none was asked for
	// Completed are the fields that the policy names nothing of, and has from the policy `default`.
	Completed []string `json:"completed"`
	// ReadAs is how the policy was read that was written in English, or its rule.
	ReadAs *schedule.Understood `json:"read_as,omitempty"`
}

func (a *app) printOutcome(outcome policyOutcome) error {
	if a.json() {
		outcome.Completed = append([]string{}, outcome.Completed...)
		return printJSONLine(a.stdout, outcome)
	}
	fmt.Fprintf(a.stdout, "%-9s  %s\n", outcome.Result, outcome.Name)
	if len(outcome.Completed) > 0 {
		fmt.Fprintf(a.stderr, "note: %s: from the policy %s: %s\n", cmp.Or(outcome.Name, "the policy"), policy.DefaultName, strings.Join(outcome.Completed, ", "))
	}
	if outcome.Plan != nil {
		fmt.Fprintln(a.stdout, outcome.Plan)
	}
	return nil
}

func policyPutCommand(a *app) *cobra.Command {
	var name string
	var plan bool
	command := aboutPolicies("put FILE|-|NAME", "Store policies under their names; what a changed rule plans otherwise is planned anew, all else takes effect at the next decision", 1,
		func(ctx context.Context, from []string) error { return a.putPolicies(ctx, from[0], name, plan) })
	command.Flags().StringVar(&name, "name", "", "`NAME` to store the policy under, instead of its own")
	command.Flags().BoolVar(&plan, "plan", false, "store nothing; say how many models would change, how many would be planned anew, and when the first of them start")
	return command
}

func (a *app) putPolicies(ctx context.Context, from, name string, plan bool) error {
	sources, err := a.readDrafts(ctx, from)
	if err != nil {
		return err
	}
	if name != "" && len(sources) > 1 {
		return usagef("--name: expected one policy to be called so, found %d", len(sources))
	}
	for i := range sources {
		source := &sources[i]
		if name != "" {
			source.Policy.Name, source.Draft = name, source.Draft.Rename(name)
		}
		if err := policy.ValidateName(cmp.Or(source.Policy.Name, source.Draft.Name())); err != nil {
			return source.At(err)
		}
	}
	if err := definitions.Complete(sources, func() (policy.Policy, error) { return a.readStoredPolicy(ctx, policy.DefaultName) }); err != nil {
		return err
	}
	return a.withQueue(ctx, func(queue *store.Queue) error {
		for _, source := range sources {
			if err := a.putPolicy(ctx, queue, source, plan); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) putPolicy(ctx context.Context, queue *store.Queue, source definitions.Source, plan bool) error {
	p := source.Policy
	before, everywhere, err := storedBefore(ctx, queue, p)
	if err != nil {
		return err
	}
	now, err := queue.Parts[0].Now(ctx)
	if err != nil {
		return err
	}
	outcome := policyOutcome{Name: p.Name, Warnings: a.warnPolicy(source, now), Completed: source.Taken(), ReadAs: a.readAs(source.Position, source.ReadAs(now))}
	switch {
	case plan:
		outcome.Result = "planned"
		outcome.Plan, err = measureImpact(ctx, queue, p.Name, p)
	case everywhere:
		outcome.Result = commands.ResultUnchanged
	default:
		outcome.Result = map[bool]string{true: commands.ResultUpdated, false: commands.ResultCreated}[before != nil]
		err = queue.Fleet().PutPolicy(ctx, p)
	}
	if err != nil {
		return err
	}
	return a.printOutcome(outcome)
}

// storedBefore reads what a policy replaces; everywhere: nothing, as every part has it. An earlier put may have ended halfway.
func storedBefore(ctx context.Context, queue *store.Queue, p policy.Policy) (before *policy.Policy, everywhere bool, err error) {
	everywhere = true
	err = queue.Each(func(part *store.Store) error {
		stored, err := storedPolicy(ctx, part, p.Name)
		if part == queue.Parts[0] {
			before = stored
		}
		everywhere = everywhere && stored != nil && stored.Equal(p)
		return err
	})
	return before, everywhere, err
}

// storedPolicy reads a policy that may be stored; nil: it is not, or it cannot be read, which is as good to a put.
func storedPolicy(ctx context.Context, store *store.Store, name string) (*policy.Policy, error) {
	text, stored, err := store.Report().PolicyText(ctx, name)
	var value any
	if err != nil || !stored || json.Unmarshal([]byte(text), &value) != nil {
		return nil, err
	}
	p, err := policy.ParseStored(value)
	if err != nil {
		return nil, nil
	}
	p.Name = name
	return &p, nil
}
