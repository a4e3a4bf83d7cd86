package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

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
