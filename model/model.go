package model

import "time"

// Model is one thing to be refreshed: its definition, its state, and the definition in force (policy and schedule
// resolved).
type Model struct {
	UID        string
	Payload    string // canonical JSON object, handed to workers
	Rule       string // RRULE set, empty for a one-shot
	Timezone   string // IANA name, empty for UTC
	Dtstart    string // wall clock in that zone, fixed once (decision 9)
	PolicyName string // key in the stored policies, empty for the default

	State

	Policy   Policy    // in force
	Schedule *Schedule // in force; nil for a one-shot
	// Fault says what of the stored definition cannot be used; Policy and Schedule then hold safe replacements.
	Fault string
}

// OneShot reports whether the model has no schedule: it is refreshed when it is saved or run by hand.
func (m *Model) OneShot() bool { return m.Rule == "" }

// faultDelay is how long a model waits whose schedule cannot be read; it is never lost and never runs wild.
const faultDelay = time.Hour

// planned returns the next occurrence of the schedule strictly after an instant; false: there is none.
func (m *Model) planned(after time.Time) (time.Time, bool) {
	switch {
	case m.OneShot():
		return time.Time{}, false
	case m.Schedule == nil:
		return after.Add(faultDelay), true
	default:
		return m.Schedule.Next(after)
	}
}

// Planned returns the next planned refresh strictly after an instant, or a zero time.
func (m *Model) Planned(after time.Time) time.Time {
	at, _ := m.planned(after)
	return at
}
