package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model"
)

func scheduleCommand(a *app) *cobra.Command {
	return group("schedule", "Look at schedules", nextCommand(a))
}

// question is which occurrences of which rule to show.
type question struct {
	rule, timezone, dtstart, after string
	count                          int
}

// maxOccurrences bounds -n.
const maxOccurrences = 1000

func nextCommand(a *app) *cobra.Command {
	var q question
	command := &cobra.Command{
		Use: "next", Short: "Show the next occurrences of a rule", Args: cobra.NoArgs,
		Long: `Show when a rule occurs, and where clocks that are changed move it. Needs no Redis.

The rule is an RRULE set (several lines, with RDATE and EXDATE), a cron expression or English. -o json prints an array of
times in UTC.`,
		Example: `  refreshd schedule next --rule "twice per day at 6 AM and 4 PM" --timezone Europe/Berlin
  refreshd schedule next --rule "0 6 * * MON-FRI" --after 2026-03-01 -n 5 -o json
  refreshd schedule next --rule "FREQ=HOURLY;INTERVAL=2" --dtstart 2026-01-01T00:30:00`,
		RunE: func(*cobra.Command, []string) error {
			answer, err := q.ask(time.Now())
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(answer.times())
			}
			return a.printOutlook(answer)
		},
	}
	command.Flags().StringVar(&q.rule, "rule", "", "`RULE`: RRULE lines, cron or English")
	command.Flags().StringVar(&q.timezone, "timezone", "", "IANA `ZONE` of the wall clocks in the rule (default UTC)")
	command.Flags().StringVar(&q.dtstart, "dtstart", "", "wall clock `TIME` from which the rule counts (default midnight of the day of --after)")
	command.Flags().StringVar(&q.after, "after", "", "`TIME` after which to look: RFC 3339, or a wall clock (default now)")
	command.Flags().IntVarP(&q.count, "count", "n", 10, "how many `N` to show")
	return command
}

// outlook is the answer to a question.
type outlook struct {
	rule     string
	zone     *time.Location
	schedule *schedule.Schedule
	next     []time.Time
	ended    bool // there are fewer than asked for
}

// ask reads the flags and walks the schedule. Every error is a wrong flag.
func (q question) ask(now time.Time) (*outlook, error) {
	if q.count < 1 || q.count > maxOccurrences {
		return nil, usagef("--count: expected 1 to %d, found %d", maxOccurrences, q.count)
	}
	after, err := q.readAfter(now)
	if err != nil {
		return nil, err
	}
	o, err := q.compile(after)
	if err != nil {
		return nil, flagError(err)
	}
	for range q.count {
		next, ok, err := o.schedule.Evaluate(after)
		if err != nil {
			return nil, err
		}
		if !ok {
			o.ended = true
			break
		}
		o.next, after = append(o.next, next), next
	}
	return o, nil
}

// readAfter returns the instant after which to look.
func (q question) readAfter(now time.Time) (time.Time, error) {
	if q.after == "" {
		return now, nil
	}
	if at, err := time.Parse(time.RFC3339, q.after); err == nil && at.Year() >= 1970 && at.Year() <= 2200 {
		return at, nil
	}
	at, err := schedule.Instant(q.after, q.timezone)
	var field *document.Error
	if errors.As(err, &field) && field.Field == "dtstart" {
		return at, usagef("--after: expected a time such as 2026-01-31T06:00:00Z or a wall clock such as 2026-01-31T06:00:00, from 1970 to 2200, found %s", field.Found)
	}
	return at, flagError(err)
}

func (q question) compile(after time.Time) (o *outlook, err error) {
	o = &outlook{zone: time.UTC}
	if o.rule, err = schedule.RuleText(q.rule); err != nil {
		return nil, err
	}
	dtstart := q.dtstart
	if dtstart == "" {
		if dtstart, err = schedule.Midnight(after, q.timezone); err != nil {
			return nil, err
		}
	}
	if o.schedule, err = schedule.Parse(o.rule, q.timezone, dtstart); err != nil {
		return nil, err
	}
	o.zone, err = time.LoadLocation(q.timezone)
	return o, err
}

// flagError names the flag that holds a refused value.
func flagError(err error) error {
	var field *document.Error
	if errors.As(err, &field) {
		name, rest, _ := strings.Cut(field.Field, " ")
		flag := map[string]string{"rrule": "--rule", "timezone": "--timezone", "dtstart": "--dtstart"}[name]
		where := strings.TrimSpace(flag + " " + rest)
		return usageError{&document.Error{Field: where, Want: field.Want, Found: field.Found}}
	}
	return err
}

// times are the occurrences as -o json shows them.
func (o *outlook) times() []string {
	texts := make([]string, len(o.next))
	for i, at := range o.next {
		texts[i] = model.FormatTime(at)
	}
	return texts
}

func (a *app) printOutlook(o *outlook) error {
	for i, line := range strings.Split(strings.TrimSpace(o.rule), "\n") {
		label := "rule:"
		if i > 0 {
			label = "     "
		}
		fmt.Fprintln(a.stdout, label, plain(strings.TrimSpace(line)))
	}
	if len(o.next) > 0 {
		if err := a.printOccurrences(o); err != nil {
			return err
		}
	}
	if o.ended {
		fmt.Fprintln(a.stdout, "no more")
	}
	return nil
}

// printOccurrences prints the occurrences as the clocks of their zone show them.
func (a *app) printOccurrences(o *outlook) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIME\tDAY\tNOTE")
	for _, at := range o.next {
		row := at.In(o.zone).Format(time.RFC3339 + "\tMon")
		if note := o.schedule.Note(at); note != "" {
			row += "\t" + note
		}
		fmt.Fprintln(table, row)
	}
	return table.Flush()
}
