package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/foresight/forecast"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// fleetFlags say which models are looked at, over which time, and how many attempts the workers take.
type fleetFlags struct {
	selector string // default all models
	length   string // default 24h
	drain    string // N/m; default as measured
}

func (f *fleetFlags) bind(flags *pflag.FlagSet) {
	flags.StringVarP(&f.selector, "selector", "l", "", "only models that `TERMS` pick, such as tenant=t1,policy=hourly")
	flags.StringVar(&f.length, "for", "24h", "`DURATION` to look ahead, at most 31d")
	flags.StringVar(&f.drain, "drain", "", "`RATE` at which workers take attempts, such as 600/m or 10/s (default as measured)")
}

// maxAhead is how far ahead anybody may look.
const maxAhead = 31 * 24 * time.Hour

// fleet is a queue whose models are looked at.
type fleet struct {
	queue    *store.Queue
	selector model.Selector
	now, to  time.Time
	drain    float64 // attempts a minute; 0: not known
	measured string  // how the drain is known
	queued   int     // entries in the input lists
}

// openFleet reads the flags, and what the queue tells of its workers.
func openFleet(ctx context.Context, queue *store.Queue, f fleetFlags) (*fleet, error) {
	s := &fleet{queue: queue}
	ahead, err := document.ParseDuration(f.length)
	if err == nil && (ahead < time.Minute || ahead > maxAhead) {
		err = document.Refuse("", "1m to 31d", document.Found(f.length))
	}
	if err != nil {
		return nil, usagef("--for: %w", err)
	}
	if s.selector, err = model.ParseSelector(f.selector); err != nil {
		return nil, usageError{err}
	}
	if f.drain != "" {
		s.measured = "as --drain says"
		if s.drain, err = parseDrain(f.drain); err != nil {
			return nil, err
		}
	}
	if s.now, err = queue.Parts[0].Now(ctx); err != nil {
		return nil, err
	}
	s.to = s.now.Add(ahead)
	return s, s.measure(ctx)
}

// parseDrain reads "600/m", "10/s" or "20000/h" as attempts a minute.
func parseDrain(text string) (float64, error) {
	number, unit, _ := strings.Cut(strings.TrimSpace(text), "/")
	perMinute, known := map[string]float64{"s": 60, "m": 1, "min": 1, "h": 1.0 / 60}[strings.TrimPrefix(unit, "1")]
	rate, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || !(rate > 0) || rate > 1e9 {
		return 0, usagef("--drain: expected a rate such as 600/m or 10/s, found %s", document.Found(text))
	}
	return rate * perMinute, nil
}

// journalSince is how far back the journal is asked for a busy minute, and mostEntries how much of it is read of each part.
const (
	journalSince = 30 * time.Minute
	mostEntries  = 50_000
)

// measure reads how long the input lists are, and if nobody has said it how fast they are drained.
func (s *fleet) measure(ctx context.Context) error {
	lately, ended := 0.0, forecast.Ended{}
	err := s.queue.Each(func(part *store.Store) error {
		stats, err := part.Report().Stats(ctx)
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
	err = s.queue.Each(func(part *store.Store) error { return readEnded(ctx, part, s.now, ended) })
	s.drain, s.measured = float64(ended.Busiest()), "at least: the busiest minute of the last half hour"
	return err
}

func readEnded(ctx context.Context, part *store.Store, now time.Time, ended forecast.Ended) error {
	read := 0
	err := part.Report().EachEntry(ctx, now.Add(-journalSince), func(entry model.JournalEntry) error {
		ended.Add(entry)
		if read++; read == mostEntries {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// each hands over all models of the queue, in chunks, each once; picked says whether the selector picks it.
func (s *fleet) each(ctx context.Context, visit func(part *store.Store, records []*store.Record) error) error {
	return s.queue.Each(func(part *store.Store) error {
		return part.Report().EachModel(ctx, "", func(uids []string) error {
			found, err := part.Load(ctx, uids)
			if err != nil {
				return err
			}
			records := make([]*store.Record, 0, len(found))
			for _, uid := range uids {
				if record := found[uid]; record.Exists && !record.Broken {
					records = append(records, record)
				}
			}
			return visit(part, records)
		})
	})
}

// picks reports whether the selector picks a model. A queued attempt counts as processed: to look for it would take the whole list.
func (s *fleet) picks(record *store.Record) bool {
	return s.selector.All() || s.selector.Matches(&record.Model, record.Status(s.now, false), s.now)
}
