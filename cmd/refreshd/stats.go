package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

func statsCommand(a *app) *cobra.Command {
	return a.onStored("stats", "Show what the queue holds now, who serves it, and what it has counted", cobra.NoArgs,
		func(ctx context.Context, o operate.Operator, _ []string) error {
			return result(a, a.printStats)(o.Stats(ctx))
		})
}

// printStats begins with the findings.
func (a *app) printStats(v *operate.Stats) error {
	if len(v.Findings) == 0 {
		fmt.Fprintln(a.stdout, v.Calm)
	}
	for _, one := range v.Findings {
		fmt.Fprintf(a.stdout, "%s %s  -> %s\n", plain(one.Text), one.Do, one.Command)
	}
	fmt.Fprintln(a.stdout)
	return a.print(v, statsPairs(v))
}

func statsPairs(v *operate.Stats) [][2]any {
	fingerprints := mark(v.Failing > 0, fmt.Sprintf("%d, with which %s: refreshd failures", len(v.Errors), words.Count(int(v.Failing), "model is failing", "models are failing")))
	pairs := [][2]any{
		{"queue", v.Queue}, {"parts", mark(v.Parts != 0, strconv.Itoa(v.Parts))}, {"at", v.At},
		{"due", fmt.Sprint(v.Due, "  to be started now")}, {"urgent", fmt.Sprint(v.Urgent, "  of them, asked for at once and started first")}, {"waiting", fmt.Sprint(v.Waiting, "  for their time")},
		{"running", fmt.Sprint(v.Running, "  queued or in the hands of workers")},
		{"input", fmt.Sprint(v.Input, "  attempts that no worker has taken")},
		{"output", fmt.Sprint(v.Output, "  messages of workers that no poller has taken")},
		{"control", fmt.Sprint(v.Control, "  messages of applications that no poller has taken")},
		{"claimed", fmt.Sprint(v.Claimed, "  messages in the hands of pollers")},
		{"fingerprints", fingerprints},
		{"rejected", fmt.Sprint(v.Rejected, "  unusable messages kept")},
		{"journal", fmt.Sprint(v.Journal, "  transitions kept")}, {"outbox", fmt.Sprint(v.Outbox, "  notifications to deliver")},
		{"dispatchers", processText(v.Processes.Dispatchers, v.Parts)}, {"pollers", processText(v.Processes.Pollers, v.Parts)},
		{"workers", processText(v.Processes.Workers, v.Parts)},
		{"freshness", v.Freshness.String()},
		{"retries", v.Summary()}, {"late", model.LateAnswers(v.Counters)},
	}
	for _, walk := range v.Replanning {
		pairs = append(pairs, [2]any{"replanning", walk.String()})
	}
	for _, name := range slices.Sorted(maps.Keys(v.Counters)) {
		pairs = append(pairs, [2]any{"counted " + name, v.Counters[name]})
	}
	return pairs
}

const maxNames = 4

func processText(members []operate.Process, parts int) string {
	if len(members) == 0 {
		return "0  none is known"
	}
	living, served, names := 0, map[string]bool{}, make([]string, 0, maxNames)
	for _, m := range members {
		age := words.Roughly(time.Duration(m.AgeMS/1000)*time.Second) + " ago"
		if m.Lives {
			living, served[m.Part] = living+1, true
		} else {
			age = "silent, " + age
		}
		if len(names) < maxNames {
			names = append(names, fmt.Sprintf("%s (%s)", m.Name, age))
		}
	}
	text := fmt.Sprint(living)
	if parts > 1 {
		text += fmt.Sprintf(" in %d of %d parts", len(served), parts)
	}
	text += "  " + strings.Join(names, ", ")
	if more := len(members) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func freshnessCommand(a *app) *cobra.Command {
	var r operate.FreshnessRequest
	command := a.onStored("freshness", "Show how many models are as fresh as their policies promise, and which are stale for longest", cobra.NoArgs,
		func(ctx context.Context, o operate.Operator, _ []string) error {
			return result(a, a.printFreshness)(o.Freshness(ctx, r))
		}, r.Validate)
	command.Long = `Show how many models are fresh, late and stale, and how many have never succeeded yet, by fresh_within and warn_within of their policies, and which ten are stale for longest.
Indexes answer that at once; --selector and --histogram look at each model that they concern.

--at shows how it was, as dispatchers have noted it: once in each minute of the last hour, each hour of the last 8 days, and each day of
the last 90.`
	bindSelector(command.Flags(), &r.Selector)
	command.Flags().StringVar(&r.At, "at", "", "how it was at `TIME` (RFC 3339), as it was noted last before")
	command.Flags().BoolVar(&r.Histogram, "histogram", false, "also count models by the time since their last success")
	return command
}

func (a *app) printFreshness(v *operate.Freshness) error {
	if v.Watched == 0 {
		fmt.Fprintln(a.stdout, "no model is watched: no policy in use has fresh_within")
		return nil
	}
	fmt.Fprintf(a.stdout, "%s: %s\n", model.FormatTime(v.At), v.FreshnessShare)
	t := a.newTable()
	if len(v.Worst) > 0 {
		t.Row("UID", "STALE FOR", "LAST SUCCESS", "WHY")
	}
	for _, one := range v.Worst {
		last := cmp.Or(model.FormatTime(one.LastSuccessAt), "never")
		t.Row(one.UID, one.For, last, one.Why)
	}
	if err := t.Flush(); err != nil || v.Histogram == nil {
		return err
	}
	return table(a, []any{"SUCCESS WITHIN", "MODELS", ""}, func(b *operate.AgeBucket) []any {
		return []any{b.UpTo, b.Models, strings.Repeat("#", int(40*b.Models/max(1, v.Watched)))}
	})(*v.Histogram, nil)
}
