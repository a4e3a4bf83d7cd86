package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/admin/apply"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

func applyCommand(a *app) *cobra.Command {
	var options apply.Options
	var from string
	var planOnly bool
	command := &cobra.Command{
		Use: "apply -f DIR --owner NAME", Short: "Make what an owner has what a directory says", Args: cobra.NoArgs,
		Long: `Make the models of an owner what a directory of YAML and JSON documents says, and store its policies. A document with a uid is a model; it gets the
label owner=NAME, by which the owner's models are known. Any other one is a policy, with its name. Files must be regular ones of at most 64 MiB,
their documents of at most 4 MiB, and a link must not lead out of the directory.

It plans first, and then carries out what it has planned: a model that has changed in between is refused and named, and another apply sees it
as it is. With --plan it only prints the plan: what it would create, change and delete, and what would start at once. Where a document is refused,
nothing is applied.

What the owner has and the directory has not is deleted with --prune only, and never more than --max-delete of it. Policies are never deleted.

Exit codes: 0 done, and with --plan nothing differs; 1 failed, or something was refused; 2 wrong usage; 3 with --plan: something differs.`,
	}
	command.RunE = func(command *cobra.Command, _ []string) error {
		if from == "" {
			return usagef("--filename: expected a directory, or a file, found nothing")
		}
		if err := options.Validate(); err != nil {
			return usageError{nameFlag(command, err)}
		}
		directory, err := definitions.ReadDirectory(from)
		if err != nil {
			return err
		}
		return a.withOperator(command.Context(), func(o operate.Operator) error {
			command.SetContext(operate.Acting(command.Context(), o))
			options.By = o.By
			plan, err := apply.New(command.Context(), o.Queue, directory, options)
			if err != nil {
				return err
			}
			return a.apply(command.Context(), plan, planOnly)
		})
	}
	flags := command.Flags()
	flags.StringVarP(&from, "filename", "f", "", "`DIR` with .yaml, .yml, .json, .jsonl and .ndjson files, also below it; or one file")
	flags.StringVar(&options.Owner, "owner", "", "`NAME` of the owner: 1-60 letters, digits or _.:@/+-")
	flags.BoolVar(&planOnly, "plan", false, "change nothing; print the plan")
	flags.BoolVar(&options.Prune, "prune", false, "delete what the owner has and the directory has not")
	flags.StringVar(&options.MaxDelete, "max-delete", "5%", "most models to delete: a `NUMBER`, or a share of what the owner has, rounded up")
	flags.BoolVar(&options.Adopt, "adopt", false, "take over what the directory has and another owner has too, or nobody")
	a.bindBy(flags)
	return command
}

var errDiffers = errors.New("something differs, as reported above")

// apply carries out a plan, unless planOnly, and prints it.
func (a *app) apply(ctx context.Context, plan *apply.Plan, planOnly bool) error {
	for _, refused := range plan.Refused {
		a.printProblem("", hint.Nearest(refused.Error(), refused))
	}
	carryOut := !planOnly && len(plan.Refused) == 0
	var failed error // print the results before it
	if carryOut {
		failed = plan.CarryOut(ctx)
	}
	var lines strings.Builder
	for _, step := range plan.Steps {
		if step.Error != "" {
			a.printProblem(step.Name, step.Error)
		}
		if err := a.printStep(&lines, step); err != nil {
			return err
		}
	}
	sum := plan.Summary(carryOut)
	if !a.json() {
		lines.WriteString(summaryText(&sum, carryOut) + "\n")
	} else if err := print.JSONLine(&lines, sum); err != nil {
		return err
	}
	if _, err := io.WriteString(a.stdout, lines.String()); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return failed
	case len(plan.Refused)+sum.Models.Failed+sum.Policies.Failed > 0:
		return errReported
	case !carryOut && len(plan.Steps) > 0:
		return errDiffers
	}
	return nil
}

// maxValueText bounds a value that a plan prints, in bytes.
const maxValueText = 80

func (a *app) printStep(to io.Writer, step *apply.Step) error {
	if a.json() {
		return print.JSONLine(to, step)
	}
	short := func(value any) string { return document.Shorten(definitions.Text(value), maxValueText) }
	var parts []string
	for _, d := range step.Changes {
		parts = append(parts, fmt.Sprintf("%s: %s -> %s", d.Field, short(d.Old), short(d.New)))
	}
	if step.StartsAtOnce {
		parts = append(parts, "starts at once")
	}
	action := string(step.Action)
	if step.Error != "" {
		action = operate.ResultRefused
	}
	line := fmt.Sprintf("%-7s  %-6s  %-32s  %s", action, step.Kind, plain(step.Name), plain(strings.Join(parts, "; ")))
	_, err := fmt.Fprintln(to, strings.TrimRight(line, " "))
	return err
}

func summaryText(v *apply.Summary, carriedOut bool) string {
	doing, deleted := "to create, %d to change", "to delete"
	if carriedOut {
		doing, deleted = "created, %d changed", "deleted"
	}
	text := fmt.Sprintf("%s: %s "+doing+"; %s "+doing+", %d "+deleted+"; %d unchanged", v.Owner, words.Count(v.Policies.Create, "policy", "policies"), v.Policies.Change,
		words.Count(v.Models.Create, "model", "models"), v.Models.Change, v.Models.Delete, v.Unchanged)
	if n := v.Models.Failed + v.Policies.Failed + len(v.Refused); n > 0 {
		text += fmt.Sprintf("; %d refused", n)
	}
	if len(v.Refused) > 0 {
		text += ", so nothing is applied"
	}
	if v.AtOnce > 0 {
		text += fmt.Sprintf("; %s at once", words.Count(v.AtOnce, "model starts", "models start"))
	}
	if v.Spared > 0 {
		text += fmt.Sprintf("; %s not in the directory: --prune deletes them", words.Count(v.Spared, "model is", "models are"))
	}
	return text
}
