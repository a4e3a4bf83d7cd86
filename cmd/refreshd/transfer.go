package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/admin/transfer"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

func exportCommand(a *app) *cobra.Command {
	var selector string
	var export transfer.Export
	command := a.onStored("export", "Write models as JSON lines, sorted by uid, for model import", cobra.NoArgs,
		func(ctx context.Context, o operate.Operator, _ []string) error {
			setGCPercent(walkPercent)
			whole := true
			export.Queue, export.Fault = o.Queue, func(text string) { whole = false; a.printProblem("", text) }
			err := export.Write(ctx, a.stdout)
			return cmp.Or(err, reported(!whole))
		}, func() (err error) {
			if export.Selector, err = model.ParseSelector(selector); err != nil {
				err = usageError{err}
			}
			return err
		})
	command.Long = `Write models as JSON lines, sorted by uid, so that model import can save them in another queue or Redis. Daemons may run.

Without --state each line is a definition: {"kind":"model","uid":…,"rrule":…,"payload":…}. With --state it also has all that the queue knows of the
model ("state": the fields of its hash, "history": its ended attempts), and first stand the calendars, without -l the limits that were set, and the
policies that the models use: {"kind":"calendar",…}, {"kind":"limit",…}, {"kind":"policy",…}. Holds and open circuits are not written.
An attempt that is queued or running cannot be moved: "left_behind" names it, and model import makes the model due at once, not counted.`
	command.Flags().StringVarP(&selector, "selector", "l", "", "only models that `SELECTOR` picks, such as tenant=t1,status=failing")
	command.Flags().BoolVar(&export.State, "state", false, "with state and history, calendars, limits, and the policies in use")
	return command
}

func importCommand(a *app) *cobra.Command {
	var replace bool
	command := a.operates("import FILE|-", "Save what model export has written, with its state", oneFile,
		func(ctx context.Context, o operate.Operator, files []string) error {
			return a.importLines(ctx, &transfer.Import{Queue: o.Queue, Replace: replace, By: o.By}, files[0])
		})
	command.Long = `Save the models, policies, calendars and limits that model export has written. Daemons may run.

What is stored just as a line says stays as it is, so that an import may be repeated. What is stored otherwise is refused, unless --replace; a refused
line is named, up to ten of each kind, and the others are saved. A model with a state waits for what it waited for where it came from: one that is due
starts once. More attempts than --history-cap are not kept.`
	a.bindBy(command.Flags())
	command.Flags().BoolVar(&replace, "replace", false, "let what is stored become what the file says; attempts that run lose their fence")
	return command
}

func (a *app) importLines(ctx context.Context, i *transfer.Import, path string) error {
	name, in, err := a.openInput(path)
	if err != nil {
		return err
	}
	defer in.Close()
	i.Refused = func(line transfer.Refusal) {
		a.printProblem(line.UID, line.Error)
		if a.json() {
			_ = print.JSONLine(a.stdout, line) // the summary meets the same error
		}
	}
	began := time.Now()
	err = i.Queue.AsOneDeed(ctx, model.Deed{Verb: "model import", What: filepath.Base(name)}, func(ctx context.Context, end *model.Deed) error {
		err := i.Read(ctx, name, a.showProgress(in))
		end.Number = i.Models.Created + i.Models.Replaced
		return err
	})
	rate := float64(i.Models.All()) / max(time.Since(began), time.Millisecond).Seconds()
	refused := 0
	var counts []string
	for _, of := range []struct {
		count     transfer.Count
		one, many string
		always    bool
	}{{i.Models, "model", "models", true}, {i.Policies, "policy", "policies", true}, {i.Calendars, "calendar", "calendars", false}, {i.Limits, "limit", "limits", false}} {
		c := of.count
		if refused += c.Refused; of.always || c.All() > 0 {
			counts = append(counts, fmt.Sprintf("%s: %d created, %d replaced, %d unchanged, %d refused", words.Count(c.All(), of.one, of.many), c.Created, c.Replaced, c.Unchanged, c.Refused))
		}
	}
	var printed error
	if a.json() {
		printed = print.JSONLine(a.stdout, importView{i, rate})
	} else {
		_, printed = fmt.Fprintf(a.stdout, "%s; %.0f models/s\n", strings.Join(counts, "; "), rate)
	}
	return cmp.Or(err, printed, reported(refused > 0))
}

type importView struct {
	*transfer.Import

	ModelsPerSecond float64 `json:"models_per_second"`
}
