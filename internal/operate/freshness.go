package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// FreshnessRequest selects models and a time.
type FreshnessRequest struct {
	Selector, At string // empty: all models, now
	Histogram    bool

	picks model.Selector
	past  time.Time // zero: now
}

// Validate refuses what is wrong for any queue.
func (r *FreshnessRequest) Validate() (err error) {
	if r.picks, err = model.ParseSelector(r.Selector); err != nil || r.At == "" {
		return refused(err)
	}
	if r.past, err = time.Parse(time.RFC3339, r.At); err != nil {
		return refuse("at", "an RFC 3339 time", document.Found(r.At))
	}
	if !r.picks.All() || r.Histogram {
		return refuse("at", "no `selector` and no `histogram` with it, as only sums were noted", "both")
	}
	return nil
}

// maxWorst bounds the stale models that are listed.
const maxWorst = 10

// survey collects the freshness of models.
type survey struct {
	*FreshnessRequest
	now    time.Time
	counts report.FreshnessCounts
	worst  []Stale
	ages   []AgeBucket
}

// Freshness counts the models that are as fresh as their policies promise, and lists those that are stale for longest.
func (o Operator) Freshness(ctx context.Context, r FreshnessRequest) (Freshness, error) {
	if err := r.Validate(); err != nil {
		return Freshness{}, err
	}
	if !r.past.IsZero() {
		return o.pastFreshness(ctx, &r)
	}
	now, err := o.Queue.Parts[0].Now(ctx)
	if err != nil {
		return Freshness{}, err
	}
	s := survey{FreshnessRequest: &r, now: now, counts: report.FreshnessCounts{}}
	look := s.index
	if !r.picks.All() || r.Histogram {
		s.ages = newHistogram()
		look = s.walk
	}
	if err := o.Queue.Each(func(part *store.Store) error { return look(ctx, part) }); err != nil {
		return Freshness{}, err
	}
	if err := s.explain(ctx, o.Queue); err != nil {
		return Freshness{}, err
	}
	found := Freshness{At: s.now, Selector: r.picks.String(), FreshnessShare: newFreshnessShare(s.counts), Worst: s.worst}
	if s.ages != nil {
		found.Histogram = &s.ages
	}
	return found, nil
}

func (s *survey) index(ctx context.Context, part *store.Store) error {
	stats, err := report.Of(part).Stats(ctx)
	if err != nil {
		return err
	}
	for freshness, count := range stats.Freshness {
		s.counts[freshness] += count
	}
	stale, err := report.Of(part).LongestStale(ctx, 0, maxWorst)
	for _, one := range stale {
		s.note(one.UID, one.Since)
	}
	return err
}

func (s *survey) walk(ctx context.Context, part *store.Store) error {
	return part.Report().EachPicked(ctx, s.picks, func(r *store.Record) error {
		if r.Watched() {
			s.counts[r.Freshness]++
			countAge(s.ages, &r.Model, s.now)
			s.note(r.UID, r.Scores().Stale)
		}
		return nil
	})
}

// note keeps the models that are stale for longest.
func (s *survey) note(uid string, since time.Time) {
	if since.IsZero() {
		return
	}
	s.worst = append(s.worst, Stale{UID: uid, Since: since, For: words.Roughly(s.now.Sub(since).Truncate(time.Second))})
	slices.SortStableFunc(s.worst, func(a, b Stale) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.UID, b.UID)) })
	s.worst = s.worst[:min(len(s.worst), maxWorst)]
}

// explain adds why the worst models are stale, and leaves out removed ones.
func (s *survey) explain(ctx context.Context, queue *store.Queue) error {
	noted := s.worst
	s.worst = nil
	for _, one := range noted {
		part := queue.Of(one.UID)
		found, err := explain.ReadModels(ctx, part, []string{one.UID})
		if err == nil {
			err = explain.ReadReasons(ctx, part, found)
		}
		if err != nil {
			return err
		}
		for _, m := range found {
			one.LastSuccessAt, one.Why = m.Record.LastSuccessAt, string(m.Status)
			switch {
			case m.Record.Parked():
				one.Why += ": " + m.Because
			case m.Reason != "":
				one.Why += ": " + m.Reason
			}
			s.worst = append(s.worst, one)
		}
	}
	return nil
}

