package shadow

import (
	"cmp"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/foresight/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Options say how strictly is compared.
type Options struct {
	// Within is how far two starts may be apart and still agree. A third of the shortest interval of a model counts where that is less.
	Within time.Duration
	// From and To are what is compared. Zero: from the first run to the last.
	From, To time.Time
	// Tell is called for each difference as it is found; nil: nobody wants to know.
	Tell func(Difference)
}

// Source makes a model as it is when it is saved at an instant.
type Source func(at time.Time) (*model.Model, error)

// Comparison compares run by run. It keeps some 2 KB for each model, and nothing of the runs.
type Comparison struct {
	options  Options
	tracks   map[string]*track
	order    []*track
	sums     map[Kind]*Sum
	runs     int
	from, to time.Time
}

// New returns a comparison of nothing yet. Runs of one model must come in the order of time; those of different models in any.
func New(options Options) *Comparison {
	return &Comparison{options: options, tracks: map[string]*track{}, sums: map[Kind]*Sum{}, from: options.From, to: options.To}
}

// Define adds a model. A uid that was added before is defined anew.
func (c *Comparison) Define(uid string, source Source) {
	t := &track{comparison: c, source: source, sum: ModelSum{UID: uid, Counts: map[Kind]int{}}}
	if c.tracks[uid] == nil {
		c.order = append(c.order, t)
	}
	c.tracks[uid] = t
}

// Take compares one run more. The error is that of a source.
func (c *Comparison) Take(run Run) error {
	switch t := c.tracks[run.UID]; {
	case !c.options.From.IsZero() && run.At.Before(c.options.From), !c.options.To.IsZero() && run.At.After(c.options.To):
		return nil
	case t == nil:
		c.runs++
		c.tell(Difference{Kind: Unknown, Line: run.Line, UID: run.UID, Old: run.At}, nil)
		return nil
	case run.At.Before(t.last.At):
		c.Refuse(&simulate.LineError{Line: run.Line, Err: errOrder})
		return nil
	default:
		c.runs++
		c.extend(run.At)
		return t.take(run)
	}
}

var errOrder = document.Refuse("", "the runs of a model in the order of time", "one that is older than the line of this model before")

func (c *Comparison) extend(at time.Time) {
	if c.from.IsZero() || c.options.From.IsZero() && at.Before(c.from) {
		c.from = at
	}
	if c.options.To.IsZero() && at.After(c.to) {
		c.to = at
	}
}

// Refuse notes a line that is no run.
func (c *Comparison) Refuse(err *simulate.LineError) {
	c.tell(Difference{Kind: Unreadable, Line: err.Line, Why: err.Err.Error()}, nil)
}

// End compares what is left, and returns what came of it all.
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
	}
	slices.SortStableFunc(report.Differing, func(a, b ModelSum) int {
		return cmp.Or(b.Differences()-a.Differences(), cmp.Compare(a.UID, b.UID))
	})
	for _, kind := range Kinds {
		if sum := c.sums[kind]; sum != nil {
			report.Sums = append(report.Sums, *sum)
		}
	}
	return report, nil
}

func (c *Comparison) tell(d Difference, t *track) {
	sum := c.sums[d.Kind]
	if sum == nil {
		sum = &Sum{Kind: d.Kind, Most: d}
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
	if c.options.Tell != nil {
		c.options.Tell(d)
	}
}
