package operate

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/foresight/forecast"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// ForecastRequest says what is told of the starts to come.
type ForecastRequest struct {
	FleetRequest

	By     string // groups to tell the largest of at the peak; empty: none
	Spread string // to compare with; empty: a tenth of each interval
}

// Forecast tells how many attempts will start, minute by minute.
type Forecast struct {
	Queue    string    `json:"queue"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Models   int       `json:"models"`
	Disabled int       `json:"disabled"`
	Parked   int       `json:"parked"`
	Queued   int       `json:"queued"`
	Drain
	Load         Load              `json:"load"`
	SpreadLength string            `json:"spread_length"` // empty: a tenth of each interval
	Spread       Load              `json:"with_spread"`
	Worst        []MinuteStarts    `json:"worst_minutes"`
	By           string            `json:"by"`
	Groups       *[]forecast.Group `json:"groups_at_peak"`    // nil: nobody asks
	PerMinute    []int             `json:"starts_per_minute"` // from the minute of From on

	Counts, SpreadCounts *forecast.Counts `json:"-"`
}

// MinuteStarts are the starts in a minute.
type MinuteStarts struct {
	At     time.Time `json:"at"`
	Starts int       `json:"starts"`
}

// outlook is a fleet that is being walked.
type outlook struct {
	*fleet

	length time.Duration // of the spread; 0: a tenth of each interval
	found  Forecast
}

// Forecast walks the models as the daemons would.
func (o Operator) Forecast(ctx context.Context, r ForecastRequest) (Forecast, error) {
	length, err := document.ParseDuration(r.Spread)
	if err != nil {
		return Forecast{}, refusedAt("spread", err)
	}
	var by forecast.Grouping
	if r.By != "" {
		if by, err = forecast.ParseGrouping(r.By); err != nil {
			return Forecast{}, refusedAt("by", err)
		}
	}
	fleet, err := o.openFleet(ctx, r.FleetRequest)
	if err != nil {
		return Forecast{}, err
	}
	walked := &outlook{fleet: fleet, length: length, found: Forecast{
		Queue: o.Queue.Name, From: fleet.now, To: fleet.to, Queued: fleet.queued, Drain: fleet.drained(), By: r.By,
		Counts: forecast.NewCounts(fleet.now, fleet.to), SpreadCounts: forecast.NewCounts(fleet.now, fleet.to),
	}}
	if err := walked.walk(ctx, by); err != nil {
		return Forecast{}, err
	}
	found := walked.found
	found.Load, found.Spread, found.PerMinute = fleet.load(found.Counts), fleet.load(found.SpreadCounts), found.Counts.PerMinute
	if length > 0 {
		found.SpreadLength = document.FormatDuration(length)
	}
	for _, minute := range found.Counts.Worst(maxGroups) {
		found.Worst = append(found.Worst, MinuteStarts{found.Counts.At(minute), found.Counts.PerMinute[minute]})
	}
	return found, nil
}

// walk counts, and where groups are asked for walks again, to count them in the minute that has turned out to be the peak.
func (o *outlook) walk(ctx context.Context, by forecast.Grouping) error {
	gates, err := o.Queue.Parts[0].Blockers(ctx)
	if err != nil {
		return err
	}
	walker := forecast.NewWalker(o.now, o.to, gates)
	err = o.starts(ctx, walker, func(m *model.Model, took time.Duration) {
		o.found.Models++
		switch {
		case m.Disabled:
			o.found.Disabled++
		case m.Parked():
			o.found.Parked++
		}
		walker.Starts(m, took, o.found.Counts.Add)
		walker.Starts(walker.Spread(m, o.length), took, o.found.SpreadCounts.Add)
	})
	if by == nil || err != nil {
		return err
	}
	groups, peak := forecast.Groups{}, o.found.Counts.At(o.found.Counts.Peak())
	err = o.starts(ctx, walker, func(m *model.Model, took time.Duration) {
		walker.Starts(m, took, func(at time.Time) {
			if !at.Before(peak) && at.Before(peak.Add(time.Minute)) {
				groups[by(m)]++
			}
		})
	})
	o.found.Groups = new(groups.Largest(maxGroups))
	return err
}

// maxGroups bounds how many groups, and worst minutes, are told.
const maxGroups = 5

// lastAttempts is how many attempts of a model tell how long the next one takes.
const lastAttempts = 5

// starts hands over the models that are picked, with the time that their attempts take where that matters.
func (o *outlook) starts(ctx context.Context, walker *forecast.Walker, visit func(m *model.Model, took time.Duration)) error {
	return o.EachModel(ctx, func(part *store.Store, records []*store.Record) error {
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
		return nil
	})
}
