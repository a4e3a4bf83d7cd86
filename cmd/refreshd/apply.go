package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/care/apply"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/words"
)

// applying are the flags of apply.
type applying struct {
	apply.Options
	from, maxDelete string
	plan            bool
}

func applyCommand(a *app) *cobra.Command {
	var flags applying
	command := &cobra.Command{
		Use: "apply -f DIR --owner NAME", Short: "Make what an owner has what a directory says", Args: cobra.NoArgs,
		Long: `Make the models of an owner what a directory of YAML and JSON documents says, and store its policies. A document with a uid is a model; it gets the
label owner=NAME, by which the owner's models are known. Any other one is a policy, with its name. Files must be regular ones of at most 64 MiB,
their documents of at most 4 MiB, and a link must not lead out of the directory.

It plans first, and then carries out what it has planned: a model that has changed in between is refused and named, and another apply sees it
as it is. With --plan it only tells the plan: what it would create, change and delete, and what would start at once. Where a document is refused,
nothing is applied.

What the owner has and the directory has not is deleted with --prune only, and never more than --max-delete of it. Policies are never deleted.

Exit codes: 0 done, and with --plan nothing differs; 1 failed, or something was refused; 2 wrong usage; 3 with --plan: something differs.`,
		RunE: func(command *cobra.Command, _ []string) error { return a.apply(command.Context(), flags) },
	}
	command.Flags().StringVarP(&flags.from, "filename", "f", "", "`DIR` with .yaml, .yml, .json, .jsonl and .ndjson files, also below it; or one file")
	command.Flags().StringVar(&flags.Owner, "owner", "", "`NAME` of the owner: 1-60 letters, digits or _.:@/+-")
	command.Flags().BoolVar(&flags.plan, "plan", false, "change nothing; tell the plan")
	command.Flags().BoolVar(&flags.Prune, "prune", false, "delete what the owner has and the directory has not")
	command.Flags().StringVar(&flags.maxDelete, "max-delete", "5%", "most models to delete: a `NUMBER`, or a share of what the owner has, rounded up")
	command.Flags().BoolVar(&flags.Adopt, "adopt", false, "take over what the directory has and another owner has too, or nobody")
	a.bindBy(command.Flags())
	return command
}

func (f *applying) settle(a *app) (err error) {
	if f.from == "" {
		return usagef("--filename: expected a directory, or a file, found nothing")
	}
	if err := f.Validate(); err != nil {
		return usagef("--%w", err)
	}
	if f.MaxDelete, err = apply.ParseShare(f.maxDelete); err != nil {
		return usagef("--max-delete: %w", err)
	}
	f.By, err = a.wantedBy()
	return err
}

func (a *app) apply(ctx context.Context, flags applying) error {
	if err := flags.settle(a); err != nil {
		return err
	}
	directory, err := definitions.ReadDirectory(flags.from)
	if err != nil {
		return err
	}
	return a.withQueue(ctx, func(queue *store.Queue) error {
		plan, err := apply.New(ctx, queue, directory, flags.Options)
		if err != nil {
			return err
		}
		for _, refused := range plan.Refused {
			a.complain(refused)
		}
		if flags.plan || len(plan.Refused) > 0 {
			return a.tellPlan(plan, flags)
		}
		failed := plan.CarryOut(ctx, queue, flags.By)
		return cmp.Or(failed, a.tellApplied(plan, flags))
	})
}

// errDiffers ends a plan that has something to do.
var errDiffers = errors.New("something differs, as told above")

func (a *app) tellPlan(plan *apply.Plan, flags applying) error {
	if err := a.tellSteps(plan, flags, false); err != nil {
		return err
	}
	switch {
	case len(plan.Refused) > 0:
		return errReported
	case len(plan.Steps) > 0:
		return errDiffers
	}
	return nil
}

func (a *app) tellApplied(plan *apply.Plan, flags applying) error {
	refused := false
	for _, step := range plan.Steps {
		if step.Err != nil {
			refused = true
			a.complain(step.Problem())
		}
	}
	if err := a.tellSteps(plan, flags, true); err != nil {
		return err
	}
	if refused {
		return errReported
	}
	return nil
}

// stepView is a step of a plan, as -o json shows it: every field is always there.
type stepView struct {
	Kind   string       `json:"kind"` // policy or model
	Action apply.Action `json:"action"`
	Name   string       `json:"name"`
	// Changes are the fields that become others, of a change alone.
	Changes      []definitions.Difference `json:"changes"`
	StartsAtOnce bool                     `json:"starts_at_once"`
	RefreshAt    time.Time                `json:"refresh_at"`
	Applied      bool                     `json:"applied"`
	Error        string                   `json:"error"`
}

