package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/scripts"
)

func policyCommand(a *app) *cobra.Command {
	return group("policy", "Save, show, check and compare policies",
		policyPutCommand(a), policyGetCommand(a), policyLsCommand(a), policyRmCommand(a),
		policyCheckCommand(a), policyEnglishCommand(a), policyDiffCommand(a))
}

const policySourceText = `A policy is read from a file, from standard input (-), or by the name of a stored one where no file is called so. It may be
written in YAML, in JSON or in English.`

// aboutPolicies is a command about the policies that its arguments name.
func (a *app) aboutPolicies(use, short string, count int, do func(ctx context.Context, from []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + policySourceText,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != count {
				return fmt.Errorf("expected %d of: a file, - or the name of a stored policy; found %d arguments", count, len(args))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error { return do(command.Context(), args) },
	}
}

func policyPutCommand(a *app) *cobra.Command {
	var name string
	var plan bool
	command := a.aboutPolicies("put FILE|-|NAME", "Store policies under their names; models take notice at their next decision", 1,
		func(ctx context.Context, from []string) error { return a.putPolicies(ctx, from[0], name, plan) })
	command.Flags().StringVar(&name, "name", "", "`NAME` to store the policy under, instead of its own")
	command.Flags().BoolVar(&plan, "plan", false, "store nothing; say how many models would change, and how many are due at once")
	return command
}

// policyOutcome is what is told of one policy with -o json: every field is always there.
type policyOutcome struct {
	Name     string   `json:"name"`
	Result   string   `json:"result"`
	Warnings []string `json:"warnings"`
	Plan     *impact  `json:"plan"` // null: none was asked for
}

const resultPlanned = "planned"

func (a *app) putPolicies(ctx context.Context, from, name string, plan bool) error {
	sources, err := a.readPolicies(ctx, from)
	if err != nil {
		return err
	}
	if name != "" && len(sources) > 1 {
		return usagef("--name: expected one policy to be called so, found %d", len(sources))
	}
	for i := range sources {
		source := &sources[i]
		if name != "" {
			source.policy.Name = name
		}
		if err := policy.ValidateName(source.policy.Name); err != nil {
			return source.At(err)
		}
	}
	return a.withStore(ctx, func(store *scripts.Store) error {
		for _, source := range sources {
			if err := a.putPolicy(ctx, store, source, plan); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) putPolicy(ctx context.Context, store *scripts.Store, source policySource, plan bool) error {
	policy := source.policy
	before, stored, err := storedPolicy(ctx, store, policy.Name)
	if err != nil {
		return err
	}
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	told := policyOutcome{Name: policy.Name, Result: resultUpdated, Warnings: a.warn(source, now)}
	switch {
	case plan:
		told.Result = resultPlanned
		if told.Plan, err = measureImpact(ctx, store, policy.Name, policy); err != nil {
			return err
		}
	case !stored:
		told.Result = resultCreated
	case before.Equal(policy):
		told.Result = resultUnchanged
	}
	if told.Result == resultCreated || told.Result == resultUpdated {
		if err := store.PutPolicy(ctx, policy); err != nil {
			return err
		}
	}
	return a.tellPolicy(told)
}

func (a *app) tellPolicy(told policyOutcome) error {
	if a.json() {
		return printJSONLine(a.stdout, told)
	}
	fmt.Fprintf(a.stdout, "%-9s  %s\n", told.Result, told.Name)
	if told.Plan != nil {
		fmt.Fprintln(a.stdout, told.Plan)
	}
	return nil
}

// storedPolicy reads a policy that may be stored. One that cannot be read is as good as none: it is about to be replaced.
func storedPolicy(ctx context.Context, store *scripts.Store, name string) (p policy.Policy, stored bool, err error) {
	text, stored, err := store.PolicyText(ctx, name)
	if err != nil || !stored {
		return p, false, err
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return p, false, nil
	}
	p, unreadable := policy.Parse(value)
	return p, unreadable == nil, nil
}

func policyRmCommand(a *app) *cobra.Command {
	var force bool
	command := a.aboutPolicies("rm NAME", "Remove a stored policy; refused while models use it", 1,
		func(ctx context.Context, names []string) error {
			return a.withStore(ctx, func(store *scripts.Store) error { return a.rmPolicy(ctx, store, names[0], force) })
		})
	command.Flags().BoolVar(&force, "force", false, "remove it all the same: its models then run under the default policy")
	command.Long = command.Short
	return command
}

func (a *app) rmPolicy(ctx context.Context, store *scripts.Store, name string, force bool) error {
	if !force {
		used, err := countUsers(ctx, store, name)
		if err != nil {
			return err
		}
		if used > 0 {
			return fmt.Errorf("%s: expected a policy that no model uses, found %d; --force removes it all the same", name, used)
		}
	}
	removed, err := store.RemovePolicy(ctx, name)
	if err != nil {
		return err
	}
	if !removed {
		return fmt.Errorf("%s: expected the name of a stored policy, found none of that name", name)
	}
	return a.tellPolicy(policyOutcome{Name: name, Result: resultRemoved, Warnings: []string{}})
}

func policyLsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the stored policies", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withStore(command.Context(), func(store *scripts.Store) error { return a.lsPolicies(command.Context(), store) })
		},
	}
}

func (a *app) lsPolicies(ctx context.Context, store *scripts.Store) error {
	names, err := store.PolicyNames(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	if !a.json() {
		fmt.Fprintln(table, "NAME\tTIMEOUT\tRETRIES\tSCHEDULE")
	}
	for _, name := range names {
		policy, stored, err := storedPolicy(ctx, store, name)
		if err != nil {
			return err
		}
		policy.Name = name
		switch {
		case a.json():
			err = printJSONLine(a.stdout, newPolicyView(policy, stored))
		case !stored:
			fmt.Fprintf(table, "%s\tcannot be read\t\t\n", plain(name))
		default:
			fmt.Fprintf(table, "%s\n", strings.Join(policyRow(policy), "\t"))
		}
		if err != nil {
			return err
		}
	}
	return table.Flush()
}

// policyView is a stored policy in a list.
type policyView struct {
	Name     string         `json:"name"`
	Readable bool           `json:"readable"`
	Policy   *policy.Policy `json:"policy"` // null: it cannot be read
}

func newPolicyView(policy policy.Policy, readable bool) policyView {
	view := policyView{Name: policy.Name, Readable: readable}
	if readable {
		view.Policy = &policy
	}
	return view
}

func policyRow(p policy.Policy) []string {
	timeout, retries, schedule := "none", "-", "-"
	if p.Timeout > 0 {
		timeout = document.FormatDuration(p.Timeout)
	}
	switch count := p.MaxRetries(); count {
	case 0:
	case policy.Unlimited:
		retries = "unlimited"
	default:
		retries = fmt.Sprint(count)
	}
	if p.Rule != "" {
		schedule = strings.ReplaceAll(p.Rule, "\n", " ")
	}
	return []string{plain(p.Name), timeout, retries, plain(schedule)}
}
