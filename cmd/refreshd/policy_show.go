package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy/english"
	"github.com/refreshd/refreshd/scripts"
)

func policyGetCommand(a *app) *cobra.Command {
	return a.aboutPolicies("get FILE|-|NAME", "Show policies in their canonical form: YAML, or JSON with -o json", 1,
		func(ctx context.Context, from []string) error {
			return a.eachPolicy(ctx, from[0], func(i int, source *policySource) error { return a.printPolicy(i, source.policy) })
		})
}

// eachPolicy visits the policies of a file, or the stored one of that name.
func (a *app) eachPolicy(ctx context.Context, from string, visit func(int, *policySource) error) error {
	sources, err := a.readPolicySources(ctx, from)
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
	return writeYAML(a.stdout, policy)
}

// writeYAML prints the canonical form with its fields in their order: JSON is YAML, so that its nodes only lose their braces.
func writeYAML(to io.Writer, policy policy.Policy) error {
	text, err := json.Marshal(policy)
	if err != nil {
		return fmt.Errorf("encode policy: %w", err)
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return fmt.Errorf("render policy: %w", err)
	}
	blockStyle(&node, 0)
	encoder := yaml.NewEncoder(to)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return fmt.Errorf("render policy: %w", err)
	}
	return encoder.Close()
}

// blockStyle gives the fields lines of their own and leaves what stands in them on one.
func blockStyle(node *yaml.Node, depth int) {
	if node.Kind == yaml.ScalarNode {
		node.Style &^= yaml.DoubleQuotedStyle // the encoder quotes what needs it
	}
	if node.Kind == yaml.DocumentNode || depth == 1 && node.Kind == yaml.MappingNode {
		node.Style = 0
	}
	for _, child := range node.Content {
		blockStyle(child, depth+1)
	}
}

func policyEnglishCommand(a *app) *cobra.Command {
	return a.aboutPolicies("english FILE|-|NAME", "Show policies in English; policy put and check read it back", 1,
		func(ctx context.Context, from []string) error {
			return a.eachPolicy(ctx, from[0], func(i int, source *policySource) error { return a.printEnglish(i, source.policy) })
		})
}

func (a *app) printEnglish(i int, policy policy.Policy) error {
	text := english.Print(policy)
	if a.json() {
		return a.printJSON(map[string]string{"name": policy.Name, "english": text})
	}
	if i > 0 {
		fmt.Fprintln(a.stdout)
	}
	_, err := io.WriteString(a.stdout, text)
	return err
}

// policyFields is the canonical form of a policy as fields.
func policyFields(policy policy.Policy) (fields map[string]any, err error) {
	text, err := json.Marshal(policy)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		return nil, fmt.Errorf("encode policy: %w", err)
	}
	return fields, nil
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
	err := a.eachPolicy(ctx, from, func(_ int, source *policySource) error {
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
func (a *app) warn(source *policySource, now time.Time) []string {
	warnings := []string{}
	tell := func(w policy.Warning) {
		text := plain(source.place(w.Field) + ": " + w.String())
		warnings = append(warnings, text)
		fmt.Fprintln(a.stderr, "warning: "+text)
	}
	if fields, ok := source.value.(map[string]any); ok && fields["timeout"] == nil {
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

// difference is one field in which two policies differ.
type difference struct {
	Field string `json:"field"`
	Old   any    `json:"old"`
	New   any    `json:"new"`
}

func (a *app) diffPolicies(ctx context.Context, from []string) error {
	before, err := a.readPolicySource(ctx, from[0])
	if err != nil {
		return err
	}
	after, err := a.readPolicySource(ctx, from[1])
	if err != nil {
		return err
	}
	differences, err := comparePolicies(before.policy, after.policy)
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
	return a.tellDifferences(differences, plan)
}

// comparePolicies lists the fields of the canonical forms that differ, but for the name.
func comparePolicies(before, after policy.Policy) ([]difference, error) {
	old, err := policyFields(before)
	if err != nil {
		return nil, err
	}
	changed, err := policyFields(after)
	if err != nil {
		return nil, err
	}
	differences := []difference{}
	names := slices.AppendSeq(slices.Collect(maps.Keys(old)), maps.Keys(changed))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name != "name" && compact(old[name]) != compact(changed[name]) {
			differences = append(differences, difference{name, old[name], changed[name]})
		}
	}
	return differences, nil
}

// compact renders a field of a canonical form on one line; "-" is an absent one.
func compact(value any) string {
	if value == nil {
		return "-"
	}
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

func (a *app) tellDifferences(differences []difference, plan *impact) error {
	if a.json() {
		return a.printJSON(struct {
			Differences []difference `json:"differences"`
			Plan        *impact      `json:"plan"`
		}{differences, plan})
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	if len(differences) == 0 {
		fmt.Fprintln(table, "no difference")
	} else {
		fmt.Fprintln(table, "FIELD\tOLD\tNEW")
	}
	for _, d := range differences {
		fmt.Fprintf(table, "%s\t%s\t%s\n", d.Field, plain(compact(d.Old)), plain(compact(d.New)))
	}
	if plan != nil {
		fmt.Fprintln(table, plan)
	}
	return table.Flush()
}
