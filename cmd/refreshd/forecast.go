package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/foresight/forecast"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

func forecastCommand(a *app) *cobra.Command {
	var f forecastFlags
	command := &cobra.Command{
		Use: "forecast", Short: "Tell how many attempts will start, minute by minute, and whether the workers can take them",
		Args: cobra.NoArgs, Annotations: map[string]string{"draws": outputSVG},
		Long: `Walk the fleet as the daemons would: what is due, retries as they stand, and planned refreshes, on the assumption that each attempt
succeeds in the time that those of its model took lately. What a hold stops starts at its end. What is disabled, waits for a limit or a
circuit, or is asked for later does not count.

It tells the peak, the minutes in which more starts than the workers take, what piles up then, and what a spread would change.
-o json has a number for each minute.`,
		Example: `  refreshd forecast --for 24h
  refreshd forecast --for 2h -l tenant=t1 --by host
  refreshd forecast --drain 600/m --spread 10m -o svg > load.svg`,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withStored(command.Context(), func(queue *store.Queue) error { return a.forecast(command.Context(), queue, f) })
		},
	}
	f.bind(command.Flags())
	command.Flags().StringVar(&f.by, "by", "", "`GROUP` to tell the largest of at the peak: host (of input_url), host:FIELD, label:NAME, policy or a key such as {FIELD}")
	command.Flags().StringVar(&f.spread, "spread", "", "`DURATION` of the spread to compare with (default a tenth of each interval)")
	return command
}

// forecastFlags say what is told of a fleet.
type forecastFlags struct {
	fleetFlags

	by, spread string
}

// outlook is a fleet that was walked.
type outlook struct {
	*fleet

	counts, spread *forecast.Counts
	length         time.Duration // of the spread; 0: a tenth of each interval
	models         int           // picked
	disabled       int
	parked         int
	groups         []forecast.Group // at the peak; nil: nobody asks
	by             string
}

func (a *app) forecast(ctx context.Context, queue *store.Queue, f forecastFlags) error {
	length, err := document.ParseDuration(f.spread)
	if err != nil {
		return usagef("--spread: %w", err)
	}
	var by forecast.Grouping
	if f.by != "" {
		if by, err = forecast.ParseGrouping(f.by); err != nil {
			return usagef("--by: %w", err)
		}
	}
	fleet, err := openFleet(ctx, queue, f.fleetFlags)
	if err != nil {
		return err
	}
	o := &outlook{fleet: fleet, length: length, by: f.by, counts: forecast.NewCounts(fleet.now, fleet.to), spread: forecast.NewCounts(fleet.now, fleet.to)}
	if err := o.walk(ctx, by); err != nil {
		return err
	}
	return a.showOutlook(o)
}

// walk counts, and where groups are asked for walks again, to count them in the minute that has turned out to be the peak.
func (o *outlook) walk(ctx context.Context, by forecast.Grouping) error {
	gates, err := o.queue.Parts[0].Blockers(ctx)
	if err != nil {
		return err
	}
	walker := forecast.NewWalker(o.now, o.to, gates)
	err = o.starts(ctx, walker, func(m *model.Model, took time.Duration) {
		o.models++
		switch {
		case m.Disabled:
			o.disabled++
		case m.Parked():
			o.parked++
		}
		walker.Starts(m, took, o.counts.Add)
		walker.Starts(walker.Spread(m, o.length), took, o.spread.Add)
	})
	if by == nil || err != nil {
		return err
	}
	groups, peak := forecast.Groups{}, o.counts.At(o.counts.Peak())
	err = o.starts(ctx, walker, func(m *model.Model, took time.Duration) {
		walker.Starts(m, took, func(at time.Time) {
			if !at.Before(peak) && at.Before(peak.Add(time.Minute)) {
				groups[by(m)]++
			}
		})
	})
	o.groups = groups.Largest(mostGroups)
	return err
}

// mostGroups is how many groups, and worst minutes, are told.
const mostGroups = 5

// lastAttempts is how many attempts of a model tell how long the next one takes.
const lastAttempts = 5

// starts hands over the models that are picked, with the time that their attempts take where that matters.
func (o *outlook) starts(ctx context.Context, walker *forecast.Walker, visit func(m *model.Model, took time.Duration)) error {
	return o.each(ctx, func(part *store.Store, records []*store.Record) error {
		var asked []string
		for _, record := range records {
			if o.picks(record) && walker.AsksLength(&record.Model) {
				asked = append(asked, record.UID)
			}
		}
		past := map[string][]model.Attempt{}
		if len(asked) > 0 {
			var err error
			if past, err = part.Report().Histories(ctx, asked, lastAttempts); err != nil {
				return err
			}
		}
		for _, record := range records {
			if o.picks(record) {
				visit(&record.Model, forecast.Length(past[record.UID]))
			}
		}
		return ctx.Err()
	})
}