// pastFreshness is the last note of a dispatcher before a time.
func (o Operator) pastFreshness(ctx context.Context, r *FreshnessRequest) (Freshness, error) {
	now, err := o.Queue.Parts[0].Now(ctx)
	if err == nil && r.past.After(now) {
		err = refuse("at", "a time that has passed", document.Found(r.At))
	}
	if err != nil {
		return Freshness{}, err
	}
	hours, err := report.OfQueue(o.Queue).Samples(ctx)
	hours = slices.DeleteFunc(hours, func(one report.Sample) bool { return one.At.After(r.past) })
	if err == nil && len(hours) == 0 {
		err = refuse("at", "a time of the last 90 days before which a dispatcher has noted the freshness", document.Found(r.At))
	}
	if err != nil {
		return Freshness{}, err
	}
	last := hours[len(hours)-1]
	return Freshness{At: last.At, FreshnessShare: newFreshnessShare(report.FreshnessCounts{
		model.Fresh: last.Values[report.MetricFresh], model.FreshnessNever: last.Values[report.MetricNever],
		model.FreshnessLate: last.Values[report.MetricLate], model.FreshnessStale: last.Values[report.MetricStale],
	})}, nil
}

// FreshnessShare counts models by how they keep the promise of their policies.
type FreshnessShare struct {
	Watched int64 `json:"watched"` // models of which a policy promises some freshness
	Fresh   int64 `json:"fresh"`
	Never   int64 `json:"never"` // neither late nor stale, and no success yet
	Late    int64 `json:"late"`
	Stale   int64 `json:"stale"`
	// ShareFresh is the share of the watched ones that are fresh, 0 to 1; null: none is watched.
	ShareFresh *float64 `json:"share_fresh"`
}

func newFreshnessShare(c report.FreshnessCounts) FreshnessShare {
	s := FreshnessShare{Watched: c.Watched(), Fresh: c[model.Fresh], Never: c[model.FreshnessNever], Late: c[model.FreshnessLate], Stale: c[model.FreshnessStale]}
	if s.Watched > 0 {
		s.ShareFresh = new(float64(s.Fresh) / float64(s.Watched))
	}
	return s
}

// String describes it in a line; empty: no model is watched.
func (s FreshnessShare) String() string {
	if s.ShareFresh == nil {
		return ""
	}
	return fmt.Sprintf("%.2f%% of %d watched models are fresh, %d never succeeded yet, %d late, %d stale", *s.ShareFresh*100, s.Watched, s.Never, s.Late, s.Stale)
}

// AgeBucket counts models by the time since their last success.
type AgeBucket struct {
	UpTo   string `json:"up_to"` // a length, or "older" or "never"
	Models int64  `json:"models"`

	length time.Duration
}

// newHistogram returns empty buckets: lengths, older, and never.
func newHistogram() []AgeBucket {
	var buckets []AgeBucket
	for _, hours := range []time.Duration{1, 6, 24, 48, 7 * 24, 28 * 24} {
		length := hours * time.Hour
		buckets = append(buckets, AgeBucket{UpTo: document.FormatDuration(length), length: length})
	}
	return append(buckets, AgeBucket{UpTo: "older"}, AgeBucket{UpTo: "never"})
}

func countAge(buckets []AgeBucket, m *model.Model, now time.Time) {
	at := slices.IndexFunc(buckets, func(b AgeBucket) bool { return now.Sub(m.LastSuccessAt) <= b.length })
	if last := len(buckets) - 1; m.LastSuccessAt.IsZero() {
		at = last
	} else if at < 0 {
		at = last - 1
	}
	buckets[at].Models++
}

// Stale is a stale model.
type Stale struct {
	UID           string    `json:"uid"`
	Since         time.Time `json:"stale_since"`
	For           string    `json:"stale_for"`
	LastSuccessAt time.Time `json:"last_success_at"`
	Why           string    `json:"why"` // what it does now, and why it was disabled or failed last
}

// Freshness is the freshness of the models at one time.
type Freshness struct {
	At       time.Time `json:"at"`
	Selector string    `json:"selector"`
	FreshnessShare
	Worst     []Stale      `json:"worst"`
	Histogram *[]AgeBucket `json:"histogram"` // null: nobody has asked for it
}
