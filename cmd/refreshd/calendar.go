package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

func calendarCommand(a *app) *cobra.Command {
	command := group("calendar", "Keep models from starting by schedule: holidays, nightly maintenance",
		&cobra.Command{
			Use: "put FILE ...", Short: "Store the calendars of YAML or JSON files (- is standard input)", Args: cobra.MinimumNArgs(1),
			RunE: a.onQueue(a.putCalendars),
		},
		&cobra.Command{Use: "ls", Short: "List the calendars, and when each is closed next", Args: cobra.NoArgs, RunE: a.onQueue(a.listCalendars)},
		&cobra.Command{Use: "rm NAME", Short: "Forget a calendar", Args: cobra.ExactArgs(1), RunE: a.onQueue(a.removeCalendar)})
	command.Long = `A calendar is closed from each occurrence of a rule on, for a while: {name: nightly, rrule: "FREQ=DAILY;BYHOUR=2", timezone: Europe/Berlin, for: 2h}. Models of
a policy that names it (closed: [nightly]) do not start then. What is due waits, and starts once when it opens; what it waits counts for nothing.`
	return command
}

func (a *app) putCalendars(ctx context.Context, queue *store.Queue, files []string) error {
	var calendars []schedule.Calendar
	for _, file := range files {
		name, in, err := a.openInput(file)
		if err != nil {
			return err
		}
		read, err := definitions.ReadCalendars(name, in)
		if err := cmp.Or(err, in.Close()); err != nil {
			return err
		}
		calendars = append(calendars, read...)
	}
	for _, calendar := range calendars {
		if err := queue.Fleet().PutCalendar(ctx, calendar); err != nil {
			return err
		}
		if err := a.tellCalendar(ctx, queue, calendar); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) removeCalendar(ctx context.Context, queue *store.Queue, names []string) error {
	removed, err := queue.Fleet().RemoveCalendar(ctx, names[0])
	if err == nil && !removed {
		err = fmt.Errorf("%s: expected the name of a calendar, found none of that name", plain(names[0]))
	}
	return err
}

// calendarView is a calendar as -o json shows it.
type calendarView struct {
	schedule.Calendar `json:"calendar"`
	Closed            bool    `json:"closed"` // now
	From              *string `json:"from"`   // when it is closed next, or since when it is
	Until             *string `json:"until"`
	Problem           string  `json:"problem"`
}

func (a *app) listCalendars(ctx context.Context, queue *store.Queue, _ []string) error {
	calendars, err := queue.Parts[0].Fleet().StoredCalendars(ctx)
	if err != nil {
		return err
	}
	for _, calendar := range calendars {
		if err := a.tellCalendar(ctx, queue, calendar); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) tellCalendar(ctx context.Context, queue *store.Queue, c schedule.Calendar) error {
	now, err := queue.Parts[0].Now(ctx)
	if err != nil {
		return err
	}
	v := calendarView{Calendar: c}
	until, closed, err := c.ClosedUntil(now)
	if v.Closed = closed; closed {
		v.From, v.Until = optional(now), optional(until)
	} else if next, found, failed := c.NextClosed(now); failed == nil && found {
		v.From, v.Until = optional(next.From), optional(next.Until)
	}
	if err != nil {
		v.Problem = err.Error()
	}
	if a.json() {
		return printJSONLine(a.stdout, v)
	}
	text := "never closed"
	switch {
	case v.Problem != "":
		text = v.Problem
	case closed:
		text = "closed until " + *v.Until
	case v.From != nil:
		text = "closed from " + *v.From + " until " + *v.Until
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %s (%s for %s)\n", plain(c.Name), text, plain(c.Rule), document.FormatDuration(c.For))
	return err
}
