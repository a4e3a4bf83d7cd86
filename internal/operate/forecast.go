package operate

import (
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/preview/forecast"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// ForecastRequest asks for the starts to come.
type ForecastRequest struct {
	InputRequest

	By     string // how to group the starts at the peak; empty: not at all
	Spread string // to compare with; empty: a tenth of each interval

	by     forecast.Grouping // nil: none
	length time.Duration     // of the spread; 0: a tenth of each interval
}

// Validate refuses what is wrong for any queue.
func (r *ForecastRequest) Validate() (err error) {
	if r.length, err = document.ParseDuration(r.Spread); err != nil {
		return refusedAt("spread", err)
	}
	if r.By != "" {
		if r.by, err = forecast.ParseGrouping(r.By); err != nil {
			return refusedAt("by", err)
		}
	}
	return r.validate()
}

// Forecast counts coming starts, minute by minute.
type Forecast struct {
	Queue    string    `json:"queue"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Models   int       `json:"models"` // that run, wait or are disabled
	Disabled int       `json:"disabled"`
	Parked   int       `json:"parked"`
	Queued   int       `json:"queued"`
	Drain
	Load         Load              `json:"load"`
	SpreadLength string            `json:"spread_length"` // empty: a tenth of each interval
	Spread       Load              `json:"with_spread"`
	Worst        []MinuteStarts    `json:"worst_minutes"`
	By           string            `json:"by"`
	Groups       *[]forecast.Group `json:"groups_at_peak"`    // nil: not asked for
	PerMinute    []int             `json:"starts_per_minute"` // from the minute of From on

	Counts, SpreadCounts *forecast.Counts `json:"-"`
}

// MinuteStarts are the starts in a minute.
type MinuteStarts struct {
	At     time.Time `json:"at"`
	Starts int       `json:"starts"`
}

// Forecast walks the models as the daemons would.
func (o Operator) Forecast(ctx context.Context, r ForecastRequest) (Forecast, error) {
	if err := r.Validate(); err != nil {
		return Forecast{}, err
	}
	input, err := o.openInput(ctx, &r.InputRequest)
	if err != nil {
		return Forecast{}, err
	}
	found := Forecast{
		Queue: o.Queue.Name, From: input.now, To: input.to, Queued: input.queued, Drain: input.drained(), By: r.By,
		Counts: forecast.NewCounts(input.now, input.to), SpreadCounts: forecast.NewCounts(input.now, input.to),
	}
	if err := input.walk(ctx, &r, &found); err != nil {
		return Forecast{}, err
	}
	found.Load, found.Spread, found.PerMinute = input.load(found.Counts), input.load(found.SpreadCounts), found.Counts.PerMinute
	if r.length > 0 {
		found.SpreadLength = document.FormatDuration(r.length)
	}
	for _, minute := range found.Counts.Worst(maxGroups) {
		found.Worst = append(found.Worst, MinuteStarts{found.Counts.At(minute), found.Counts.PerMinute[minute]})
	}
	return found, nil
}

// walk counts the starts. To group those of the peak it walks a second time, when the peak is known.
func (s *forecastInput) walk(ctx context.Context, r *ForecastRequest, found *Forecast) error {
	blockers, err := s.Queue.Parts[0].Fleet().Blockers(ctx)
	if err != nil {
		return err
	}
	walker := forecast.NewWalker(s.now, s.to, blockers)
	read := func(ctx context.Context, part *store.Store, chunk store.Indexed) ([]*store.Record, error) {
		if chunk.Later && s.InputRequest.picks.All() && len(blockers.Holds) == 0 { // labels do not matter
			return part.Report().ReadPlanned(ctx, chunk.UIDs)
		}
		return readWhole(ctx, part, chunk)
	}
	err = s.starts(ctx, walker, read, func(m *model.Model, took time.Duration) {
		found.Models++
		switch {
		case m.Disabled:
			found.Disabled++
		case m.Parked():
			found.Parked++
		}
		walker.Starts(m, took, found.Counts.Add)
		walker.Starts(walker.Spread(m, r.length), took, found.SpreadCounts.Add)
	})
	if r.by == nil || err != nil {
		return err
	}
	groups, peak := forecast.Groups{}, found.Counts.At(found.Counts.Peak())
	err = s.starts(ctx, walker, readWhole, func(m *model.Model, took time.Duration) {
		walker.Starts(m, took, func(at time.Time) {
			if !at.Before(peak) && at.Before(peak.Add(time.Minute)) {
				groups[r.by(m)]++
			}
		})
	})
	found.Groups = new(groups.Largest(maxGroups))
	return err
}

const maxGroups = 5

// lastAttempts of a model give the length of the next one.
const lastAttempts = 5

// starts visits the picked models, with the length of their attempts if it matters.
func (s *forecastInput) starts(ctx context.Context, walker *forecast.Walker, read readModels, visit func(m *model.Model, took time.Duration)) error {
	return s.eachModel(ctx, read, func(part *store.Store, records []*store.Record) error {
		records = slices.DeleteFunc(records, func(record *store.Record) bool { return !s.picks(record) })
		var asked []string
		for _, record := range records {
			if walker.AsksLength(&record.Model) {
				asked = append(asked, record.UID)
			}
		}
		past, err := part.Report().Histories(ctx, asked, lastAttempts)
		for _, record := range records {
			visit(&record.Model, forecast.Length(past[record.UID]))
		}
		return err
	})
}
