package report

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Metric is a number of a Sample.
type Metric int

// The metrics. The first four count since the queue began, the others are sizes at an instant; MetricWait is in seconds.
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
	MetricInput  // attempts that no worker has taken
	MetricWait   // how long the oldest due model waits
	MetricTaken  // attempts that workers took in the minute before, if some waited for them all the time; else 0
	MetricSecond // of the minute, when the sample was taken
	Metrics      // how many there are
)

var metricNames = [Metrics]string{
	string(model.EventStart), string(model.EventSuccess), string(model.EventFailure), string(model.EventTimeout),
	"models", "failing", "disabled", "never", "fresh", "late", "stale", "input", "oldest_wait_s", "taken", "second",
}

// String is the name of the metric in Redis.
func (m Metric) String() string { return metricNames[m] }

// Counts reports whether the metric counts since the queue began.
func (m Metric) Counts() bool { return m < MetricModels }

// Sample has the counts of a queue since it began, and its sizes, at an instant.
type Sample struct {
	At     time.Time
	Values [Metrics]int64
}

// Sample returns the sample that is kept.
func (s *Stats) Sample() Sample {
	one := Sample{At: s.At, Values: [Metrics]int64{
		MetricModels: s.Due + s.Waiting + s.Parked + s.Running + s.Disabled, MetricFailing: s.Failing, MetricDisabled: s.Disabled,
		MetricNever: s.Freshness[model.FreshnessNever], MetricFresh: s.Freshness[model.Fresh], MetricLate: s.Freshness[model.FreshnessLate],
		MetricStale: s.Freshness[model.FreshnessStale], MetricInput: s.Input,
	}}
	for m := range MetricModels {
		one.Values[m] = s.Counters[m.String()]
	}
	one.Values[MetricSecond] = int64(s.At.Second())
	if !s.OldestDue.IsZero() {
		one.Values[MetricWait] = int64(s.At.Sub(s.OldestDue) / time.Second)
	}
	return one
}

// String is the text of a sample in Redis: "start=9 success=7 …".
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
			one.Values[i] = redis.ParseInt(value)
		}
	}
	return one
}

const (
	sampleLayout = "2006-01-02T15:04"
	day          = 24 * time.Hour
	minutesKept  = 60
	hoursKept    = 8 // days, today not counted
	daysKept     = 90
)

// resolution returns the distance of the samples that are kept at an age.
func resolution(at, now time.Time) time.Duration {
	switch {
	case now.Truncate(time.Minute).Sub(at) < minutesKept*time.Minute:
		return time.Minute
	case now.Truncate(day).Sub(at) <= hoursKept*day:
		return time.Hour
	default:
		return day
	}
}

// downsample keeps one field an hour, and later one a day, named by its first minute: the counts and contents of the queue when it began, and the
// most that waited. Also gone are days of more than daysKept ago, and fields that lie ahead, from before the clock was set back.
func downsample(fields map[string]string, now time.Time) (kept map[string]string, gone []string) {
	sums := map[string]Sample{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		at, err := time.Parse(sampleLayout, name)
		if err != nil {
			continue
		}
		if at.After(now) || now.Truncate(day).Sub(at) > daysKept*day {
			gone = append(gone, name)
			continue
		}
		start, one := at.Truncate(resolution(at, now)).Format(sampleLayout), readSample(at, fields[name])
		first, later := sums[start]
		if !later {
			first = one
		}
		for _, m := range []Metric{MetricInput, MetricWait, MetricTaken} {
			first.Values[m] = max(first.Values[m], one.Values[m])
		}
		if sums[start] = first; name != start {
			gone = append(gone, name)
		}
	}
	kept = map[string]string{}
	for name, one := range sums {
		if text := one.String(); text != fields[name] {
			kept[name] = text
		}
	}
	return kept, gone
}

