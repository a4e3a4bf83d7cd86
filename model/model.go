package model

import (
	"cmp"
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// Model is one thing to be refreshed: its definition, its state, and the definition in force (policy and schedule resolved).
type Model struct {
	UID        string
	Payload    string // canonical JSON object, handed to workers
	Rule       string // RRULE set, empty for a one-shot
	Timezone   string // IANA name, empty for UTC
	Dtstart    string // wall clock in that zone, fixed once
	PolicyName string // key in the stored policies, empty for the default
	// Labels are for selectors; nil: none.
	Labels map[string]string
	// Host is the host of its input_url, which a selector knows as the label host; empty: it has none, or has a label of that name.
	Host string

	State

	Policy   policy.Policy      // in force
	Schedule *schedule.Schedule // in force: the model's own, or else its policy's; nil for a one-shot
	Window   *schedule.Window   // in force; nil: retries may start at any time
	// Fault says which part of the stored definition is unusable; Policy and Schedule then hold safe replacements.
	Fault string
	// RuleError is the error of a rule that took a decision too many steps. Empty: none.
	RuleError string
	// QueueCircuit is the circuit of the queue, as it was when the model was read.
	QueueCircuit QueueCircuit
	// QueueDepth is the length of the input list as it was when the model was read; only where an expression asks for it.
	QueueDepth int
	// Past is its history, newest first. Only guards need it, and the commands that accept or reject a doubted success.
	Past []Attempt
	// Taken: a worker has the running attempt; its entry is no longer in the input list.
	Taken bool
	// ReplyTo is the list for answers; empty: workers use the list of the queue.
	ReplyTo string
	// Wire is how the messages of the queue are written.
	Wire Wire
	// Traces says that the entry of an attempt that is started names its trace.
	Traces bool
	// KeepsLogs says that the queue keeps the logs of attempts.
	KeepsLogs bool
}

// OneShot reports whether the model has no schedule: it is refreshed when it is saved or run by hand.
func (m *Model) OneShot() bool { return m.Rule == "" && m.Policy.Rule == "" }

// Resolve puts a policy in force, with its schedule. A model's own rule replaces the policy's; a model without one may still name timezone and
// dtstart. It returns the first thing that cannot be compiled; the rest is in force.
func (m *Model) Resolve(policy policy.Policy, compile schedule.Compile) error {
	m.Policy, m.Schedule, m.Window = policy, nil, nil
	timezone := m.Zone()
	var err error
	if policy.RetryWindow != "" {
		m.Window, err = schedule.ParseWindow(policy.RetryWindow, timezone, compile)
	}
	if m.OneShot() {
		return err
	}
	own, failed := compile(cmp.Or(m.Rule, policy.Rule), timezone, cmp.Or(m.Dtstart, policy.Anchor()))
	if failed != nil {
		return failed
	}
	m.Schedule = own
	return err
}

// Zone is the IANA name of the zone in force, of schedule and retry window; empty for UTC.
func (m *Model) Zone() string {
	if m.Rule == "" && m.Timezone == "" {
		return m.Policy.Timezone
	}
	return m.Timezone
}

// ReadAs describes the rule in force in words. Its errors come from schedule.ReadAs, also without a rule.
func (m *Model) ReadAs(after time.Time) (schedule.ParsedAs, error) {
	return schedule.ReadAs(cmp.Or(m.Rule, m.Policy.Rule), m.Zone(), cmp.Or(m.Dtstart, m.Policy.Dtstart), after)
}

// faultDelay is how long a model waits whose schedule cannot be used.
const faultDelay = time.Hour

func (m *Model) planned(after time.Time) (time.Time, bool) {
	switch {
	case m.OneShot():
		return time.Time{}, false
	case m.Schedule == nil:
		return after.Add(faultDelay), true
	}
	evaluate := m.Schedule.Evaluate
	if m.Policy.Spread > 0 || m.Phase > 0 {
		evaluate = m.Spread().Evaluate
	}
	next, found, err := evaluate(after)
	if err != nil {
		m.RuleError = err.Error()
		return after.Add(faultDelay), true
	}
	return next, found
}

func (m *Model) opens(at time.Time) time.Time {
	opens, err := m.Window.Open(at)
	if err != nil {
		m.RuleError = err.Error()
	}
	return opens
}

// Planned returns the next planned refresh strictly after an instant, or a zero time.
func (m *Model) Planned(after time.Time) time.Time {
	at, _ := m.planned(after)
	return at
}

// Lint warns of a definition that is allowed and seldom meant, see policy.Subject.Lint.
func (m *Model) Lint(anchored bool, now time.Time) []policy.Warning {
	return policy.Subject{Policy: &m.Policy, Schedule: m.Schedule, Rule: m.Rule, Timezone: m.Zone()}.Lint(anchored, now)
}

// Replan plans the model anew after a change of its policy, and watches its freshness accordingly. To repeat it changes nothing.
func (m *Model) Replan(now time.Time) (Decision, Outcome) {
	if decision, changed := m.planAnew(now); changed {
		return decision, Applied
	}
	decision := Decision{Event: EventWatch, Next: m.State}
	next := &decision.Next
	m.Watch(&decision, now)
	if next.Freshness == m.Freshness && next.StaleAt.Equal(m.StaleAt) && next.FreshSince.Equal(m.FreshSince) {
		return Decision{}, Unchanged
	}
	return decision, Applied
}

// planAnew changes only a model that waits for a planned refresh or for nothing. If that time has another reason too (a retry, the end of a
// window, a wish of a worker), it may come sooner, never later.
func (m *Model) planAnew(now time.Time) (decision Decision, changed bool) {
	if !m.replannable(now) {
		return decision, false
	}
	decision = Decision{Event: EventReplan, Next: m.State}
	next := &decision.Next
	m.plan(next, now)
	m.boundWait(next, now)
	stands := !m.RefreshAt.IsZero() && (m.AttemptNo > 0 || m.Deferrals > 0 || m.endsWindow() || m.RefreshAt.Equal(m.NotBefore))
	switch at := next.RefreshAt; {
	case at.Equal(m.RefreshAt):
		return decision, false
	case !m.OneShot() && (m.Schedule == nil || m.RuleError != ""): // nobody knows when: the next decision looks again
		return decision, false
	case at.IsZero() && m.Rule != "", stands && (at.IsZero() || at.After(m.RefreshAt)):
		return decision, false
	case at.IsZero():
		next.NotBefore = time.Time{}
	}
	return decision, true
}

// replannable reports whether the model waits for a planned refresh, the end of the give-up window, or nothing.
func (m *Model) replannable(now time.Time) bool {
	return !m.Disabled && !m.Running() && !m.Parked() && !m.Due(now) && (m.Trigger == TriggerPlanned || m.endsWindow())
}

// Spread shifts the occurrences of the schedule for this model: by its phase, or else by its part of the spread of its policy.
func (m *Model) Spread() schedule.Spread {
	spread := schedule.Spread{Schedule: m.Schedule, Length: m.Policy.Spread, By: m.Phase}
	if spread.Length > 0 {
		spread.Phase = policy.Fraction("spread", m.UID)
	}
	return spread
}

// Level gives the model a phase, or takes it away (0), so that planned starts come evenly. The planned refresh that it waits for moves too, unless
// it would be in the past. No refresh is left out or comes twice. A model that does anything else is Busy. To repeat it changes nothing.
func (m *Model) Level(phase time.Duration, now time.Time) (Decision, Outcome) {
	if phase == m.Phase {
		return Decision{}, Unchanged
	}
	decision := Decision{Event: EventLevel, Next: m.State}
	next := &decision.Next
	next.Phase = phase
	if !m.Running() && m.RefreshAt.IsZero() { // it waits for nothing, or is disabled
		return decision, Applied
	}
	levelled := *m
	levelled.Phase = phase
	at, waits := m.shifted(levelled.Spread(), now)
	if !waits {
		return Decision{}, Busy
	}
	next.RefreshAt = at
	m.boundWait(next, now)
	return decision, Applied
}

// shifted is the time of the awaited planned refresh under another spread; it stays if that would be in the past. false: the model waits for
// something else.
func (m *Model) shifted(spread schedule.Spread, now time.Time) (time.Time, bool) {
	if !m.replannable(now) || m.Schedule == nil || m.RefreshAt.IsZero() {
		return time.Time{}, false
	}
	occurrence, found, err := m.Spread().Occurrence(m.RefreshAt)
	if err != nil || !found {
		return time.Time{}, false
	}
	following, more, err := m.Schedule.Evaluate(occurrence)
	if err != nil {
		return time.Time{}, false
	}
	if at := spread.Shifted(occurrence, following, more); at.After(now) {
		return at, true
	}
	return m.RefreshAt, true
}
