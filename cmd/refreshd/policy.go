package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model/policy"
)

const policySourceText = `A policy is read from a file, from standard input (-), or by the name of a stored one where no file is called so. It may be
written in YAML, in JSON or in English. Of one in English, or with a rule in English, put and check show how it was read: in canonical sentences, with
the next three times of its rule.`

func aboutPolicies(use, short string, count int, do func(ctx context.Context, from []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + policySourceText,
		Args: exactly(count, fmt.Sprint(count, " of: a file, - or the name of a stored policy")), RunE: func(command *cobra.Command, args []string) error { return do(command.Context(), args) },
	}
}

// eachPolicy makes a command that does something with each policy that its argument names.
func (a *app) eachPolicy(use, short string, do func(i int, source definitions.Source) error) *cobra.Command {
	return aboutPolicies(use, short, 1, func(ctx context.Context, from []string) error {
		sources, err := a.inputs().Policies(ctx, from[0])
		if err != nil {
			return err
		}
		for i, source := range sources {
			if err := do(i, source); err != nil {
				return err
			}
		}
		return nil
	})
}

func policyCommand(a *app) *cobra.Command {
	return group("policy", "Save, show, check and compare policies",
		policyPutCommand(a),
		a.eachPolicy("get FILE|-|NAME", "Show policies in their canonical form: YAML, or JSON with -o json", func(i int, source definitions.Source) error {
			if a.json() {
				return a.printJSON(source.Policy.Explicit())
			}
			if i > 0 {
				fmt.Fprintln(a.stdout, "---")
			}
			return definitions.WriteYAML(a.stdout, source.Policy)
		}),
		a.onStored("ls", "List the stored policies", cobra.NoArgs, func(ctx context.Context, o operate.Operator, _ []string) error {
			return table(a, []any{"NAME", "TIMEOUT", "RETRIES", "SCHEDULE"}, func(p *operate.StoredPolicy) []any {
				if p.Policy == nil {
					return []any{p.Name, "cannot be read", "", ""}
				}
				timeout, retries, rule := definitions.Brief(*p.Policy)
				return []any{p.Name, timeout, retries, rule}
			})(o.Policies(ctx))
		}),
		policyRmCommand(a), policyCheckCommand(a),
		a.eachPolicy("english FILE|-|NAME", "Show policies in English; policy put and check read it back", func(i int, source definitions.Source) error {
			text := definitions.English(source.Policy)
			if a.json() {
				return a.printJSON(map[string]string{"name": source.Policy.Name, "english": text})
			}
			if i > 0 {
				fmt.Fprintln(a.stdout)
			}
			fmt.Fprint(a.stdout, text)
			return nil
		}),
		aboutPolicies("diff OLD NEW", "Compare two policies, field by field, and say what the change would mean for the models that use the old one", 2, a.diffPolicies))
}

func policyCheckCommand(a *app) *cobra.Command {
	var strict, warned bool
	command := a.eachPolicy("check FILE|-|NAME", "Check policies: errors with their line, and warnings of what is seldom meant", func(_ int, source definitions.Source) error {
		checked := operate.CheckPolicy(source, time.Now())
		warned = warned || len(checked.Warnings) > 0
		return a.printPolicy(checked)
	})
	command.PostRunE = func(*cobra.Command, []string) error { return reported(strict && warned) }
	command.Flags().BoolVar(&strict, "strict", false, "let a warning fail the check")
	return command
}

func policyPutCommand(a *app) *cobra.Command {
	var name string
	var plan bool
	command := aboutPolicies("put FILE|-|NAME", "Store policies under their names; what a changed rule plans otherwise is planned anew, all else takes effect at the next decision", 1,
		func(ctx context.Context, from []string) error {
			return a.inputs().PutPolicies(ctx, from[0], name, plan, a.printPolicy)
		})
	command.Flags().StringVar(&name, "name", "", "`NAME` to store the policy under, instead of its own")
	command.Flags().BoolVar(&plan, "plan", false, "store nothing; say how many models would change, how many would be planned anew, and when the first of them start")
	return command
}

func policyRmCommand(a *app) *cobra.Command {
	var force bool
	command := a.operates("rm NAME", "Remove a stored policy; refused while models use it", exactly(1, "the name of a stored policy"),
		func(ctx context.Context, o operate.Operator, names []string) error {
			removed, err := o.RemovePolicy(ctx, names[0], force)
			if err != nil {
				return err
			}
			return a.printPolicy(removed)
		})
	command.Flags().BoolVar(&force, "force", false, "remove it all the same: its models then run under the default policy")
	return command
}

func (a *app) printPolicy(r operate.PolicyResult) error {
	for _, warning := range r.Warnings {
		fmt.Fprintln(a.stderr, "warning: "+warning)
	}
	if r.ReadAs != nil {
		a.printReadAs(r.Position, r.ReadAs)
	}
	if a.json() {
		return print.JSONLine(a.stdout, r)
	}
	fmt.Fprintf(a.stdout, "%-9s  %s\n", r.Result, r.Name)
	if len(r.Completed) > 0 {
		fmt.Fprintf(a.stderr, "note: %s: from the policy %s: %s\n", cmp.Or(r.Name, "the policy"), policy.DefaultName, strings.Join(r.Completed, ", "))
	}
	if r.Plan != nil {
		fmt.Fprintln(a.stdout, r.Plan)
	}
	return nil
}

func (a *app) diffPolicies(ctx context.Context, from []string) error {
	return result(a, func(change *operate.PolicyChange) error {
		table := a.newTable("FIELD", "OLD", "NEW")
		if len(change.Differences) == 0 {
			table = a.newTable("no difference")
		}
		for _, d := range change.Differences {
			table.Row(d.Field, definitions.Text(d.Old), definitions.Text(d.New))
		}
		if change.Plan != nil {
			table.Row(change.Plan)
		}
		return table.Flush()
	})(a.inputs().ComparePolicies(ctx, from[0], from[1]))
}
