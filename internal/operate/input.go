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

// journalSince and maxEntries bound the search of the journal for a busy minute, in each part.
const (
	journalSince = 30 * time.Minute
	maxEntries   = 50_000
)

// measure reads the length of the input lists, and unless the drain is given, how fast they are drained.
func (s *forecastInput) measure(ctx context.Context) error {
	lately, ended := 0.0, forecast.NewCounts(s.now.Add(-journalSince), s.now.Add(time.Minute))
	err := s.Queue.Each(func(part *store.Store) error {
		stats, err := report.Of(part).Stats(ctx)
		if err != nil {
			return err
		}
		s.queued += int(stats.Input)
		fronts, err := part.HeadSamples(ctx)
		lately += 60 * fronts.Rate()
		return err
	})
	if err != nil || s.drain > 0 {
		return err
	}
	if s.drain, s.measured = lately, "as the input list was drained within the last minute"; s.drain > 0 {
		return nil
	}
	err = s.Queue.Each(func(part *store.Store) error {
		read := 0
		return untilEnough(report.Of(part).EachEntry(ctx, s.now.Add(-journalSince), func(entry model.JournalEntry) error {
			if entry.Event == model.EventSuccess || entry.Event == model.EventFailure { // a worker has answered
				ended.Add(entry.At)
			}
			if read++; read == maxEntries {
				return errEnough
			}
			return nil
		}))
	})
	s.drain, s.measured = float64(ended.Most()), "at least: the busiest minute of the last half hour"
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
