package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

func simulateCommand(a *app) *cobra.Command {
	var r operate.SimulateRequest
	command := &cobra.Command{
		Use: "simulate --policy FILE|-|NAME", Short: "Show what a policy would do, on a virtual clock",
		Args: cobra.NoArgs, Annotations: drawsPictures,
		Long: `Show what a policy would do: the decisions of the daemons, on a clock that jumps. It begins with a start by hand.

` + policySourceText + ` A document with uid, payload or policy is a model;
one that names no policy gets the policy default. That is the stored one where --redis or REDIS_URL says which Redis, or else the
built-in one; it also completes policies that leave something out.

How the attempts end:
  --outcomes FILE   one a line: "success 2m", "failure 3m", "failure 3m NetworkError" or "lost" (no answer, the deadline passes);
                    what follows a # counts for nothing. The run ends with the last of them.
  --seed, --fail, --lost, --duration
                    by chance, the same with each seed.
  neither           every attempt fails after 1 minute, 50 of them: what if it fails for ever?

Workers begin at once, and the input list counts as empty. --against runs another policy through the same.

With --metrics nothing runs. The guards of the policy judge numbers of past refreshes: one JSON object a line, oldest first, such as
{"rows": 40}, or what "refreshd history UID -o json" prints. It shows what they would have doubted, and how often.`,
		RunE: func(command *cobra.Command, _ []string) error {
			switch {
			case r.Metrics != "" && a.output != outputTable && !a.json():
				return usagef("expected -o table or json with --metrics, found %s", a.output)
			case r.Metrics != "":
				return a.printJudged(a.inputs().Judge(command.Context(), r))
			}
			charts, err := a.inputs().Simulate(command.Context(), r, time.Now())
			if err != nil {
				return err
			}
			return a.draw(charts...)
		},
	}
	flags := command.Flags()
	flags.StringVar(&r.Policy, "policy", "", "`FILE`, - or name of the policy or model")
	flags.StringVar(&r.Against, "against", "", "`FILE`, - or name of another one, to compare")
	flags.StringVar(&r.Start, "start", "", "`TIME` of the start by hand, in the zone of the policy unless it says (default now)")
	flags.StringVar(&r.Until, "until", "", "`TIME`, or duration from --start, after which no attempt starts")
	flags.IntVar(&r.Days, "days", 0, "`N` days from --start, in place of --until (default 30 by chance, else no end)")
	flags.IntVar(&r.Limit, "limit", 0, "at most `N` attempts (default 1000, or 50 if every attempt fails)")
	flags.StringVar(&r.Outcomes, "outcomes", "", "`FILE`, or -, with the outcomes of the attempts")
	flags.StringVar(&r.Metrics, "metrics", "", "`FILE`, or -, with the numbers of past refreshes, to judge them")
	flags.StringVar(&r.Seed, "seed", "", "`N` that chance and jitter follow from (default 1)")
	flags.StringVar(&r.Fail, "fail", "", "`PERCENT` of the attempts that fail (default 5% by chance)")
	flags.StringVar(&r.Lost, "lost", "", "`PERCENT` of the attempts that are lost (default 1% by chance)")
	flags.StringVar(&r.Duration, "duration", "", "`LENGTH`, or range of lengths, of an attempt (default 1m-5m by chance)")
	return command
}

func (a *app) printJudged(series []simulate.Refresh, err error) error {
	doubted := slices.DeleteFunc(slices.Clone(series), func(r simulate.Refresh) bool { return r.Suspect == "" })
	rate := float64(len(doubted)) / float64(max(1, len(series)))
	err = table(a, []any{"REFRESH", "METRICS", "DOUBTED"}, func(r *simulate.Refresh) []any {
		return []any{r.No, model.FormatMetrics(r.Metrics), r.Suspect}
	})(doubted, err)
	switch {
	case err != nil:
		return err
	case a.json():
		return print.JSONLine(a.stdout, map[string]any{"summary": map[string]any{"refreshes": len(series), "doubted": len(doubted), "rate": rate}})
	}
	_, err = fmt.Fprintf(a.stdout, "%d of %s doubted (%.1f%%).\n", len(doubted), words.Count(len(series), "refresh", "refreshes"), 100*rate)
	return err
}

func scheduleCommand(a *app) *cobra.Command {
	var r operate.OccurrencesRequest
	next := &cobra.Command{
		Use: "next [RULE]", Short: "Show the next occurrences of a rule", Args: cobra.MaximumNArgs(1),
		Long: `Show when a rule occurs, where clocks that are changed move it, and what becomes of it when they are changed next. Needs no Redis.

The rule is an RRULE set (several lines, with RDATE and EXDATE), a cron expression or English; the line "read:" says how it was
understood. -o json prints an array of times in UTC.`,
		Example: `  refreshd schedule next "twice per day at 6 AM and 4 PM" --timezone Europe/Berlin
  refreshd schedule next "0 6 * * MON-FRI" --after 2026-03-01 -n 5 -o json
  refreshd schedule next --rule "FREQ=HOURLY;INTERVAL=2" --dtstart 2026-01-01T00:30:00`,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 && command.Flags().Changed("rule") {
				return usagef("expected one rule, found an argument and --rule")
			} else if len(args) > 0 {
				r.Rule = args[0]
			}
			found, err := operate.NextOccurrences(r, time.Now())
			switch {
			case err != nil:
				return err
			case a.json():
				return a.printJSON(found.Times)
			default:
				return a.printOccurrences(&found)
			}
		},
	}
	next.Flags().StringVar(&r.Rule, "rule", "", "`RULE`: RRULE lines, cron or English, in place of the argument")
	next.Flags().StringVar(&r.Timezone, "timezone", "", "IANA `ZONE` of the wall clocks in the rule (default UTC)")
	next.Flags().StringVar(&r.Dtstart, "dtstart", "", "wall clock `TIME` from which the rule counts (default midnight of the day of --after)")
	next.Flags().StringVar(&r.After, "after", "", "`TIME` after which to look: RFC 3339, or a wall clock (default now)")
	next.Flags().IntVarP(&r.Count, "count", "n", 10, "how many `N` to show")
	return group("schedule", "Look at schedules", next)
}

// printOccurrences prints a rule and its occurrences in their zone.
func (a *app) printOccurrences(found *operate.Occurrences) error {
	label := "rule:"
	for line := range strings.SplitSeq(strings.TrimSpace(found.Rule), "\n") {
		fmt.Fprintln(a.stdout, label, plain(strings.TrimSpace(line)))
		label = "     "
	}
	if found.Sentence != "" {
		fmt.Fprintln(a.stdout, "read:", found.Sentence)
	}
	for _, remark := range found.Remarks {
		fmt.Fprintln(a.stdout, "note:", remark)
	}
	if len(found.Times) > 0 {
		table := a.newTable("TIME", "DAY", "NOTE")
		for i, at := range found.Times {
			cells := []any{at.Format(time.RFC3339), at.Format("Mon")}
			if found.Notes[i] != "" {
				cells = append(cells, found.Notes[i])
			}
			table.Row(cells...)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if found.Ended {
		fmt.Fprintln(a.stdout, "no more")
	}
	if found.Clocks != "" {
		fmt.Fprintln(a.stdout, "clocks:", found.Clocks)
	}
	return nil
}
