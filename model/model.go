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
	// Labels are what selectors pick models by; nil: none.
	Labels map[string]string

	State

	Policy   policy.Policy      // in force
	Schedule *schedule.Schedule // in force: the model's own, or else its policy's; nil for a one-shot
	Window   *schedule.Window   // in force; nil: retries may start at any time
	// Fault says what of the stored definition cannot be used; Policy and Schedule then hold safe replacements.
	Fault string
	// RuleError is what a decision found wrong with a rule: it took too many steps. Empty: nothing.
	RuleError string
	// QueueCircuit is that of the queue, as it was when the model was read.
	QueueCircuit QueueCircuit
	// QueueDepth is the length of the input list as it was when the model was read; only where an expression asks for it.
	QueueDepth int
	// Taken says that a worker has the running attempt: its entry was looked for in the input list and does not stand there.
	Taken bool
	// ReplyTo is the list on which attempts are answered; empty: workers are not told, as the queue has one.
	ReplyTo string
	// Wire is how the messages of the queue are written.
	Wire Wire
	// Traces says that the entry of an attempt that is started names its trace.
	Traces bool
}

// OneShot reports whether the model has no schedule: it is refreshed when it is saved or run by hand.
func (m *Model) OneShot() bool { return m.Rule == "" && m.Policy.Rule == "" }

// Resolve puts a policy in force, with the schedule that follows from it and from the model's own definition. A model's own
// rule wins over that of its policy; one without may still name its own timezone and dtstart for the policy's rule. The
// first thing that cannot be compiled is returned; what can be is in force all the same.
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

// ReadAs tells how the rule in force was read. The errors are those of schedule.ReadAs, also when there is none.
func (m *Model) ReadAs(after time.Time) (schedule.Understood, error) {
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

// Lint looks at the definition in force for what is allowed and seldom meant, see policy.Subject.Lint.
func (m *Model) Lint(anchored bool, now time.Time) []policy.Warning {
	return policy.Subject{Policy: &m.Policy, Schedule: m.Schedule, Rule: m.Rule, Timezone: m.Zone()}.Lint(anchored, now)
}
