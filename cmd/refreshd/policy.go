package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

func policyCommand(a *app) *cobra.Command {
	return group("policy", "Save, show, check and compare policies",
		policyPutCommand(a), policyGetCommand(a), policyLsCommand(a), policyRmCommand(a),
		policyCheckCommand(a), policyEnglishCommand(a), policyDiffCommand(a))
}

const policySourceText = `A policy is read from a file, from standard input (-), or by the name of a stored one where no file is called so. It may be
written in YAML, in JSON or in English. Of one in English, or with a rule in English, put and check tell how it was read: in canonical sentences, with
the next three times of its rule.`

// aboutPolicies is a command about the policies that its arguments name.
func aboutPolicies(use, short string, count int, do func(ctx context.Context, from []string) error) *cobra.Command {
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

// eachPolicy is a command that does something with each policy that its argument names, the first of which has number 0.
func (a *app) eachPolicy(use, short string, do func(i int, source definitions.Source) error) *cobra.Command {
	return aboutPolicies(use, short, 1, func(ctx context.Context, from []string) error {
		sources, err := a.readPolicies(ctx, from[0])
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

func policyGetCommand(a *app) *cobra.Command {
	return a.eachPolicy("get FILE|-|NAME", "Show policies in their canonical form: YAML, or JSON with -o json",
		func(i int, source definitions.Source) error {
			if a.json() {
				return a.printJSON(source.Policy.Explicit())
			}
			if i > 0 {
				fmt.Fprintln(a.stdout, "---")
			}
			return definitions.WriteYAML(a.stdout, source.Policy)
		})
}

func policyEnglishCommand(a *app) *cobra.Command {
	return a.eachPolicy("english FILE|-|NAME", "Show policies in English; policy put and check read it back",
		func(i int, source definitions.Source) error {
			text := definitions.English(source.Policy)
			if a.json() {
				return a.printJSON(map[string]string{"name": source.Policy.Name, "english": text})
			}
			if i > 0 {
				fmt.Fprintln(a.stdout)
			}
			fmt.Fprint(a.stdout, text)
			return nil
		})
}

func policyCheckCommand(a *app) *cobra.Command {
	var strict, warned bool
	command := a.eachPolicy("check FILE|-|NAME", "Check policies: errors with their line, and warnings of what is seldom meant",
		func(_ int, source definitions.Source) error {
			now := time.Now()
			outcome := policyOutcome{Name: source.Policy.Name, Result: "ok", Warnings: a.warnPolicy(source, now), Completed: source.Taken(),
				ReadAs: a.readAs(source.Position, source.ReadAs(now))}
			warned = warned || len(outcome.Warnings) > 0
			return a.printOutcome(outcome)
		})
	command.PostRunE = func(*cobra.Command, []string) error {
		if strict && warned {
			return errReported
		}
		return nil
	}
	command.Flags().BoolVar(&strict, "strict", false, "let a warning fail the check")
	return command
}

// warnPolicy prints what is seldom meant in a policy, and returns it.
func (a *app) warnPolicy(source definitions.Source, now time.Time) []string {
	return a.warn(source.Position, definitions.LintPolicy(source.Document, source.Policy, now))
}

// warn prints warnings, each with its position, and returns them.
func (a *app) warn(position func(field string) string, warnings []policy.Warning) []string {
	texts := make([]string, len(warnings))
	for i, w := range warnings {
		texts[i] = plain(position(w.Field) + ": " + w.String())
		fmt.Fprintln(a.stderr, "warning: "+texts[i])
	}
	return texts
}

// readAs tells how what was written in English was read, and returns it; nil: nothing was.
func (a *app) readAs(position func(field string) string, read *schedule.Understood) *schedule.Understood {
	if read != nil {
		fmt.Fprintln(a.stderr, "read as: "+plain(position("")+": "+read.String()))
	}
	return read
}

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
	if before.Stored {
		err = a.withQueue(ctx, func(queue *store.Queue) error {
			plan, err = measureImpact(ctx, queue, before.Policy.Name, after.Policy)
			return err
		})
	}
	if err != nil {
		return err
	}
	differences := definitions.Compare(before.Policy, after.Policy)
	if a.json() {
		return a.printJSON(map[string]any{"differences": differences, "plan": plan})
	}
	table := a.newTable("FIELD", "OLD", "NEW")
	if len(differences) == 0 {
		table = a.newTable("no difference")
	}
	for _, d := range differences {
		table.Row(d.Field, definitions.Text(d.Old), definitions.Text(d.New))
	}
	if plan != nil {
		table.Row(plan.String())
	}
	return table.Flush()
}

func policyRmCommand(a *app) *cobra.Command {
	var force bool
	command := aboutPolicies("rm NAME", "Remove a stored policy; refused while models use it", 1,
		func(ctx context.Context, names []string) error {
			return a.withQueue(ctx, func(queue *store.Queue) error { return a.rmPolicy(ctx, queue, names[0], force) })
		})
	command.Flags().BoolVar(&force, "force", false, "remove it all the same: its models then run under the default policy")
	command.Long = command.Short
	return command
}

func (a *app) rmPolicy(ctx context.Context, queue *store.Queue, name string, force bool) error {
	if !force {
		used := 0
		if err := eachUser(ctx, queue, name, func(*store.Record) { used++ }); err != nil {
			return err
		}
		if used > 0 {
			return fmt.Errorf("%s: expected a policy that no model uses, found %d; --force removes it all the same", name, used)
		}
	}
	removed, err := queue.Fleet().RemovePolicy(ctx, name)
	if err != nil {
		return err
	}
	if !removed {
		return fmt.Errorf("%s: expected the name of a stored policy, found none of that name", name)
	}
	return a.printOutcome(policyOutcome{Name: name, Result: operate.ResultRemoved, Warnings: []string{}})
}

// policyView is a stored policy in a list, as -o json shows it.
type policyView struct {
	Name     string         `json:"name"`
	Readable bool           `json:"readable"`
	Policy   *policy.Policy `json:"policy"` // null: it cannot be read
}

func policyLsCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "ls", Short: "List the stored policies", Args: cobra.NoArgs, RunE: a.onStored(a.lsPolicies)}
}

func (a *app) lsPolicies(ctx context.Context, o operate.Operator, _ []string) error {
	store := o.Queue.Parts[0]
	names, err := store.Report().PolicyNames(ctx)
	if err != nil {
		return err
	}
	table := a.newTable("NAME", "TIMEOUT", "RETRIES", "SCHEDULE")
	for _, name := range names {
		p, err := storedPolicy(ctx, store, name)
		if err != nil {
			return err
		}
		switch {
		case a.json():
			if err := print.JSONLine(a.stdout, policyView{Name: name, Readable: p != nil, Policy: p}); err != nil {
				return err
			}
		case p == nil:
			table.Row(name, "cannot be read", "", "")
		default:
			timeout, retries, rule := definitions.Brief(*p)
			table.Row(p.Name, timeout, retries, rule)
		}
	}
	if a.json() {
		return nil
	}
	return table.Flush()
}

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
		return print.JSONLine(a.stdout, outcome)
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
		outcome.Result = operate.ResultUnchanged
	default:
		outcome.Result = map[bool]string{true: operate.ResultUpdated, false: operate.ResultCreated}[before != nil]
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
