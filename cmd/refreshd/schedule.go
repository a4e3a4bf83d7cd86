package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

func scheduleCommand(a *app) *cobra.Command {
	return group("schedule", "Look at schedules", nextCommand(a))
}

// nextFlags say which occurrences of which rule to show.
type nextFlags struct {
	rule, timezone string
	dtstart        string // default midnight of the day of after
	after          string // default now
	count          int    // 1 to maxOccurrences, default 10
}

const maxOccurrences = 1000

func nextCommand(a *app) *cobra.Command {
	var f nextFlags
	command := &cobra.Command{
		Use: "next [RULE]", Short: "Show the next occurrences of a rule", Args: cobra.MaximumNArgs(1),
		Long: `Show when a rule occurs, and where clocks that are changed move it. Needs no Redis.

The rule is an RRULE set (several lines, with RDATE and EXDATE), a cron expression or English; the line "read:" says how it was
understood. -o json prints an array of times in UTC.`,
		Example: `  refreshd schedule next "twice per day at 6 AM and 4 PM" --timezone Europe/Berlin
  refreshd schedule next "0 6 * * MON-FRI" --after 2026-03-01 -n 5 -o json
  refreshd schedule next --rule "FREQ=HOURLY;INTERVAL=2" --dtstart 2026-01-01T00:30:00`,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 && command.Flags().Changed("rule") {
				return usagef("expected one rule, found an argument and --rule")
			} else if len(args) > 0 {
				f.rule = args[0]
			}
			found, err := f.find(time.Now())
			if err != nil {
				return err
			}
			if !a.json() {
				return a.printOccurrences(found)
			}
			texts := make([]string, len(found.times))
			for i, at := range found.times {
				texts[i] = model.FormatTime(at)
			}
			return a.printJSON(texts)
		},
	}
	command.Flags().StringVar(&f.rule, "rule", "", "`RULE`: RRULE lines, cron or English, in place of the argument")
	command.Flags().StringVar(&f.timezone, "timezone", "", "IANA `ZONE` of the wall clocks in the rule (default UTC)")
	command.Flags().StringVar(&f.dtstart, "dtstart", "", "wall clock `TIME` from which the rule counts (default midnight of the day of --after)")
	command.Flags().StringVar(&f.after, "after", "", "`TIME` after which to look: RFC 3339, or a wall clock (default now)")
	command.Flags().IntVarP(&f.count, "count", "n", 10, "how many `N` to show")
	return command
}

// occurrences are those of a rule that were asked for.
type occurrences struct {
	rule     string
	sentence string // empty: English has no words for the rule
	zone     *time.Location
	schedule *schedule.Schedule
	times    []time.Time
	ended    bool // there are fewer than asked for
}

// find reads the flags and walks the schedule. Every error is a wrong flag.
func (f nextFlags) find(now time.Time) (*occurrences, error) {
	if f.count < 1 || f.count > maxOccurrences {
		return nil, usagef("--count: expected 1 to %d, found %d", maxOccurrences, f.count)
	}
	read, err := f.read()
	if err != nil {
		return nil, flagError(err)
	}
	after, err := f.readAfter(now)
	if err != nil {
		return nil, err
	}
	found, err := f.compile(read, after)
	if err != nil {
		return nil, flagError(err)
	}
	for len(found.times) < f.count && !found.ended {
		next, ok, err := found.schedule.Evaluate(after)
		if err != nil {
			return nil, err
		}
		if found.ended = !ok; ok {
			found.times, after = append(found.times, next), next
		}
	}
	return found, nil
}

func (f nextFlags) readAfter(now time.Time) (time.Time, error) {
	if f.after == "" {
		return now, nil
	}
	if at, err := time.Parse(time.RFC3339, f.after); err == nil && at.Year() >= 1970 && at.Year() <= 2200 {
		return at, nil
	}
	at, err := schedule.Instant(f.after, f.timezone)
	if field, ok := errors.AsType[*document.Error](err); ok && field.Field == "dtstart" {
		return at, usagef("--after: expected a time such as 2026-01-31T06:00:00Z or a wall clock such as 2026-01-31T06:00:00, from 1970 to 2200, found %s", field.Found)
	}
	return at, flagError(err)
}

// read reads the rule, and takes its zone and its start where no flag names them.
func (f *nextFlags) read() (schedule.Reading, error) {
	fields := map[string]any{"rrule": f.rule, "timezone": f.timezone, "dtstart": f.dtstart}
	read, err := schedule.ReadFields(document.Object{Fields: fields})
	f.timezone, f.dtstart = read.Timezone, read.Dtstart
	return read, err
}

func (f nextFlags) compile(read schedule.Reading, after time.Time) (found *occurrences, err error) {
	found = &occurrences{zone: time.UTC, rule: read.Rule}
	dtstart := f.dtstart
	if dtstart == "" {
		if dtstart, err = schedule.Midnight(after, f.timezone); err != nil {
			return nil, err
		}
	}
	if found.schedule, err = schedule.Parse(found.rule, f.timezone, dtstart); err != nil {
		return nil, err
	}
	found.sentence, _ = schedule.RuleEnglish(found.rule)
	if found.sentence != "" && read.Spread > 0 {
		found.sentence += ", spread over " + document.FormatDurationInWords(read.Spread)
	}
	found.zone, err = time.LoadLocation(f.timezone)
	return found, err
}

// flagError names the flag that holds a refused value.
func flagError(err error) error {
	if field, ok := errors.AsType[*document.Error](err); ok {
		name, rest, _ := strings.Cut(field.Field, " ")
		flag := map[string]string{"rrule": "--rule", "timezone": "--timezone", "dtstart": "--dtstart"}[name]
		where := strings.TrimSpace(flag + " " + rest)
		return usageError{&document.Error{Field: where, Want: field.Want, Found: field.Found}}
	}
	return err
}

// printOccurrences prints the rule and its occurrences as the clocks of their zone show them.
func (a *app) printOccurrences(found *occurrences) error {
	label := "rule:"
	for line := range strings.SplitSeq(strings.TrimSpace(found.rule), "\n") {
		fmt.Fprintln(a.stdout, label, plain(strings.TrimSpace(line)))
		label = "     "
	}
	if found.sentence != "" {
		fmt.Fprintln(a.stdout, "read:", found.sentence)
	}
	table := a.newTable("TIME", "DAY", "NOTE")
	for _, at := range found.times {
		at = at.In(found.zone)
		cells := []any{at.Format(time.RFC3339), at.Format("Mon")}
		if note := found.schedule.Note(at); note != "" {
			cells = append(cells, note)
		}
		table.Row(cells...)
	}
	if len(found.times) > 0 {
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if found.ended {
		fmt.Fprintln(a.stdout, "no more")
	}
	return nil
}
