package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/scripts"
)

func policyDiffCommand(a *app) *cobra.Command {
	return aboutPolicies("diff OLD NEW", "Compare two policies, field by field, and say what the change would mean for the models that use the old one", 2, a.diffPolicies)
}

func (a *app) diffPolicies(ctx context.Context, from []string) error {
	before, err := a.readPolicy(ctx, from[0])
	if err != nil {
		return err
	}
	after, err := a.readPolicy(ctx, from[1])
	if err != nil {
		return err
	}
	var plan *impact
	if before.stored {
		err = a.withStore(ctx, func(store *scripts.Store) error {
			plan, err = measureImpact(ctx, store, before.policy.Name, after.policy)
			return err
		})
	}
	if err != nil {
		return err
	}
	differences := definitions.Compare(before.policy, after.policy)
	if a.json() {
		return a.printJSON(struct {
			Differences []definitions.Difference `json:"differences"`
			Plan        *impact                  `json:"plan"`
		}{differences, plan})
	}
	table := a.newTable("FIELD", "OLD", "NEW")
	if len(differences) == 0 {
		table = a.newTable("no difference")
	}
	for _, d := range differences {
		table.row(d.Field, definitions.Text(d.Old), definitions.Text(d.New))
	}
	if plan != nil {
		table.row(plan.String())
	}
	return table.Flush()
}
