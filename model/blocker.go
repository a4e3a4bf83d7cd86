package model

import (
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Blocker is what parks models: a kind and a name, such as hold:h1 or limit:host=example.com. Empty: none.
type Blocker string

// The kinds of blockers.
const (
	BlockerHold     = "hold"     // somebody has stopped it, see Hold
	BlockerCalendar = "calendar" // a calendar that its policy names is closed
	BlockerLimit    = "limit"    // as many of its key run as may
	BlockerCircuit  = "circuit"  // too many of its key fail
)

// BlockerKinds are all of them.
var BlockerKinds = []string{BlockerHold, BlockerCalendar, BlockerLimit, BlockerCircuit}

// NewBlocker is the blocker of a kind with a name.
func NewBlocker(kind, name string) Blocker { return Blocker(kind + ":" + name) }

// Split returns kind and name.
func (b Blocker) Split() (kind, name string) {
	kind, name, _ = strings.Cut(string(b), ":")
	return kind, name
}

// Park lets a model that is due wait for a blocker, which a dispatcher is to recheck at by an instant. It is no failure, and what it waits counts
// for nothing. One that is parked already moves to the blocker.
func (m *Model) Park(blocker Blocker, recheck, now time.Time) Decision {
	decision := Decision{Event: EventParked, Next: m.State, Recheck: recheck}
	next := &decision.Next
	if !m.Parked() {
		next.ParkedSince = now
	}
	next.ParkedBy = blocker
	return decision
}

// Release lets a parked model wait for an instant again, from which it starts once: whatever it has missed, and nothing of that counts. A
// retry still waits for its window, and nothing starts before what a worker has asked for.
func (m *Model) Release(at, now time.Time) Decision {
	decision := Decision{Event: EventReleased, Next: m.State}
	next := &decision.Next
	m.unpark(next, now)
	m.notTried(next, at.Sub(now)) // nor does what it waits for its turn count
	if next.NotBefore.After(at) {
		at = next.NotBefore
	}
	switch end := m.giveUpAt(next); {
	case next.endsWindow() && !end.IsZero():
		at = end
	case next.Trigger == TriggerRetry:
		at = m.opens(at)
	}
	next.wait(at, next.Trigger, document.Shorten("released by "+string(m.ParkedBy), maxWhy))
	return decision
}

// Admit lets a parked model through its blocker: it does at now what it was due for.
func (m *Model) Admit(now time.Time, attemptUID string) Decision {
	released := *m
	released.State = m.Release(now, now).Next
	if !released.Due(now) {
		return m.Release(now, now)
	}
	return released.StartOrSkip(now, attemptUID)
}

// unpark ends the wait for a blocker. Parked time does not count towards giving up.
func (m *Model) unpark(next *State, now time.Time) {
	if !next.Parked() {
		return
	}
	m.notTried(next, now.Sub(next.ParkedSince))
	next.ParkedBy, next.ParkedSince = "", time.Time{}
}
