package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/words"
)

// bindEnding adds the flags that say when something ends.
func bindEnding(flags *pflag.FlagSet, e *operate.Ending) {
	flags.StringVar(&e.Until, "until", "", "ends at `TIME`, as in 2026-11-24T06:00:00Z")
	flags.StringVar(&e.For, "for", "", "ends after `DURATION`, such as 2h")
}

func holdCommand(a *app) *cobra.Command {
	var r operate.HoldRequest
	command := &cobra.Command{
		Use: "hold", Short: "Keep models from starting, for a while or until they are released", Args: cobra.NoArgs,
		Long: `No model that the selector picks starts from now on; without -l that is the whole queue. What is due waits, and starts once when the hold ends.
What it waits counts neither as an attempt nor towards giving up. Attempts that run are finished, or with --cancel taken back, uncounted.
refreshd hold ls shows the holds, refreshd release ends one.`,
		RunE: a.operates(func(ctx context.Context, o operate.Operator, _ []string) error {
			hold, bulk, err := o.Hold(ctx, r)
			if err == nil && bulk != "" {
				err = a.follow(ctx, o, bulk)
			}
			if err != nil {
				return err
			}
			return a.printHolds([]operate.Hold{hold})
		}),
	}
	flags := command.Flags()
	flags.StringVarP(&r.Selector, "selector", "l", "", "models that `SELECTOR` picks, such as tenant=t1 (default all)")
	flags.StringVar(&r.Reason, "reason", "", "`TEXT` for people: why (required)")
	flags.StringVar(&r.ID, "id", "", "`NAME` of the hold; the same again changes it (default a new one)")
	flags.StringVar(&r.Within, "within", "", "spread the starts at its end over `DURATION` (default all at once)")
	flags.BoolVar(&r.Cancel, "cancel", false, "take back the attempts that are queued or running, uncounted")
	bindEnding(flags, &r.Ending)
	a.bindBy(flags)
	command.AddCommand(&cobra.Command{
		Use: "ls", Short: "List the holds", Args: cobra.NoArgs,
		RunE: a.operates(func(ctx context.Context, o operate.Operator, _ []string) error {
			holds, err := o.Holds(ctx)
			if err != nil {
				return err
			}
			return a.printHolds(holds)
		}),
	})
	return command
}

func releaseCommand(a *app) *cobra.Command {
	within := ""
	command := &cobra.Command{
		Use: "release [ID]", Short: "End a hold, without ID that of the whole queue or the only one: what waits for it starts once", Args: cobra.MaximumNArgs(1),
		RunE: a.operates(func(ctx context.Context, o operate.Operator, ids []string) error {
			hold, err := o.Release(ctx, append(ids, "")[0], within)
			if err != nil {
				return err
			}
			return a.print(map[string]any{"id": hold.ID, "released": true, "parked": hold.Parked}, [][2]any{
				{"released", hold.ID},
				{"parked", words.Count(int(hold.Parked), "model starts", "models start") + " within " + document.FormatDuration(max(hold.Within, time.Second))},
			})
		}),
	}
	command.Flags().StringVar(&within, "within", "", "spread the starts over `DURATION` (default as the hold says)")
	return command
}

func (a *app) printHolds(holds []operate.Hold) error {
	return printList(a, holds, []any{"HOLD", "MODELS", "SINCE", "UNTIL", "PARKED", "BY", "REASON"}, func(h *operate.Hold) []any {
		var until any = h.Until
		switch {
		case h.Ended:
			until = "letting go"
		case h.Until.IsZero():
			until = "released"
		}
		return []any{h.ID, cmp.Or(h.Selector, "all"), h.Since, until, h.Parked, h.By, h.Reason}
	})
}

func calendarCommand(a *app) *cobra.Command {
	command := group("calendar", "Keep models from starting by schedule: holidays, nightly maintenance",
		&cobra.Command{
			Use: "put FILE ...", Short: "Store the calendars of YAML or JSON files (- is standard input)", Args: cobra.MinimumNArgs(1),
			RunE: a.operates(func(ctx context.Context, o operate.Operator, files []string) error {
				calendars, err := a.readCalendars(files)
				if err != nil {
					return err
				}
				return a.printCalendars(o.PutCalendars(ctx, calendars))
			}),
		},
		&cobra.Command{
			Use: "ls", Short: "List the calendars, and when each is closed next", Args: cobra.NoArgs,
			RunE: a.operates(func(ctx context.Context, o operate.Operator, _ []string) error {
				return a.printCalendars(o.Calendars(ctx))
			}),
		},
		&cobra.Command{
			Use: "rm NAME", Short: "Forget a calendar", Args: cobra.ExactArgs(1),
			RunE: a.operates(func(ctx context.Context, o operate.Operator, names []string) error {
				return o.RemoveCalendar(ctx, names[0])
			}),
		})
	command.Long = `A calendar is closed from each occurrence of a rule on, for a while: {name: nightly, rrule: "FREQ=DAILY;BYHOUR=2", timezone: Europe/Berlin, for: 2h}. Models of
a policy that names it (closed: [nightly]) do not start then. What is due waits, and starts once when it opens; what it waits counts for nothing.`
	return command
}

func (a *app) readCalendars(files []string) (calendars []schedule.Calendar, err error) {
	for _, file := range files {
		name, in, err := a.openInput(file)
		if err != nil {
			return nil, err
		}
		read, err := definitions.ReadCalendars(name, in)
		if err := cmp.Or(err, in.Close()); err != nil {
			return nil, err
		}
		calendars = append(calendars, read...)
	}
	return calendars, nil
}

func (a *app) printCalendars(calendars []operate.Calendar, err error) error {
	for _, c := range calendars {
		text := "never closed"
		switch {
		case c.Problem != "":
			text = c.Problem
		case c.Closed:
			text = "closed until " + model.FormatTime(c.Until)
		case !c.From.IsZero():
			text = "closed from " + model.FormatTime(c.From) + " until " + model.FormatTime(c.Until)
		}
		err = cmp.Or(err, a.printLine(c, fmt.Sprintf("%s: %s (%s for %s)", c.Name, text, c.Rule, document.FormatDuration(c.For))))
	}
	return err
}
