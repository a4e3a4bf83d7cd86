package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

func putCommand(a *app) *cobra.Command {
	var format string
	var verbose bool
	command := a.operates("put FILE|-", "Save models from YAML, JSON or JSON lines", oneFile,
		func(ctx context.Context, o operate.Operator, files []string) error {
			return a.put(ctx, o, files[0], format, verbose)
		}, func() error { return oneOf("format", format, definitions.Formats) })
	command.Long = `Save the models of a file, or of standard input.

YAML may hold many documents, or a list; JSON an object, several, or a list; both are read to the end before the first
model is saved, so that a file cut off in the middle saves nothing. JSON lines (an object on each line) are saved as they
are read, so that a million of them need no memory. In a payload of YAML 01234, 1_000, yes and 12:30 are texts; a number that JSON cannot
hold as it is written (0x1F, +5, .5) is refused, and so is a field that stands twice.

What model get -o json and model ls -o json show is saved again too, edited or not: of its fields only those of the
definition count. A document with an error is named and makes the exit code 1; the others are saved. To save what is saved already changes
nothing. At the end it says how many models it has saved; with --verbose it names each. Of rules in English it shows
once how each was read: in a canonical sentence, with its next three times.

The file must be a regular one. YAML and JSON may have 64 MiB, a document 4 MiB.`
	a.bindBy(command.Flags())
	command.Flags().BoolVar(&verbose, "verbose", false, "name each model that is saved")
	command.Flags().StringVar(&format, "format", definitions.FormatAuto, "`FORMAT` of the file: "+strings.Join(definitions.Formats, ", "))
	return command
}

func (a *app) put(ctx context.Context, o operate.Operator, path, format string, verbose bool) error {
	name, in, err := a.openInput(path)
	if err != nil {
		return err
	}
	defer in.Close()
	tally, err := o.Save(ctx, func(take func(definitions.Model) error) error {
		return definitions.ReadModels(name, a.showProgress(in), format, take)
	}, a.printOutcomes(verbose))
	for _, warning := range tally.Warnings {
		text := "warning: " + warning.Text
		if warning.Models > 1 {
			text += fmt.Sprintf(" (%d models)", warning.Models)
		}
		fmt.Fprintln(a.stderr, text)
	}
	if err != nil {
		return err
	}
	if r := tally.Results; !a.json() {
		fmt.Fprintf(a.stdout, "%s: %d created, %d updated, %d unchanged, %d refused\n",
			words.Count(tally.Commands, "model", "models"), r[operate.ResultCreated], r[operate.ResultUpdated], r[operate.ResultUnchanged], r[operate.ResultRefused])
	}
	return reported(tally.Refused())
}

// printOutcomes returns a function that prints the outcome of commands; unless verbose, a table has only the refused ones.
func (a *app) printOutcomes(verbose bool) func([]operate.Outcome) error {
	return func(outcomes []operate.Outcome) error {
		var lines strings.Builder
		for _, o := range outcomes {
			if o.Error != "" {
				o.Error = hint.Add(o.Error, o.Refused, hint.CommandLine)
				a.printProblem(o.UID, hint.Nearest(o.Error, o.Refused))
			}
			if o.ReadAs != nil {
				a.printReadAs(o.Position, o.ReadAs)
			}
			if a.json() {
				if err := print.JSONLine(&lines, o); err != nil {
					return err
				}
			} else if o.Error == "" && verbose {
				fmt.Fprintf(&lines, "%-9s  %s\n", o.Result, o.UID)
			}
		}
		_, err := io.WriteString(a.stdout, lines.String())
		return err
	}
}

func (a *app) printReadAs(position string, read fmt.Stringer) {
	fmt.Fprintln(a.stderr, "read as: "+plain(position+": "+read.String()))
}

