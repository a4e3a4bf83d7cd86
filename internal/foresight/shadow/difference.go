package shadow

import "time"

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
	Unplanned  Kind = "unplanned"   // the old system started what no plan asks for
	GaveUp     Kind = "gave_up"     // the old system went on; we would have disabled the model
	TooLong    Kind = "too_long"    // it ran for longer than its policy allows
	Unknown    Kind = "unknown"     // a run of a model that is not defined
	Unreadable Kind = "unreadable"  // a line that is no run
)

// Kinds are all kinds, in the order in which they are told.
var Kinds = []Kind{Earlier, Later, Missed, NotRetried, Retried, Twice, Unplanned, GaveUp, TooLong, Unknown, Unreadable}

// Difference is one disagreement.
type Difference struct {
	Kind Kind          `json:"difference"`
	Line int           `json:"line"` // of the run; 0: there was none
	UID  string        `json:"uid"`  // of the model; empty: an unreadable line
	Old  time.Time     `json:"old"`
	Ours time.Time     `json:"ours"` // when we would have started; zero: not at all, or it does not matter
	By   time.Duration // how far apart they are, or of what ran for too long how much longer; 0: that says nothing
	Why  string        `json:"why"` // our refresh_why, or what is wrong with a line
}

// Sum is what there is of one kind.
type Sum struct {
	Kind   Kind       `json:"difference"`
	Count  int        `json:"count"`
	Models int        `json:"models"`
	Most   Difference // the first of those that are furthest apart
}

// ModelSum is what there is of one model.
type ModelSum struct {
	UID    string       `json:"uid"`
	Runs   int          `json:"runs"`
	Agreed int          `json:"agreed"` // runs that we would have started too, within the tolerance
	Counts map[Kind]int `json:"differences"`
}

// Differences is how many there are.
func (m *ModelSum) Differences() (n int) {
	for _, count := range m.Counts {
		n += count
	}
	return n
}

// Report is what came of a comparison.
type Report struct {
	Runs      int `json:"runs"` // that could be read
	Agreed    int `json:"agreed"`
	Unjudged  int `json:"unjudged"` // of models without a schedule: when these are to start follows from saves, which no log tells
	Models    int `json:"models"`   // that are defined
	Differing []ModelSum
	Sums      []Sum     // of those kinds that there are
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	NoRuns    int       `json:"no_runs"` // models that are defined and of which the log tells nothing
}

// Differs reports whether old and new disagree in anything.
func (r *Report) Differs() bool { return len(r.Sums) > 0 }
