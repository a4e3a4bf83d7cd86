package shadow

import (
	"cmp"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

type track struct {
	comparison *Comparison
	source     Source
	sum        ModelTotals
	unjudged   int

	model   *model.Model // nil: no run yet
	within  time.Duration
	last    Run // the one that came last; zero: none
	waits   bool
	before  Run           // the one before it that was judged; zero: none
	shift   time.Duration // by how much our cycle of attempts is later than the old one
	started int
	others  []Proposal
}

func newTrack(c *Comparison, uid string, source Source) *track {
	return &track{comparison: c, source: source, sum: ModelTotals{UID: uid, Counts: map[Kind]int{}}}
}

// take judges the run before, when the one after it is known.
func (t *track) take(run Run) error {
	if t.model == nil {
		if err := t.begin(run.At, t.comparison.options.From); err != nil {
			return err
		}
		t.tryOthers()
	}
	for _, o := range t.others {
		if err := o.track.take(run); err != nil {
			return err
		}
	}
	if t.waits {
		t.judge(t.last, run.At)
	}
	t.last, t.waits = run, true
	t.sum.Runs++
	return nil
}

// end judges the last run, and our starts until the end of the log.
func (t *track) end(from, to time.Time) error {
	if t.model == nil {
		if from.IsZero() {
			return nil
		}
		if err := t.begin(from, from); err != nil {
			return err
		}
	}
	if t.waits {
		t.judge(t.last, time.Time{})
	}
	for t.next(to.Add(-t.within)) && !t.model.RefreshAt.After(to.Add(-t.within)) {
		t.pass()
	}
	return nil
}

// begin makes the model. Its first start is the first planned one after from, or if the beginning of the log is unknown, the one of its first run.
func (t *track) begin(at, from time.Time) error {
	if !from.IsZero() {
		at = from
	}
	made, err := t.source(at)
	if err != nil {
		return err
	}
	t.model = made
	made.Policy.Jitter = 0 // it follows from the names of attempts, which these are not
	t.within = t.comparison.options.Within
	planned := made.Planned(at.Add(-time.Millisecond))
	for range 8 {
		following := made.Planned(planned)
		if planned.IsZero() || following.IsZero() {
			break
		}
		t.within, planned = min(t.within, following.Sub(planned)/3), following
	}
	if from.IsZero() {
		from = t.plannedBefore(at.Add(t.within))
	}
	t.plan(made.Planned(from.Add(-time.Millisecond)))
	return nil
}

// plannedBefore is the last planned refresh up to an instant, or that instant if there was none within a year.
func (t *track) plannedBefore(at time.Time) time.Time {
	for _, back := range []time.Duration{time.Hour, 25 * time.Hour, 8 * 24 * time.Hour, 32 * 24 * time.Hour, 367 * 24 * time.Hour} {
		last := time.Time{}
		for planned := t.model.Planned(at.Add(-back)); !planned.IsZero() && !planned.After(at); planned = t.model.Planned(planned) {
			last = planned
		}
		if !last.IsZero() {
			return last
		}
	}
	return at
}

// plan begins a new cycle at a planned refresh; zero: there is none.
func (t *track) plan(at time.Time) {
	t.model.RefreshAt, t.model.Trigger, t.model.Why, t.model.AttemptNo = at, model.TriggerPlanned, "planned", 0
}

// next ends a give-up window that is over by then, and reports whether the model waits for a start.
func (t *track) next(until time.Time) bool {
	for t.model.Waiting() && t.model.Trigger == model.TriggerGiveUp && !t.model.RefreshAt.After(until) {
		t.model.State = t.model.StartOrSkip(t.model.RefreshAt, "").Next
	}
	return t.model.Waiting()
}

// judge compares a run with our start. following is when the old system ran next; zero: it did not.
func (t *track) judge(run Run, following time.Time) {
	defer func() { t.before = run }()
	for t.next(run.At.Add(t.within)) {
		at, ours, retry := run.At, t.model.RefreshAt, t.model.Trigger == model.TriggerRetry
		if retry {
			at = at.Add(t.shift)
		}
		late, before := at.Sub(ours), t.before.At
		belongsToNext := func() bool { // it is nearer to the planned refresh after our start
			planned := t.model.Planned(ours)
			return !planned.IsZero() && planned.Sub(at) <= late
		}
		switch {
		case late.Abs() <= t.within:
			t.sum.Agreed++
			t.start(run, ours)
		case !before.IsZero() && (run.At.Before(t.before.EndedAt) || run.At.Sub(before) <= t.within): // its last run was still going on
			t.differ(Twice, run, time.Time{}, run.At.Sub(before))
		case late > 0 && belongsToNext():
			t.pass()
			continue
		case late > 0:
			t.differ(Earlier, run, ours.Add(run.At.Sub(at)), late)
			t.start(run, ours)
		case t.matches(run, following, ours, retry):
			t.differ(Later, run, ours.Add(run.At.Sub(at)), -late)
			t.start(run, ours)
		case t.model.AttemptNo == 0: // the run stands for none of our starts
			t.differ(Unplanned, run, ours, 0)
		default:
			t.differ(Retried, run, ours, ours.Sub(run.At))
			if run.Outcome == simulate.Success { // the next run is no retry
				t.model.AttemptNo, t.model.FailingSince, t.model.TryingSince = 0, time.Time{}, time.Time{}
				t.model.LastSuccessAt = run.At
			}
		}
		return
	}
	switch {
	case t.model.Disabled: // as if its owner had saved it just then
		t.differ(GaveUp, run, time.Time{}, 0)
		decision, _ := t.model.Enable(run.At)
		t.model.State = decision.Next
		t.start(run, run.At)
	case t.model.OneShot():
		t.unjudged++
		t.start(run, run.At)
	default:
		t.differ(Unplanned, run, time.Time{}, 0)
	}
}

// matches reports whether an early run belongs to our start: no other run is nearer to it, and the run before is farther from it.
func (t *track) matches(run Run, following, ours time.Time, retry bool) bool {
	at, shift := run.At, time.Duration(0)
	if retry {
		at, shift = at.Add(t.shift), t.shift
	}
	early := ours.Sub(at)
	// After a failure the next run is a retry, and one that follows immediately is the same run again.
	own := run.Outcome == simulate.Failure || run.Outcome == simulate.Lost || following.Before(run.EndedAt) || following.Sub(run.At) <= t.within
	if !following.IsZero() && !own && following.Add(shift).Sub(ours).Abs() < early {
		return false
	}
	return retry || t.before.At.IsZero() || early < run.At.Sub(t.before.At)
}

// pass skips our start, for which there is no run.
func (t *track) pass() {
	ours, kind := t.model.RefreshAt, Missed
	if t.model.Trigger == model.TriggerRetry {
		kind = NotRetried
		ours = ours.Add(-t.shift)
	}
	t.differ(kind, Run{}, ours, 0)
	t.plan(t.model.Planned(t.model.RefreshAt))
}

func (t *track) start(run Run, at time.Time) {
	t.started++
	m := t.model
	m.State = m.Start(at, strconv.Itoa(t.started)).Next
	if m.Policy.QueueTimeout > 0 {
		begun, _ := m.Begin(at, "")
		m.State = begun.Next
	}
	t.shift = at.Sub(run.At)
	if run.Outcome == simulate.Lost {
		m.State = m.Expire(m.DeadlineAt).Next
		return
	}
	end := at.Add(run.length())
	if over := end.Sub(m.DeadlineAt); over > 0 {
		t.differ(TooLong, run, time.Time{}, over)
	}
	if run.Outcome == simulate.Failure {
		m.State = m.Fail(policy.Failure{ErrorType: run.ErrorType, Reason: run.ErrorType}, end).Next
		return
	}
	m.State = m.Succeed(end, nil).Next
}

func (t *track) differ(kind Kind, run Run, ours time.Time, by time.Duration) {
	t.comparison.add(Difference{Kind: kind, Line: run.Line, UID: t.sum.UID, Old: run.At, Ours: ours, By: by, Why: t.model.Why}, t)
}

// Proposal is a rule with which a model would differ less: another reading of the text of its own, see schedule.Alternatives.
type Proposal struct {
	UID     string `json:"uid"`
	Rule    string `json:"rrule"`
	Differs int    `json:"differs"`  // so many times by this rule
	Differ  int    `json:"differed"` // and by its own

	track *track
}

// tryOthers also judges the runs by other rules.
func (t *track) tryOthers() {
	for _, rule := range schedule.Alternatives(cmp.Or(t.model.Rule, t.model.Policy.Rule)) {
		options := t.comparison.options
		options.Found = nil
		other := newTrack(New(options), t.sum.UID, func(at time.Time) (*model.Model, error) {
			made, err := t.source(at)
			if err != nil {
				return nil, err
			}
			changed := *made
			changed.Rule, changed.Timezone = rule, made.Zone()
			return &changed, changed.Resolve(changed.Policy, schedule.Parse)
		})
		t.others = append(t.others, Proposal{UID: t.sum.UID, Rule: rule, track: other})
	}
}

func (t *track) proposals(from, to time.Time) (better []Proposal, err error) {
	for _, p := range t.others {
		if err := p.track.end(from, to); err != nil {
			return nil, err
		}
		if p.Differs, p.Differ = p.track.sum.Differences(), t.sum.Differences(); p.Differs < p.Differ {
			better = append(better, p)
		}
	}
	return better, nil
}
