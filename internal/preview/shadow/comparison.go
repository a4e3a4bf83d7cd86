// Package shadow compares when an old system refreshed models with when refreshd would have. For each model, package model decides on a clock that
// jumps. It knows no Redis, pushes nothing and stores nothing.
//
// A run of the old system belongs to our nearest start. Our attempt then ends as the run did, after as long, and package model decides what comes
// next. So each disagreement is reported once: a run that was an hour late makes no hundred others late.
package shadow

import (
	"cmp"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Options tune a comparison.
type Options struct {
	// Within is how far two starts may be apart and still agree. A third of the shortest interval of a model counts where that is less.
	Within time.Duration
	// From and To bound the comparison. Zero: from the first run to the last.
	From, To time.Time
	// Found is called for each difference; nil: not at all.
	Found func(Difference)
}

// Source makes a model as it is when it is saved at an instant.
type Source func(at time.Time) (*model.Model, error)

// Comparison compares run by run. It keeps some 2 KB for each model, and nothing of the runs.
type Comparison struct {
	options  Options
	tracks   map[string]*track
	order    []*track
	sums     map[Kind]*KindTotals
	runs     int
	from, to time.Time
}

// New returns an empty comparison. The runs of a model must come in the order of time; models may be mixed.
func New(options Options) *Comparison {
	return &Comparison{options: options, tracks: map[string]*track{}, sums: map[Kind]*KindTotals{}, from: options.From, to: options.To}
}

// Define adds a model. A uid that was added before is defined anew.
func (c *Comparison) Define(uid string, source Source) {
	t := newTrack(c, uid, source)
	if c.tracks[uid] == nil {
		c.order = append(c.order, t)
	}
	c.tracks[uid] = t
}

// Take compares one more run. The error is that of a source.
func (c *Comparison) Take(run Run) error {
	t := c.tracks[run.UID]
	if t != nil && run.Again > 0 && !run.At.After(t.last.At) {
		run.At = run.At.Add(run.Again)
		if !run.EndedAt.IsZero() && run.EndedAt.Before(run.At) {
			run.EndedAt = run.EndedAt.Add(run.Again)
		}
	}
	switch {
	case !c.options.From.IsZero() && run.At.Before(c.options.From), !c.options.To.IsZero() && run.At.After(c.options.To):
		return nil
	case t == nil:
		c.runs++
		c.add(Difference{Kind: Unknown, Line: run.Line, UID: run.UID, Old: run.At}, nil)
		return nil
	case run.At.Before(t.last.At):
		c.Refuse(&simulate.LineError{Line: run.Line, Err: errOrder})
		return nil
	default:
		c.runs++
		if c.from.IsZero() || c.options.From.IsZero() && run.At.Before(c.from) {
			c.from = run.At
		}
		if c.options.To.IsZero() && run.At.After(c.to) {
			c.to = run.At
		}
		return t.take(run)
	}
}

var errOrder = document.Refuse("", "the runs of a model in the order of time", "one that is older than the line of this model before")

// Refuse notes a line that is no run.
func (c *Comparison) Refuse(err *simulate.LineError) {
	c.add(Difference{Kind: Unreadable, Line: err.Line, Why: err.Err.Error()}, nil)
}

// End compares the rest, and returns the report.
func (c *Comparison) End() (*Report, error) {
	report := &Report{Runs: c.runs, Models: len(c.order), From: c.from, To: c.to}
	for _, t := range c.order {
		if err := t.end(c.from, c.to); err != nil {
			return nil, err
		}
		if t.sum.Runs == 0 {
			report.NoRuns++
		}
		report.Agreed += t.sum.Agreed
		report.Unjudged += t.unjudged
		if len(t.sum.Counts) > 0 {
			report.Differing = append(report.Differing, t.sum)
		}
		proposals, err := t.proposals(c.from, c.to)
		if err != nil {
			return nil, err
		}
		report.Proposals = append(report.Proposals, proposals...)
	}
	slices.SortStableFunc(report.Differing, func(a, b ModelTotals) int {
		return cmp.Or(b.Differences()-a.Differences(), cmp.Compare(a.UID, b.UID))
	})
	for _, kind := range Kinds {
		if sum := c.sums[kind]; sum != nil {
			report.Totals = append(report.Totals, *sum)
		}
	}
	return report, nil
}

func (c *Comparison) add(d Difference, t *track) {
	d.Type, d.Seconds = "difference", d.By.Seconds()
	sum := c.sums[d.Kind]
	if sum == nil {
		sum = &KindTotals{Kind: d.Kind, Most: d}
		c.sums[d.Kind] = sum
	}
	if sum.Count++; d.By > sum.Most.By {
		sum.Most = d
	}
	if t != nil {
		if t.sum.Counts[d.Kind]++; t.sum.Counts[d.Kind] == 1 {
			sum.Models++
		}
	}
	if c.options.Found != nil {
		c.options.Found(d)
	}
}

// Kind is how old and new disagree.
type Kind string

// The kinds. "We" is refreshd.
const (
	Earlier    Kind = "earlier"     // we would have started earlier
	Later      Kind = "later"       // we would have started later
	Missed     Kind = "missed"      // a planned refresh that the old system did not start
	NotRetried Kind = "not_retried" // we would have retried; the old system waited
	Retried    Kind = "retried"     // the old system retried; we would have waited for the planned refresh
	Twice      Kind = "twice"       // it ran again while its last run was going on, or in the same moment
	Unplanned  Kind = "unplanned"   // the old system started without a plan
	GaveUp     Kind = "gave_up"     // the old system went on; we would have disabled the model
	TooLong    Kind = "too_long"    // it ran for longer than its policy allows
	Unknown    Kind = "unknown"     // a run of a model that is not defined
	Unreadable Kind = "unreadable"  // a line that is no run
)

// Kinds are all kinds, in the order of reports.
var Kinds = []Kind{Earlier, Later, Missed, NotRetried, Retried, Twice, Unplanned, GaveUp, TooLong, Unknown, Unreadable}

// Difference is one disagreement.
type Difference struct {
	Type string        `json:"kind"` // difference: the output has lines about models, too
	Kind Kind          `json:"difference"`
	Line int           `json:"line"` // of the run; 0: there was none
	UID  string        `json:"uid"`  // of the model; empty: an unreadable line
	Old  time.Time     `json:"old"`
	Ours time.Time     `json:"ours"` // when we would have started; zero: not at all, or it does not matter
	By   time.Duration // how far apart they are, or how much too long the run took; 0: neither
	Why  string        `json:"why"` // our refresh_why, or what is wrong with a line

	Seconds float64 `json:"seconds"` // of By
}

// KindTotals counts the differences of one kind.
type KindTotals struct {
	Kind   Kind       `json:"difference"`
	Count  int        `json:"count"`
	Models int        `json:"models"`
	Most   Difference `json:"furthest"` // the first of the furthest apart
}

// ModelTotals counts the differences of one model.
type ModelTotals struct {
	UID    string       `json:"uid"`
	Runs   int          `json:"runs"`
	Agreed int          `json:"agreed"` // runs that we would have started too, within the tolerance
	Counts map[Kind]int `json:"differences"`
}

// Differences is how many there are.
func (m *ModelTotals) Differences() (n int) {
	for _, count := range m.Counts {
		n += count
	}
	return n
}

// Report is the result of a comparison.
type Report struct {
	Runs      int `json:"runs"` // that could be read
	Agreed    int `json:"agreed"`
	Unjudged  int `json:"unjudged"` // of models without a schedule: when these are to start follows from saves, which no log has
	Models    int `json:"models"`   // that are defined
	Differing []ModelTotals
	Totals    []KindTotals // of those kinds that there are
	From      time.Time    `json:"from"`
	To        time.Time    `json:"to"`
	NoRuns    int          `json:"no_runs"`   // defined models without any run
	Proposals []Proposal   `json:"proposals"` // other rules, which fit better
}

// Differs reports whether old and new disagree in anything.
func (r *Report) Differs() bool { return len(r.Totals) > 0 }
