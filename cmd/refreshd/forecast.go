package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/preview/forecast"
	"github.com/refreshd/refreshd/model/words"
)

func bindFleet(flags *pflag.FlagSet, r *operate.InputRequest) {
	flags.StringVarP(&r.Selector, "selector", "l", "", "only models that `TERMS` pick, such as tenant=t1,policy=hourly")
	flags.StringVar(&r.For, "for", "24h", "`DURATION` to look ahead, at most 31d")
	flags.StringVar(&r.Drain, "drain", "", "`RATE` at which workers take attempts, such as 600/m or 10/s (default as measured)")
}

func forecastCommand(a *app) *cobra.Command {
	var r operate.ForecastRequest
	command := a.onStored("forecast", "Show how many attempts will start, minute by minute, and whether the workers can take them", cobra.NoArgs,
		func(ctx context.Context, o operate.Operator, _ []string) error {
			return result(a, a.printForecast)(o.Forecast(ctx, r))
		}, r.Validate)
	command.Long = `Walk the models as the daemons would: what is due, retries that wait, and planned refreshes, on the assumption that each attempt
succeeds in the time that those of its model took lately. What a hold stops starts at its end. What is disabled, waits for a limit or a
circuit, or is asked for later does not count. Models with nothing to wait for are left out.

It shows the peak, the minutes in which more starts than the workers take, what piles up then, and what a spread would change.
-o json has a number for each minute. The dashboard draws the same on its page Plan.`
	command.Example = `  refreshd forecast --for 24h
  refreshd forecast --for 2h -l tenant=t1 --by host
  refreshd forecast --drain 600/m --spread 10m`
	bindFleet(command.Flags(), &r.InputRequest)
	command.Flags().StringVar(&r.By, "by", "", "show the largest of each `GROUP` at the peak: host (of input_url), host:FIELD, label:NAME, policy or a key such as {FIELD}")
	command.Flags().StringVar(&r.Spread, "spread", "", "`DURATION` of the spread to compare with (default a tenth of each interval)")
	return command
}

func loadText(load operate.Load, minutes int) string {
	if load.Peak == 0 {
		return "nothing starts"
	}
	text := fmt.Sprintf("peak %d in the minute %s", load.Peak, shortTime(load.PeakAt))
	if load.MinutesOver != nil {
		text += fmt.Sprintf(", %d of %d minutes over the drain", *load.MinutesOver, minutes)
	}
	return text
}

func shortTime(at time.Time) string { return at.UTC().Format("2006-01-02 15:04Z") }

func backlogText(load operate.Load) string {
	switch {
	case load.Backlog == nil:
		return ""
	case *load.Backlog == 0:
		return "none at the end of any minute"
	case load.EmptyAt.IsZero():
		return fmt.Sprintf("%d at %s, and not drained by the end", *load.Backlog, shortTime(load.BacklogAt))
	default:
		return fmt.Sprintf("%d at %s, drained by %s", *load.Backlog, shortTime(load.BacklogAt), shortTime(load.EmptyAt))
	}
}

func drainText(drain operate.Drain) string {
	if drain.PerMinute == nil {
		return "not known: of late no worker took an attempt that had waited; give it as --drain, such as 100/m"
	}
	return fmt.Sprintf("%.4g a minute, %s", *drain.PerMinute, drain.Source)
}

func (a *app) printForecast(f *operate.Forecast) error {
	minutes := len(f.PerMinute)
	err := a.print(f, [][2]any{
		{"models", f.Models}, {"stopped", mark(f.Disabled+f.Parked > 0, fmt.Sprintf("%d disabled, %d parked now", f.Disabled, f.Parked))},
		{"starts", f.Load.Starts}, {"drain", drainText(f.Drain)},
		{"load", loadText(f.Load, minutes)}, {"backlog", backlogText(f.Load)},
		{"with a spread of " + cmp.Or(f.SpreadLength, "a tenth of each interval"), loadText(f.Spread, minutes)},
	})
	if err != nil || f.Load.Starts == 0 {
		return err
	}
	fmt.Fprintln(a.stdout)
	if err := a.printBars(f.Counts); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout)
	err = table(a, []any{"WORST MINUTES", "STARTS"}, func(m *operate.MinuteStarts) []any { return []any{shortTime(m.At), m.Starts} })(f.Worst, nil)
	if err != nil || f.Groups == nil {
		return err
	}
	fmt.Fprintln(a.stdout)
	header := []any{"AT THE PEAK, BY " + strings.ToUpper(f.By), "STARTS"}
	return table(a, header, func(g *forecast.Group) []any { return []any{g.Name, g.Starts} })(*f.Groups, nil)
}

