package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/care/transfer"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

func exportCommand(a *app) *cobra.Command {
	var selector string
	var state bool
	command := &cobra.Command{
		Use: "export", Short: "Write models as JSON lines, sorted by uid, for model import", Args: cobra.NoArgs,
		Long: `Write models as JSON lines, sorted by uid, so that model import can save them in another queue or Redis. Daemons may run.

Without --state each line is a definition: {"kind":"model","uid":…,"payload":…,"rrule":…}. With --state it also has all that the queue knows of the
model ("state": the fields of its hash, "history": its ended attempts), and first stand the calendars, without -l the limits that were set, and the
policies that the models use: {"kind":"calendar",…}, {"kind":"limit",…}, {"kind":"policy",…}. Holds and open circuits are not written.
An attempt that is queued or running cannot be moved: "left_behind" names it, and model import makes the model due at once, not counted.`,
		RunE: func(command *cobra.Command, _ []string) error {
			picked, err := model.ParseSelector(selector)
			if err != nil {
				return usageError{err}
			}
			return a.withStored(command.Context(), func(queue *store.Queue) error {
				return a.export(command.Context(), &transfer.Export{Queue: queue, Selector: picked, State: state})
			})
		},
	}
	command.Flags().StringVarP(&selector, "selector", "l", "", "only models that `SELECTOR` picks, such as tenant=t1,status=failing")
	command.Flags().BoolVar(&state, "state", false, "with state and history, calendars, limits, and the policies in use")
	return command
}

func (a *app) export(ctx context.Context, export *transfer.Export) error {
	whole := true
	export.Fault = func(text string) { whole = false; a.complain(text) }
	if err := export.Write(ctx, a.stdout); err != nil {
		return err
	}
	if !whole {
		return errReported
	}
	return nil
}

func importCommand(a *app) *cobra.Command {
	var replace bool
	command := &cobra.Command{
		Use: "import FILE|-", Short: "Save what model export has written, with its state",
		Long: `Save the models, policies, calendars and limits that model export has written. Daemons may run.

What is stored just as a line says stays as it is, so that an import may be repeated. What is stored otherwise is refused, unless --replace; a refused
line is named, and the others are saved. A model with a state waits for what it waited for where it came from: one that is due starts once. More
attempts than --history-cap are not kept.`,
		Args: oneFile,
		RunE: func(command *cobra.Command, args []string) error {
			by, err := a.wantedBy()
			if err != nil {
				return err
			}
			return a.withQueue(command.Context(), func(queue *store.Queue) error {
				return a.importLines(command.Context(), &transfer.Import{Queue: queue, Replace: replace, By: by}, args[0])
			})
		},
	}
	a.bindBy(command.Flags())
	command.Flags().BoolVar(&replace, "replace", false, "let what is stored become what the file says; attempts that run lose their fence")
	return command
}

// refusedView is a refused line, as -o json shows it.
type refusedView struct {
	UID   string `json:"uid"`
	Field string `json:"field"` // "": the whole line
	Error string `json:"error"` // with the position
}

// importView is what became of an import, as -o json shows it.
type importView struct {
	Models          transfer.Count `json:"models"`
	Policies        transfer.Count `json:"policies"`
	Calendars       transfer.Count `json:"calendars"`
	Limits          transfer.Count `json:"limits"`
	ModelsPerSecond float64        `json:"models_per_second"`
}

func (a *app) importLines(ctx context.Context, i *transfer.Import, path string) error {
	name, in, err := a.openInput(path)
	if err != nil {
		return err
	}
	defer in.Close()
	i.Refused = a.refuseLine
	began := time.Now()
	err = i.Read(ctx, name, a.showProgress(in))
	elapsed := max(time.Since(began), time.Millisecond)
	if told := a.tellImport(i, float64(i.Models.All())/elapsed.Seconds()); err == nil {
		err = told
	}
	if err == nil && i.Models.Refused+i.Policies.Refused+i.Calendars.Refused+i.Limits.Refused > 0 {
		return errReported
	}
	return err
}

func (a *app) refuseLine(position func(field string) string, uid string, err error) {
	told := refusedView{UID: uid, Error: definitions.Document{Position: position}.At(err).Error()}
	if refused, is := errors.AsType[*document.Error](err); is {
		told.Field = refused.Field
	}
	a.complain(told.Error)
	if a.json() {
		_ = print.JSONLine(a.stdout, told) // the summary meets the same error
	}
}

func (a *app) tellImport(i *transfer.Import, rate float64) error {
	if a.json() {
		return print.JSONLine(a.stdout, importView{i.Models, i.Policies, i.Calendars, i.Limits, rate})
	}
	told := []string{tellCount(i.Models, "model", "models"), tellCount(i.Policies, "policy", "policies")}
	for _, few := range []struct {
		count     transfer.Count
		one, many string
	}{{i.Calendars, "calendar", "calendars"}, {i.Limits, "limit", "limits"}} {
		if few.count.All() > 0 {
			told = append(told, tellCount(few.count, few.one, few.many))
		}
	}
	_, err := fmt.Fprintf(a.stdout, "%s; %.0f models/s\n", strings.Join(told, "; "), rate)
	return err
}

func tellCount(c transfer.Count, one, many string) string {
	return fmt.Sprintf("%s: %d created, %d replaced, %d unchanged, %d refused", words.Count(c.All(), one, many), c.Created, c.Replaced, c.Unchanged, c.Refused)
}
