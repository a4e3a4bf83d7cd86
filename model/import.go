package model

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// Moved is an exported model: all that its queue knew of it.
type Moved struct {
	Definition
	State State
	// Past are the entries of its history, newest first, as Attempt.Entry writes them.
	Past []string
}

// LeftBehind says which part of a state cannot be moved to another queue; empty: none.
func (s *State) LeftBehind() string {
	switch {
	case s.Running():
		return "its attempt: imported as due at once, not counted"
	case s.Held(): // the doubt is about its own success
	case s.Parked():
		return "its wait for " + string(s.ParkedBy) + ": imported as waiting for refresh_at"
	case s.Reserved != "":
		return "its slot of " + s.Reserved + ": imported without it"
	}
	return ""
}

const whyLeftBehind = "imported: its attempt stayed behind"

// Import gives the model the exported state at now. The caller has resolved the policy of the definition; exists: the model is stored, with the
// history past. A running attempt stays behind, as its worker answers to the old queue: the model is due at once. Blocker and slots stay behind
// too, but not the doubt about a last success.
func (m *Model) Import(moved Moved, policy policy.Policy, exists bool, past []string, now time.Time) (Decision, Outcome, error) {
	arrived := *m
	saved := &arrived
	saved.UID, saved.Payload, saved.PolicyName, saved.Fault = moved.UID, moved.Payload, moved.PolicyName, ""
	saved.Rule, saved.Timezone, saved.Dtstart = moved.Rule, moved.Timezone, moved.Dtstart
	saved.Labels, saved.State = moved.Labels, moved.State
	DeriveHost(saved, m.Host)
	saved.Fence = max(saved.Fence, m.Fence)
	_, err := schedule.Zone(moved.Timezone)
	if err = cmp.Or(m.Wire.refuseReserved(moved.Payload), err); err == nil {
		err = cmp.Or(saved.Resolve(policy, schedule.Parse), document.Place(saved.validateImported(), "state"))
	}
	if err != nil {
		return Decision{}, Unchanged, err
	}
	same := func() bool {
		return exists && saved.State == m.State && saved.sameDefinition(m) && maps.Equal(saved.Labels, m.Labels) && slices.Equal(moved.Past, past)
	}
	unchanged := same()
	if !saved.Held() {
		saved.unpark(&saved.State, now)
	}
	saved.Reserved = ""
	if unchanged || same() {
		return Decision{}, Unchanged, nil
	}
	if saved.Running() {
		saved.State = saved.Withdraw(now).Next
		saved.Why = whyLeftBehind
	}
	past = append([]string{}, moved.Past...)
	return Decision{Event: EventImport, Next: saved.State, Definition: saved, PolicyText: moved.policyText(), Past: past, Recheck: Never}, Applied, nil
}

// validateImported refuses a state that breaks the invariants of State.
func (s *State) validateImported() error {
	running, complete := s.Running(), !s.StartedAt.IsZero() && !s.DeadlineAt.IsZero()
	switch {
	case running && !complete:
		return document.Refuse("attempt_uid", "started_at and deadline_at beside it", "not both")
	case !running && (!s.StartedAt.IsZero() || !s.DeadlineAt.IsZero()):
		return document.Refuse("attempt_uid", "an attempt, as started_at or deadline_at is given", "nothing")
	case !running && s.Counted != "":
		return document.Refuse("counted_by", "nothing, as no attempt runs", document.Found(s.Counted))
	case s.Disabled && running:
		return document.Refuse("attempt_uid", "nothing, as the model is disabled", "an attempt")
	case s.Disabled && !s.RefreshAt.IsZero():
		return document.Refuse("refresh_at", "nothing, as the model is disabled", FormatTime(s.RefreshAt))
	default:
		return nil
	}
}
