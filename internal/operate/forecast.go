package operate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/preview/forecast"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
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

// InputRequest selects the models of a forecast, its period, and the drain of the workers.
type InputRequest struct {
	Selector string // empty: all models
	For      string // how far ahead
	Drain    string // such as 600/m; empty: as measured

	picks     model.Selector
	ahead     time.Duration
	perMinute float64 // 0: as measured
}

// forecastInput is a queue whose models are walked.
type forecastInput struct {
	Operator
	*InputRequest
	now, to  time.Time
	drain    float64 // attempts a minute; 0: not known
	measured string  // how the drain is known
	queued   int     // entries in the input lists
}

func (r *InputRequest) validate() (err error) {
	if r.ahead, err = readLength("for", r.For, time.Minute, 31*24*time.Hour, "1m to 31d"); err != nil {
		return err
	}
	if r.picks, err = model.ParseSelector(r.Selector); err != nil || r.Drain == "" {
		return refused(err)
	}
	// As in 600/m, 10/s or 20000/h.
	number, unit, _ := strings.Cut(strings.TrimSpace(r.Drain), "/")
	perMinute, known := map[string]float64{"s": 60, "m": 1, "min": 1, "h": 1.0 / 60}[strings.TrimPrefix(unit, "1")]
	rate, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || !(rate > 0) || rate > 1e9 {
		return refuse("drain", "a rate such as 600/m or 10/s", document.Found(r.Drain))
	}
	r.perMinute = rate * perMinute
	return nil
}

// openInput measures the queue.
func (o Operator) openInput(ctx context.Context, r *InputRequest) (*forecastInput, error) {
	now, err := o.Queue.Parts[0].Now(ctx)
	if err != nil {
		return nil, err
	}
	s := &forecastInput{Operator: o, InputRequest: r, now: now, to: now.Add(r.ahead), drain: r.perMinute, measured: "as given"}
	return s, s.measure(ctx)
}

// measure reads the length of the input lists, and unless the drain is given, how fast they were drained.
func (s *forecastInput) measure(ctx context.Context) error {
	err := s.Queue.Each(func(part *store.Store) error {
		stats, err := report.Of(part).Stats(ctx)
		s.queued += int(stats.Input)
		return err
	})
	if err != nil || s.drain > 0 {
		return err
	}
	samples, err := report.OfQueue(s.Queue).Samples(ctx)
	s.drain, s.measured = float64(report.Capacity(samples, s.now)), "the most that workers took in a minute while attempts waited for them"
	return err
}

var errEnough = errors.New("enough")

func untilEnough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

type readModels func(ctx context.Context, part *store.Store, chunk store.Indexed) ([]*store.Record, error)

// eachModel visits the readable models of the queue in chunks, in no order, one chunk at a time. See store.Report.EachIndexed.
func (s *forecastInput) eachModel(ctx context.Context, read readModels, visit func(part *store.Store, records []*store.Record) error) error {
	return s.Queue.Each(func(part *store.Store) error {
		walk := func(ctx context.Context, visit func(store.Indexed) error) error {
			return part.Report().EachIndexed(ctx, s.now, visit)
		}
		return redis.ReadAhead(ctx, walk, func(ctx context.Context, chunk store.Indexed) (func() error, error) {
			records, err := read(ctx, part, chunk)
			records = slices.DeleteFunc(records, func(r *store.Record) bool { return !r.Exists || r.Broken })
			return func() error { return visit(part, records) }, err
		})
	})
}

func readWhole(ctx context.Context, part *store.Store, chunk store.Indexed) ([]*store.Record, error) {
	records, err := part.Load(ctx, chunk.UIDs)
	return slices.Collect(maps.Values(records)), err
}

// picks reports whether the selector picks a model. A queued attempt counts as processed: finding it would take the whole list.
func (s *forecastInput) picks(record *store.Record) bool {
	return s.InputRequest.picks.All() || s.InputRequest.picks.Matches(&record.Model, record.Status(s.now, false))
}

// Load is the starts of a period.
type Load struct {
	Starts      int       `json:"starts"`
	Peak        int       `json:"peak"` // starts in the fullest minute
	PeakAt      time.Time `json:"peak_at"`
	MinutesOver *int      `json:"minutes_over"` // with more starts than are drained; nil: the drain is not known
	Backlog     *int      `json:"backlog"`      // the most attempts that are left at the end of a minute
	BacklogAt   time.Time `json:"backlog_at"`
	EmptyAt     time.Time `json:"empty_at"` // when the list is empty again after that; zero: not within the period
}

func (s *forecastInput) load(c *forecast.Counts) Load {
	load := Load{Starts: c.Total(), Peak: c.Most()}
	if load.Peak > 0 {
		load.PeakAt = c.At(c.Peak())
	}
	if s.drain > 0 {
		backlog := c.Backlog(s.drain, s.queued, s.now)
		load.MinutesOver, load.Backlog, load.BacklogAt, load.EmptyAt = new(c.Over(s.drain)), &backlog.Most, backlog.At, backlog.EmptyAt
	}
	return load
}

// Drain is how fast the workers take attempts.
type Drain struct {
	PerMinute *float64 `json:"drain_per_minute"` // nil: not known
	Source    string   `json:"drain_source"`
}

func (s *forecastInput) drained() Drain {
	if s.drain == 0 {
		return Drain{nil, "not known"}
	}
	return Drain{&s.drain, s.measured}
}
