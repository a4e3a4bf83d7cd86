package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

func policyGetCommand(a *app) *cobra.Command {
	return a.aboutPolicies("get FILE|-|NAME", "Show policies in their canonical form: YAML, or JSON with -o json", 1,
		func(ctx context.Context, from []string) error {
			return a.eachPolicy(ctx, from[0], func(i int, source policySource) error { return a.printPolicy(i, source.policy) })
		})
}

// eachPolicy visits the policies of a file, or the stored one of that name.
func (a *app) eachPolicy(ctx context.Context, from string, visit func(int, policySource) error) error {
	sources, err := a.readPolicies(ctx, from)
	if err != nil {
		return err
	}
	for i, source := range sources {
		if err := visit(i, source); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printPolicy(i int, policy policy.Policy) error {
	if a.json() {
		return a.printJSON(policy)
	}
	if i > 0 {
		fmt.Fprintln(a.stdout, "---")
	}
	return definitions.WriteYAML(a.stdout, policy)
}

func policyEnglishCommand(a *app) *cobra.Command {
	return a.aboutPolicies("english FILE|-|NAME", "Show policies in English; policy put and check read it back", 1,
		func(ctx context.Context, from []string) error {
			return a.eachPolicy(ctx, from[0], func(i int, source policySource) error { return a.printEnglish(i, source.policy) })
		})
}

func (a *app) printEnglish(i int, policy policy.Policy) error {
	text := definitions.English(policy)
	if a.json() {
		return a.printJSON(map[string]string{"name": policy.Name, "english": text})
	}
	if i > 0 {
		fmt.Fprintln(a.stdout)
	}
	_, err := io.WriteString(a.stdout, text)
	return err
}

func policyCheckCommand(a *app) *cobra.Command {
	var strict bool
	command := a.aboutPolicies("check FILE|-|NAME", "Check policies: errors with their line, and warnings of what is seldom meant", 1,
		func(ctx context.Context, from []string) error { return a.checkPolicies(ctx, from[0], strict) })
	command.Flags().BoolVar(&strict, "strict", false, "let a warning fail the check")
	return command
}

func (a *app) checkPolicies(ctx context.Context, from string, strict bool) error {
	warnings := 0
	err := a.eachPolicy(ctx, from, func(_ int, source policySource) error {
		told := policyOutcome{Name: source.policy.Name, Result: "ok", Warnings: a.warn(source, time.Now())}
		warnings += len(told.Warnings)
		return a.tellPolicy(told)
	})
	if err == nil && strict && warnings > 0 {
		return errReported
	}
	return err
}

// warn tells what is seldom meant in a policy, each with its place, and returns it.
func (a *app) warn(source policySource, now time.Time) []string {
	warnings := []string{}
	tell := func(w policy.Warning) {
		text := plain(source.Place(w.Field) + ": " + w.String())
		warnings = append(warnings, text)
		fmt.Fprintln(a.stderr, "warning: "+text)
	}
	if fields, ok := source.Value.(map[string]any); ok && fields["timeout"] == nil {
		tell(policy.Warning{Field: "timeout", Text: "is missing: " + document.FormatDuration(policy.DefaultTimeout)})
	}
	m := model.Model{UID: "policy"}
	if err := m.Resolve(source.policy, schedule.Parse); err != nil {
		return warnings // it was parsed, so it compiles
	}
	for _, w := range m.Lint(source.policy.Dtstart != "", now) {
		tell(w)
	}
	return warnings
}

func policyDiffCommand(a *app) *cobra.Command {
	return a.aboutPolicies("diff OLD NEW", "Compare two policies, field by field, and say what the change would mean for the models that use the old one", 2, a.diffPolicies)
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
	return a.tellDifferences(definitions.Compare(before.policy, after.policy), plan)
}

func (a *app) tellDifferences(differences []definitions.Difference, plan *impact) error {
	if a.json() {
		return a.printJSON(struct {
			Differences []definitions.Difference `json:"differences"`
			Plan        *impact                  `json:"plan"`
		}{differences, plan})
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	if len(differences) == 0 {
		fmt.Fprintln(table, "no difference")
	} else {
		fmt.Fprintln(table, "FIELD\tOLD\tNEW")
	}
	for _, d := range differences {
		fmt.Fprintf(table, "%s\t%s\t%s\n", d.Field, plain(definitions.Text(d.Old)), plain(definitions.Text(d.New)))
	}
	if plan != nil {
		fmt.Fprintln(table, plan)
	}
	return table.Flush()
}
