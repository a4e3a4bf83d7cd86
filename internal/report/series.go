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
	MetricInput // attempts that no worker has taken
	MetricWait  // how long the oldest due model waits
	MetricTaken // attempts that workers took in the minute before, if some waited for them all the time; else 0
	Metrics     // how many there are
)

var metricNames = [Metrics]string{
	string(model.EventStart), string(model.EventSuccess), string(model.EventFailure), string(model.EventTimeout),
	"models", "failing", "disabled", "never", "fresh", "late", "stale", "input", "oldest_wait_s", "taken",
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
	live, err := r.store.Report().Liveness(ctx)
	if err != nil {
		return err
	}
	one, before := stats.Sample(), now.UTC().Truncate(time.Minute).Add(-time.Minute)
	if text, is := fields[before.Format(sampleLayout)]; is && !live.HeadStartedAt.IsZero() && !live.HeadStartedAt.After(before) {
		one.Values[MetricTaken] = one.taken(readSample(before, text))
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

// taken is how many attempts have left the line since an earlier sample.
func (s Sample) taken(before Sample) int64 {
	return max(0, s.Values[MetricStarts]-before.Values[MetricStarts]-s.Values[MetricInput]+before.Values[MetricInput])
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