// NoteSample notes once a minute the counts and contents of the part. The first caller of a minute notes them.
func (r Report) NoteSample(ctx context.Context, now time.Time) error {
	minute := now.UTC().Format(sampleLayout)
	fields, err := r.store.Clients.Read.HGetAll(ctx, r.store.Keys.Hours).Result()
	kept, gone := downsample(fields, now)
	if _, noted := fields[minute]; noted && len(gone) == 0 || err != nil {
		return redis.Wrap(err, "note a sample")
	}
	stats, err := r.Stats(ctx)
	if _, wrong := redis.WrongType(err); err != nil && !wrong {
		return err
	}
	one := stats.Sample()
	head, err := r.head(ctx)
	if err != nil {
		return err
	}
	ago := func(minutes int) (Sample, bool) {
		at := now.UTC().Truncate(time.Minute).Add(-time.Duration(minutes) * time.Minute)
		text, is := fields[at.Format(sampleLayout)]
		return readSample(at, text), is
	}
	if first, is := ago(2); is {
		if second, is := ago(1); is {
			one.Values[MetricTaken] = one.taken(second, first, head)
		}
	}
	_, err = r.store.Clients.Write.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
		pipe.HSetNX(ctx, r.store.Keys.Hours, minute, one.String())
		if len(kept) > 0 {
			pipe.HSet(ctx, r.store.Keys.Hours, kept)
		}
		if len(gone) > 0 {
			pipe.HDel(ctx, r.store.Keys.Hours, gone...)
		}
		return nil
	})
	return redis.Wrap(err, "note a sample")
}

// taken is how many attempts workers took since the sample of the minute before; 0 unless they were at work and others waited for them all the time
// since the one before that: then the attempt that stands first now was started before it. Without tickets nobody knows. Attempts that were taken back
// are not counted as long as as many were answered.
func (s Sample) taken(second, first Sample, head int64) int64 {
	stood := head > 0 && head <= first.Values[MetricStarts] && s.Values[MetricInput] > 0 && second.Values[MetricInput] > 0
	minute := s.instant().Sub(second.instant())
	if !stood || minute < 50*time.Second || minute > 70*time.Second || second.left(first) <= 0 {
		return 0
	}
	return max(0, s.left(second))
}

// left is how many attempts have left the line since an earlier sample, but no more than were answered.
func (s Sample) left(earlier Sample) int64 {
	since := func(m Metric) int64 { return s.Values[m] - earlier.Values[m] }
	return min(since(MetricStarts)-since(MetricInput), since(MetricSuccesses)+since(MetricFailures))
}

func (s Sample) instant() time.Time {
	return s.At.Truncate(time.Minute).Add(time.Duration(s.Values[MetricSecond]) * time.Second)
}

// Capacity is the most that workers took in a minute while attempts waited for them all the time: of the last hour or, if there was none, of the last
// days that are kept by the hour; 0: not known. The samples are those of Samples.
func Capacity(samples []Sample, now time.Time) (perMinute int64) {
	for _, step := range []time.Duration{time.Minute, time.Hour} {
		for _, one := range samples {
			if resolution(one.At, now) == step {
				perMinute = max(perMinute, one.Values[MetricTaken])
			}
		}
		if perMinute > 0 {
			break
		}
	}
	return perMinute
}

// head is the ticket of the attempt that stood first in the input list lately, as note-head-sample.lua has noted it; 0: the list was empty, or it is
// not known.
func (r Report) head(ctx context.Context) (ticket int64, err error) {
	noted, err := r.store.Clients.Read.LRange(ctx, r.store.Keys.Front, -1, -1).Result()
	fields := strings.Fields(strings.Join(noted, " "))
	if len(fields) < 3 { // when it was seen last is only known of an attempt
		return 0, redis.Wrap(redis.IgnoreWrongType(err), "read the head of the input list")
	}
	return redis.ParseInt(fields[0]), nil
}

// Samples reads what NoteSample has noted in all parts, the oldest first: every minute of an hour, before that every hour of some days, and every day. What
// some part has missed is left out. A key of another type holds none.
func (q Queue) Samples(ctx context.Context) (all []Sample, err error) {
	sums, parts := map[time.Time]Sample{}, map[time.Time]int{}
	err = q.queue.Each(func(part *store.Store) error {
		fields, err := part.Clients.Read.HGetAll(ctx, part.Keys.Hours).Result()
		if _, wrong := redis.WrongType(err); err != nil && !wrong {
			return redis.Wrap(err, "read the samples")
		}
		for name, text := range fields {
			if at, err := time.Parse(sampleLayout, name); err == nil {
				sums[at] = sums[at].plus(readSample(at, text))
				parts[at]++
			}
		}
		return nil
	})
	for at, sum := range sums {
		if parts[at] == len(q.queue.Parts) {
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