// applyView is the sum of a plan, as -o json shows it on the last line.
type applyView struct {
	Kind      string   `json:"kind"` // summary
	Owner     string   `json:"owner"`
	Policies  counted  `json:"policies"`
	Models    counted  `json:"models"`
	Unchanged int      `json:"unchanged"` // of both
	Owned     int      `json:"owned"`     // models that the owner had
	Spared    int      `json:"spared"`    // of these the directory has not, and nobody asked to prune
	AtOnce    int      `json:"starts_at_once"`
	Refused   []string `json:"refused"` // documents; then nothing is applied
}

// counted are steps of one kind: those of a plan, or those that were carried out.
type counted struct {
	Create int `json:"create"`
	Change int `json:"change"`
	Delete int `json:"delete"`
	Failed int `json:"failed"`
}

func (c *counted) add(step *apply.Step, carriedOut bool) {
	switch {
	case carriedOut && !step.Applied():
		c.Failed++
	case step.Action == apply.Create:
		c.Create++
	case step.Action == apply.Change:
		c.Change++
	default:
		c.Delete++
	}
}

// tellSteps prints a plan, or what has become of it.
func (a *app) tellSteps(plan *apply.Plan, flags applying, carriedOut bool) error {
	sum := applyView{
		Kind: "summary", Owner: flags.Owner, Unchanged: plan.Unchanged, Owned: plan.Owned, Spared: plan.Spared,
		Refused: append([]string{}, plan.Refused...),
	}
	var lines strings.Builder
	for _, step := range plan.Steps {
		of := &sum.Models
		if step.Policy {
			of = &sum.Policies
		}
		if of.add(step, carriedOut); step.StartsAtOnce && step.Err == nil {
			sum.AtOnce++
		}
		if err := a.tellStep(&lines, step); err != nil {
			return err
		}
	}
	if a.json() {
		if err := print.JSONLine(&lines, sum); err != nil {
			return err
		}
	} else {
		lines.WriteString(sum.text(carriedOut) + "\n")
	}
	_, err := io.WriteString(a.stdout, lines.String())
	return err
}

func (a *app) tellStep(to io.Writer, step *apply.Step) error {
	kind := map[bool]string{true: "policy", false: "model"}[step.Policy]
	if a.json() {
		v := stepView{
			Kind: kind, Action: step.Action, Name: step.Name, Changes: append([]definitions.Difference{}, step.Changes...),
			StartsAtOnce: step.StartsAtOnce, RefreshAt: step.RefreshAt, Applied: step.Applied(),
		}
		if step.Err != nil {
			v.Error = step.Problem()
		}
		return print.JSONLine(to, v)
	}
	action := string(step.Action)
	if step.Err != nil {
		action = operate.ResultRefused
	}
	line := fmt.Sprintf("%-7s  %-6s  %-32s  %s", action, kind, plain(step.Name), plain(stepText(step)))
	_, err := fmt.Fprintln(to, strings.TrimRight(line, " "))
	return err
}

// maxTold bounds how much of a value a plan shows to people, in bytes.
const maxTold = 80

// stepText says what becomes of what.
func stepText(step *apply.Step) string {
	var parts []string
	for _, d := range step.Changes {
		parts = append(parts, fmt.Sprintf("%s: %s -> %s", d.Field, short(definitions.Text(d.Old)), short(definitions.Text(d.New))))
	}
	if step.StartsAtOnce {
		parts = append(parts, "starts at once")
	}
	return strings.Join(parts, "; ")
}

func short(text string) string {
	if len(text) > maxTold {
		return strings.ToValidUTF8(text[:maxTold], "") + "…"
	}
	return text
}

func (v *applyView) text(carriedOut bool) string {
	doing, deleted := "to create, %d to change", "to delete"
	if carriedOut {
		doing, deleted = "created, %d changed", "deleted"
	}
	text := fmt.Sprintf("%s: %s "+doing+"; %s "+doing+", %d "+deleted+"; %d unchanged", v.Owner, words.Count(v.Policies.Create, "policy", "policies"), v.Policies.Change,
		words.Count(v.Models.Create, "model", "models"), v.Models.Change, v.Models.Delete, v.Unchanged)
	if n := v.Models.Failed + v.Policies.Failed + len(v.Refused); n > 0 {
		text += fmt.Sprintf("; %d refused", n)
	}
	if v.AtOnce > 0 {
		text += fmt.Sprintf("; %s at once", words.Count(v.AtOnce, "model starts", "models start"))
	}
	if v.Spared > 0 {
		text += fmt.Sprintf("; %s not in the directory: --prune deletes them", words.Count(v.Spared, "model is", "models are"))
	}
	return text
}
