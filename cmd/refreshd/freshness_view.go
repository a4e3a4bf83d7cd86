package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// freshnessShare says how many models keep what their policies promise.
type freshnessShare struct {
	Watched int64 `json:"watched"` // models of which a policy promises some freshness
	Fresh   int64 `json:"fresh"`
	Never   int64 `json:"never"` // neither late nor stale, and no success yet
	Late    int64 `json:"late"`
	Stale   int64 `json:"stale"`
	// ShareFresh is the share of the watched ones that are fresh, 0 to 1; null: none is watched.
	ShareFresh *float64 `json:"share_fresh"`
}

func newFreshnessShare(c store.FreshnessCounts) freshnessShare {
	s := freshnessShare{Watched: c.Watched(), Fresh: c[model.Fresh], Never: c[model.FreshnessNever], Late: c[model.FreshnessLate], Stale: c[model.FreshnessStale]}
	if s.Watched > 0 {
		s.ShareFresh = new(float64(s.Fresh) / float64(s.Watched))
	}
	return s
}

func (s freshnessShare) String() string {
	if s.ShareFresh == nil {
		return ""
	}
	return fmt.Sprintf("%.2f%% of %d watched models are fresh, %d never succeeded yet, %d late, %d stale", *s.ShareFresh*100, s.Watched, s.Never, s.Late, s.Stale)
}

// ageBucket counts models by the time since their last success.
type ageBucket struct {
	UpTo   string `json:"up_to"` // a length, or "older" or "never"
	Models int64  `json:"models"`

	length time.Duration
}

// newHistogram are empty buckets: lengths, what is older, and what never succeeded.
func newHistogram() []ageBucket {
	var buckets []ageBucket
	for _, hours := range []time.Duration{1, 6, 24, 48, 7 * 24, 28 * 24} {
		length := hours * time.Hour
		buckets = append(buckets, ageBucket{UpTo: document.FormatDuration(length), length: length})
	}
	return append(buckets, ageBucket{UpTo: "older"}, ageBucket{UpTo: "never"})
}

func countAge(buckets []ageBucket, m *model.Model, now time.Time) {
	last := len(buckets) - 1
	at := last - 1
	for i := range buckets[:at] {
		if now.Sub(m.LastSuccessAt) <= buckets[i].length {
			at = i
			break
		}
	}
	if m.LastSuccessAt.IsZero() {
		at = last
	}
	buckets[at].Models++
}

// staleView is a stale model.
type staleView struct {
	UID           string  `json:"uid"`
	Since         *string `json:"stale_since"` // null: since before the journal begins
	For           string  `json:"stale_for"`
	LastSuccessAt *string `json:"last_success_at"`
	Why           string  `json:"why"` // what it does now, and why it was disabled or failed last
	since         time.Time
}

// freshnessView is what is told of freshness.
type freshnessView struct {
	At       string `json:"at"`
	Selector string `json:"selector"`
	freshnessShare
	Worst     []staleView `json:"worst"`
	Histogram []ageBucket `json:"histogram"` // null: nobody has asked for it
}

func (a *app) printFreshness(v *freshnessView) error {
	if a.json() {
		return a.printJSON(v)
	}
	if v.Watched == 0 {
		fmt.Fprintln(a.stdout, "no model is watched: no policy in use has fresh_within")
		return nil
	}
	fmt.Fprintf(a.stdout, "%s: %s\n", v.At, v.freshnessShare)
	t := a.newTable()
	if len(v.Worst) > 0 {
		t.Row("UID", "STALE FOR", "LAST SUCCESS", "WHY")
	}
	for _, one := range v.Worst {
		last := "never"
		if one.LastSuccessAt != nil {
			last = *one.LastSuccessAt
		}
		t.Row(one.UID, one.For, last, one.Why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	t = a.newTable()
	for i, bucket := range v.Histogram {
		if i == 0 {
			t.Row("SUCCESS WITHIN", "MODELS", "")
		}
		t.Row(bucket.UpTo, strconv.FormatInt(bucket.Models, 10), strings.Repeat("#", int(40*bucket.Models/max(1, v.Watched))))
	}
	return t.Flush()
}
