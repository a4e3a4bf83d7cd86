package model

import (
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Blocker parks models: a kind and a name, such as hold:h1 or limit:host=example.com. Empty: none.
type Blocker string

// The kinds of blockers.
const (
	BlockerHold     = "hold"     // somebody has stopped it, see Hold
	BlockerCalendar = "calendar" // a calendar that its policy names is closed
	BlockerLimit    = "limit"    // as many of its key run as may
	BlockerCircuit  = "circuit"  // too many of its key fail
	BlockerSuspect  = "suspect"  // its last success is doubted: somebody has to accept or reject it
)

// BlockerKinds are all of them.
var BlockerKinds = []string{BlockerHold, BlockerCalendar, BlockerLimit, BlockerCircuit, BlockerSuspect}

// NewBlocker is the blocker of a kind with a name.
func NewBlocker(kind, name string) Blocker { return Blocker(kind + ":" + name) }

// Split returns kind and name.
func (b Blocker) Split() (kind, name string) {
	kind, name, _ = strings.Cut(string(b), ":")
	return kind, name
}

// Kind is the kind of a blocker, such as limit.
func (b Blocker) Kind() string {
	kind, _ := b.Split()
	return kind
}

// Park lets a due model wait for a blocker until a dispatcher rechecks it. Parked time counts for nothing. A parked model moves to the new blocker.
func (m *Model) Park(blocker Blocker, recheck, now time.Time) Decision {
	decision := Decision{Event: EventParked, Next: m.State, Recheck: recheck}
	next := &decision.Next
	if !m.Parked() {
		next.ParkedSince = now
	}
	next.ParkedBy = blocker
	return decision
}

// whyReleased begins why a released model starts when it does; its blocker follows.
const whyReleased = "released by "

// Release ends the wait for a blocker: the model starts once, whatever it has missed. A retry still waits for its window.
func (m *Model) Release(at, now time.Time) Decision {
	decision := Decision{Event: EventReleased, Next: m.State}
	next := &decision.Next
	m.unpark(next, now)
	m.notTried(next, at.Sub(now)) // nor does the wait for its turn count
	if next.NotBefore.After(at) {
		at = next.NotBefore
	}
	switch end := m.giveUpAt(next); {
	case next.endsWindow() && !end.IsZero():
		at = end
	case next.Trigger == TriggerRetry && m.opens(at).After(at):
		decision.PolicyError = m.rejoin(next, at, now)
		return decision
	}
	next.wait(at, next.Trigger, document.Shorten(whyReleased+string(m.ParkedBy), maxWhy))
	return decision
}

// admit returns a due or parked model as it starts at now; false: the decision is carried out instead.
func (m *Model) admit(now time.Time) (admitted *Model, decision Decision, starts bool) {
	admitted = m
	if m.Parked() {
		released := *m
		released.State = m.Release(now, now).Next
		if admitted = &released; !released.Due(now) {
			return admitted, m.Release(now, now), false
		}
	}
	decision, skips := admitted.skip(now)
	return admitted, decision, !skips
}

// unpark ends the wait for a blocker. Parked time does not count towards giving up.
func (m *Model) unpark(next *State, now time.Time) {
	if !next.Parked() {
		return
	}
	m.notTried(next, now.Sub(next.ParkedSince))
	next.Unpublished = next.Unpublished && next.ParkedBy != BySuspect
	next.ParkedBy, next.ParkedSince = "", time.Time{}
}

// Hold is a pause of all models that a selector picks. Each of them starts once when it ends. The tags are for output; Redis has another form.
type Hold struct {
	ID       string        `json:"id"`
	Selector Selector      `json:"selector"` // of all: the whole queue
	Since    time.Time     `json:"since"`
	Until    time.Time     `json:"until"`  // zero: until somebody releases it
	Within   time.Duration `json:"within"` // over which the starts of its models are spread when it ends; 0: all at once
	Reason   string        `json:"reason"` // for people
	By       string        `json:"by"`     // who wanted it; empty: nobody says
}

// MaxWithin is the longest time over which starts are spread.
const MaxWithin = 24 * time.Hour

// Validate reports the first field out of range. A held model keeps waiting, so a selector may use no status but failing.
func (h *Hold) Validate() error {
	switch {
	case !document.IsUID(h.ID):
		return document.ValidateID("id", h.ID)
	case h.Within < 0 || h.Within > MaxWithin:
		return document.Refuse("within", "0s to "+document.FormatDuration(MaxWithin), document.FormatDuration(h.Within))
	case !h.Until.IsZero() && !h.Until.After(h.Since):
		return document.Refuse("until", "a time after "+FormatTime(h.Since), FormatTime(h.Until))
	}
	if slices.ContainsFunc(h.Selector.terms, func(t term) bool { return t.name == SelectWaits }) {
		return document.Refuse("selector", "no waits, as every model that a hold stops waits for the hold", document.Found(h.Selector.String()))
	}
	for _, t := range h.Selector.terms {
		for _, status := range t.values {
			if t.name == SelectStatus && status != string(StatusFailing) {
				return document.Refuse("selector", "status=failing, or no status, as every model that a hold stops is due", document.Found("status="+status))
			}
		}
	}
	return nil
}

// Blocker is the blocker of the hold.
func (h *Hold) Blocker() Blocker { return NewBlocker(BlockerHold, h.ID) }

// Ended reports whether the hold is over at now.
func (h *Hold) Ended(now time.Time) bool { return !h.Until.IsZero() && !h.Until.After(now) }

func (h *Hold) recheck() time.Time {
	if h.Until.IsZero() {
		return Never
	}
	return h.Until
}

// Never is an instant that nobody waits for.
var Never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// StartsAt is when a model starts that waited for the end of the hold, which is over.
func (h *Hold) StartsAt(uid string) time.Time {
	return h.Until.Add(time.Duration(policy.Fraction("hold "+h.ID, uid) * float64(h.Within)).Truncate(time.Millisecond))
}
