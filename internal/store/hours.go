package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// Metric is a number of a Sample.
type Metric int

// The metrics. The first four count since the queue began, the others are what it holds at an instant; MetricWait is in seconds.
const (
	MetricStarts Metric = iota
	MetricSuccesses
	MetricFailures
	MetricTimeouts
	MetricModels // all but those that have nothing to wait for any more
	MetricFailing
	MetricDisabled
	MetricNever
	MetricFresh
	MetricLate
	MetricStale
	MetricInput // attempts that no worker has taken
	MetricWait  // how long the oldest due model waits
	Metrics     // how many there are
)

var metricNames = [Metrics]string{
	string(model.EventStart), string(model.EventSuccess), string(model.EventFailure), string(model.EventTimeout),
	"models", "failing", "disabled", "never", "fresh", "late", "stale", "input", "oldest_wait_s",
}

// String is the name of the metric in Redis.
func (m Metric) String() string { return metricNames[m] }

// Counts reports whether the metric counts since the queue began.
func (m Metric) Counts() bool { return m < MetricModels }

// Sample is what a queue had counted since it began, and what it held, at an instant.
type Sample struct {
	At     time.Time
	Values [Metrics]int64
}

// Sample is what is kept of them.
func (s *Stats) Sample() Sample {
	one := Sample{At: s.At, Values: [Metrics]int64{
		MetricModels: s.Due + s.Waiting + s.Parked + s.Running + s.Disabled, MetricFailing: s.Failing, MetricDisabled: s.Disabled,
		MetricNever: s.Freshness[model.FreshnessNever], MetricFresh: s.Freshness[model.Fresh], MetricLate: s.Freshness[model.FreshnessLate],
		MetricStale: s.Freshness[model.FreshnessStale], MetricInput: s.Input,
	}}
	for m := range MetricModels {
		one.Values[m] = s.Counters[m.String()]
	}
	if !s.OldestDue.IsZero() {
		one.Values[MetricWait] = int64(s.At.Sub(s.OldestDue) / time.Second)
	}
	return one
}

// String is how a sample stands in Redis: "start=9 success=7 …".
func (s Sample) String() string {
	words := make([]string, Metrics)
	for m, value := range s.Values {
		words[m] = fmt.Sprintf("%s=%d", Metric(m), value)
	}
	return strings.Join(words, " ")
}

func readSample(at time.Time, text string) Sample {
	one := Sample{At: at}
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		if i := slices.Index(metricNames[:], name); i >= 0 {
			one.Values[i] = parseInt(value)
		}
	}
	return one
}

const (
	hourLayout = "2006-01-02T15"
	hoursKept  = 8 // days, today not counted
	daysKept   = 90
)

// fold makes one field for each day, called by its first hour, of its hours of more than hoursKept days ago: what the queue had counted and held when the day began, and the
// most that waited. Also gone are days of more than daysKept ago, and fields that lie ahead, from before the clock was set back.
func fold(fields map[string]string, now time.Time) (days map[string]string, gone []string) {
	midnight := now.UTC().Truncate(24 * time.Hour)
	folded := map[string]Sample{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		at, err := time.Parse(hourLayout, name)
		switch {
		case err != nil || !at.After(now) && !at.Before(midnight.AddDate(0, 0, -hoursKept)):
			continue
		case at.After(now), at.Before(midnight.AddDate(0, 0, -daysKept)):
			gone = append(gone, name)
			continue
		}
		day, one := at.Truncate(24*time.Hour).Format(hourLayout), readSample(at, fields[name])
		first, later := folded[day]
		if !later {
			first = one
		}
		for _, m := range []Metric{MetricInput, MetricWait} {
			first.Values[m] = max(first.Values[m], one.Values[m])
		}
		if folded[day] = first; name != day {
			gone = append(gone, name)
		}
	}
	days = map[string]string{}
	for day, one := range folded {
		if text := one.String(); text != fields[day] {
			days[day] = text
		}
	}
	return days, gone
}

// NoteHour notes once an hour what the part has counted and what it holds. Whoever comes first notes it.
func (s *Store) NoteHour(ctx context.Context, now time.Time) error {
	hour := now.UTC().Format(hourLayout)
	fields, err := s.Clients.Read.HGetAll(ctx, s.Keys.Hours).Result()
	if _, noted := fields[hour]; noted || err != nil {
		return Wrap(err, "note the hour")
	}
	stats, err := s.Report().Stats(ctx)
	if _, misfit := Misfit(err); err != nil && !misfit {
		return err
	}
	days, gone := fold(fields, now)
	_, err = s.Clients.Write.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.HSetNX(ctx, s.Keys.Hours, hour, stats.Sample().String())
		if len(days) > 0 {
			pipe.HSet(ctx, s.Keys.Hours, days)
		}
		if len(gone) > 0 {
			pipe.HDel(ctx, s.Keys.Hours, gone...)
		}
		return nil
	})
	return Wrap(err, "note the hour")
}

// Hours reads what NoteHour has noted in all parts, the oldest first: of each of the last days every hour, of the days before one sample. An hour
// that some part has missed is left out. A key of another type holds none.
func (q QueueReport) Hours(ctx context.Context) (all []Sample, err error) {
	sums, parts := map[time.Time]Sample{}, map[time.Time]int{}
	err = q.Each(func(part *Store) error {
		fields, err := part.Clients.Read.HGetAll(ctx, part.Keys.Hours).Result()
		if _, misfit := Misfit(err); err != nil && !misfit {
			return Wrap(err, "read the hours")
		}
		for name, text := range fields {
			if at, err := time.Parse(hourLayout, name); err == nil {
				sums[at] = sums[at].plus(readSample(at, text))
				parts[at]++
			}
		}
		return nil
	})
	for at, sum := range sums {
		if parts[at] == len(q.Parts) {
			all = append(all, sum)
		}
	}
	slices.SortFunc(all, func(a, b Sample) int { return a.At.Compare(b.At) })
	return all, err
}

func (s Sample) plus(more Sample) Sample {
	s.At = more.At
	for m := range Metrics {
		if m == MetricWait {
			s.Values[m] = max(s.Values[m], more.Values[m])
		} else {
			s.Values[m] += more.Values[m]
		}
	}
	return s
}