// rowLengths are the minutes of a row. printBars takes the first that gives few enough rows: the last one does for 31 days.
var rowLengths = []int{1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880}

const (
	maxRows   = 30
	barLength = 40 // characters
)

// printBars prints few rows, each with a bar for its fullest minute.
func (a *app) printBars(c *forecast.Counts) error {
	length := rowLengths[slices.IndexFunc(rowLengths, func(length int) bool { return len(c.PerMinute) <= maxRows*length })]
	most := c.Most()
	t := a.newTable("FROM", "STARTS", "IN ITS FULLEST MINUTE", "")
	for from, to := 0, 0; from < len(c.PerMinute); from = to {
		begins := int(c.At(from).Unix() / 60)
		to = min(len(c.PerMinute), from+length-begins%length) // rows begin at multiples of their length
		row := &forecast.Counts{PerMinute: c.PerMinute[from:to]}
		bar := strings.Repeat("#", (row.Most()*barLength+most-1)/most)
		t.Row(shortTime(c.At(from)), row.Total(), row.Most(), bar)
	}
	return t.Flush()
}

func levelCommand(a *app) *cobra.Command {
	var r operate.LevelRequest
	command := a.onStored("level", "Spread the planned starts of models evenly, by a phase for each", cobra.NoArgs,
		func(ctx context.Context, o operate.Operator, _ []string) error {
			pairs := func(l *operate.Level) [][2]any { return levelPairs(l, r.Apply || r.Clear) }
			return inPairs(a, pairs)(o.Level(ctx, r))
		}, r.Validate)
	command.Long = `Choose for each model by how much its planned refreshes are shifted, less than --within, so that all of them start as evenly as can
be: the emptiest minutes are filled first, and models of one host get phases far apart. What is not picked by -l keeps its times, and
the others go around it. A model has as many starts as before, none is moved to the next one or past it, and the peak never grows.

--plan (which is the default) only shows what it would bring. --apply stores the phases, and --clear takes them away. A model that
waits for anything else than a planned refresh is left as it is: to run the command again picks it up, and changes nothing of the
others. A phase stays when the model is saved, and takes the place of the spread of its policy.`
	command.Example = `  refreshd level --within 10m --plan
  refreshd level --within 10m -l policy=hourly --apply
  refreshd level --clear -l tenant=t1`
	bindFleet(command.Flags(), &r.InputRequest)
	command.Flags().StringVar(&r.Within, "within", "10m", "`DURATION` by less than which planned refreshes are shifted, 2s to 24h")
	command.Flags().BoolVar(&r.Plan, "plan", false, "only show what it would bring")
	command.Flags().BoolVar(&r.Apply, "apply", false, "store the phases")
	command.Flags().BoolVar(&r.Clear, "clear", false, "take the phases away")
	a.bindBy(command.Flags())
	return command
}

// peakText says what becomes of the peak, which never grows.
func peakText(before, after int) string {
	if before == after {
		return "stays at " + thousands(before) + " a minute"
	}
	return "falls from " + thousands(before) + " to " + thousands(after) + " a minute"
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return thousands(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

func levelPairs(l *operate.Level, stored bool) [][2]any {
	pairs := [][2]any{}
	if l.Before != nil {
		pairs = append(pairs, [][2]any{
			{"peak", peakText(l.Before.Peak, l.After.Peak)},
			{"models", fmt.Sprintf("%d may be moved, %d get another phase", l.Models, l.Moves)}, {"drain", drainText(l.Drain)},
			{"before", loadText(*l.Before, l.Minutes)}, {"after", loadText(*l.After, l.Minutes)},
		}...)
	}
	switch {
	case stored:
		pairs = append(pairs, [2]any{"changed", words.Count(l.Changed, "model", "models")},
			[2]any{"left", mark(l.Left > 0, words.Count(l.Left, "model that waits", "models that wait")+" for something else than a planned refresh; run it again")})
	case l.Moves > 0:
		pairs = append(pairs, [2]any{"next", "--apply stores it"})
	default:
		pairs = append(pairs, [2]any{"next", "nothing: it would come no more evenly"})
	}
	return pairs
}