func lsCommand(a *app) *cobra.Command {
	var r operate.ListRequest
	command := a.onStored("ls", "List models, in no order or sorted, all or page by page", cobra.NoArgs,
		func(ctx context.Context, o operate.Operator, _ []string) error {
			r.Brief = !a.json()
			printed := 0
			next, err := o.List(ctx, r, func(found []operate.ListedModel) error {
				if printed == 0 && len(found) > 0 && !a.json() {
					fmt.Fprintf(a.stdout, lsRow, "UID", "STATUS", "REFRESH AT", "NO", "BECAUSE", "LAST REASON")
				}
				printed += len(found)
				return a.printModels(found)
			})
			if printed == 0 && err == nil && !a.json() {
				fmt.Fprintln(a.stdout, "none")
			}
			if next != "" {
				fmt.Fprintf(a.stderr, "there may be more: --after %s\n", next)
			}
			return a.warnOfNoMatch(ctx, o, r.Selector, printed == 0 && r.After == "", err)
		}, r.Validate)
	bindSelector(command.Flags(), &r.Selector)
	command.Flags().StringVar(&r.Status, "status", "", "only models with this `STATUS`, as -l status=STATUS: "+strings.Join(model.SelectStatuses, ", "))
	command.Flags().StringVar(&r.Prefix, "prefix", "", "only models whose uid begins with `TEXT`, as -l uid=TEXT*")
	command.Flags().IntVar(&r.Limit, "limit", 0, "at most `N` models (default all); stderr has the cursor of the next page")
	command.Flags().StringVar(&r.After, "after", "", "the page behind the one with this `CURSOR`")
	command.Flags().StringVar(&r.Sort, "sort", "", "`ORDER`: due, those that wait by their next start, or failing, those that fail by since when (default none)")
	return command
}

// lsRow has fixed widths, because rows are printed as they are found.
const lsRow = "%-32s  %-10s  %-20s  %3v  %-40s  %s\n"

func (a *app) printModels(found []operate.ListedModel) error {
	var lines strings.Builder
	for _, m := range found {
		if a.json() {
			if err := print.JSONLine(&lines, m); err != nil {
				return err
			}
			continue
		}
		reason := m.LastReason
		if !m.FailingSince.IsZero() {
			reason = "since " + print.Time(m.FailingSince) + ": " + reason
		}
		row := fmt.Sprintf(lsRow, plain(m.UID), m.Status, print.Time(m.RefreshAt), m.AttemptNo, plain(m.Because), plain(reason))
		lines.WriteString(strings.TrimRight(row, " \n") + "\n")
	}
	_, err := io.WriteString(a.stdout, lines.String())
	return err
}

var oneFile = exactly(1, "one file, or - for standard input")

// exactly requires a number of arguments; what describes them.
func exactly(count int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != count {
			return fmt.Errorf("expected %s, found %d arguments", what, len(args))
		}
		return nil
	}
}

// openInput opens a file, or standard input (-). The name is for people.
func (a *app) openInput(path string) (name string, in io.ReadCloser, err error) {
	if path == "-" {
		return "standard input", io.NopCloser(a.stdin), nil
	}
	info, err := os.Stat(path)
	if err == nil {
		err = definitions.CheckFile(path, info)
	}
	if err != nil {
		return path, nil, err
	}
	in, err = os.Open(path)
	return path, in, err
}

func (a *app) inputs() operate.Inputs {
	return operate.Inputs{Open: a.openInput, Connect: a.withOperator, Known: a.redis != "", Note: a.report}
}

// progressOn returns a bar on the terminal; nil: stderr is no terminal, or results go to the same one.
func (a *app) progressOn(beside io.Writer, size int64, options ...progressbar.Option) *progressbar.ProgressBar {
	errors, is := a.stderr.(*os.File)
	if !is || !isTerminal(errors) || isTerminal(beside) {
		return nil
	}
	return progressbar.NewOptions64(size, append(options, progressbar.OptionSetWriter(errors), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())...)
}

// showProgress returns a reader that draws the progress of in.
func (a *app) showProgress(in io.Reader) io.Reader {
	size := int64(-1)
	if file, is := in.(*os.File); is {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	bar := a.progressOn(a.stdout, size, progressbar.OptionShowBytes(true))
	if bar == nil {
		return in
	}
	return new(progressbar.NewReader(in, bar))
}
