package model

import (
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// Blockers may keep models of a queue from starting, as read at one instant. The zero value keeps none.
type Blockers struct {
	Holds []Hold
	// HoldChanges distinguishes this state of the holds from any other.
	HoldChanges string
	Calendars   map[string]schedule.Calendar
	QueueLimits []QueueLimit     // of all models of the queue
	Limits      map[string]Limit // that were set for a key at run time
	Part, Parts int              // the part of the queue; 0 parts: it has one
}

// recheckLater is when a dispatcher checks a blocker again that nobody reported as open.
const recheckLater = 30 * time.Second

// recheckSoon is the same for a limit that was just found full: a slot may be free already.
const recheckSoon = time.Second

// Empty reports whether nothing is stopped whatever policies say.
func (b *Blockers) Empty() bool { return len(b.Holds) == 0 && len(b.QueueLimits) == 0 }

// Hold finds a hold; nil: there is none of that name.
func (b *Blockers) Hold(id string) *Hold {
	for i := range b.Holds {
		if b.Holds[i].ID == id {
			return &b.Holds[i]
		}
	}
	return nil
}

// Needs returns the limits of a model, whose keys StartOrPark reads, and the key of its circuit; empty: none.
func (b *Blockers) Needs(m *Model, now time.Time) (limits []Limit, circuit string) {
	return b.LimitsOf(m, now), m.CircuitKey()
}

// Stop finds the hold or calendar that blocks a model at now and ends last, and when to recheck it; empty: none.
func (b *Blockers) Stop(m *Model, now time.Time) (blocker Blocker, recheck time.Time) {
	for i := range b.Holds {
		hold := &b.Holds[i]
		if !hold.Ended(now) && hold.recheck().After(recheck) && hold.Selector.Matches(m, StatusDue) {
			blocker, recheck = hold.Blocker(), hold.recheck()
		}
	}
	for _, name := range m.Policy.Closed {
		if until, closed := b.closed(name, now); closed && until.After(recheck) {
			blocker, recheck = NewBlocker(BlockerCalendar, name), until
		}
	}
	return blocker, recheck
}

// closed ignores a calendar that is not stored, or whose rule fails.
func (b *Blockers) closed(name string, now time.Time) (until time.Time, closed bool) {
	calendar, stored := b.Calendars[name]
	if !stored {
		return until, false
	}
	until, closed, err := calendar.ClosedUntil(now)
	return until, closed && err == nil
}

// StartOrPark decides for a due or parked model at now: Model.StartOrSkip, or it parks, or it waits for a slot. limiters has the keys of Needs, and
// notes the slots that the model takes.
func (b *Blockers) StartOrPark(m *Model, limiters *Limiters, attemptUID string, now time.Time) Decision {
	admitted, decision, stops := b.stops(m, limiters, now)
	if stops {
		limiters.acquire(decision.Acquires)
		return decision
	}
	limits, held, acquires := limiters.limitsOf(b, m, now), strings.Fields(m.Reserved), decision.Acquires
	decision = admitted.Start(now, attemptUID)
	limiters.start(limits, acquires, held, m.RefreshAt, now)
	limiters.acquire(acquires)
	decision.Acquires = acquires
	var counted []string
	for _, acquire := range acquires {
		counted = append(counted, string(NewBlocker(BlockerLimit, acquire.Name)))
	}
	if m.ParkedBy == NewBlocker(BlockerLimit, limiters.Full(limits)) { // nobody else goes before a slot is freed
		decision.Recheck = now.Add(recheckLater)
	}
	if circuit := m.CircuitKey(); circuit != "" {
		counted = append(counted, string(NewBlocker(BlockerCircuit, circuit)))
		if state := limiters.Circuits[circuit]; state != nil && state.Open() {
			decision.Probe, state.Probe = true, m.UID
		}
	}
	decision.Next.Counted = strings.Join(counted, " ")
	return decision
}

// stops finds the blocker of a model at now; false: it starts as admitted and acquires the slots of the decision. The limiters stay unchanged.
func (b *Blockers) stops(m *Model, limiters *Limiters, now time.Time) (admitted *Model, decision Decision, stops bool) {
	if blocker, recheck := b.Stop(m, now); blocker != "" {
		return m, m.Park(blocker, recheck, now), true
	}
	circuit := m.CircuitKey()
	if state := limiters.Circuits[circuit]; circuit != "" && state != nil && state.Open() && !state.probes(now) {
		recheck := state.ProbeAt
		if !recheck.After(now) {
			recheck = now.Add(recheckLater)
		}
		return m, m.Park(NewBlocker(BlockerCircuit, circuit), recheck, now), true
	}
	admitted, decision, starts := m.admit(now)
	if !starts {
		return admitted, decision, true
	}
	limits, held := limiters.limitsOf(b, m, now), strings.Fields(m.Reserved)
	if name := limiters.Full(limits); name != "" {
		recheck, full := now.Add(recheckSoon), NewBlocker(BlockerLimit, name)
		if m.ParkedBy == full {
			recheck = now.Add(recheckLater)
		}
		return m, m.Park(full, recheck, now), true
	}
	if name, opens := limiters.closed(limits, held, now); name != "" {
		decision = m.Park(NewBlocker(BlockerLimit, name), opens, now)
		decision.Acquires = []Acquire{{Name: name, Before: limiters.key(name).Slots, After: limiters.key(name).Slots}} // by a start that may be refused
		return m, decision, true
	}
	at, acquires, holds := limiters.reserve(limits, held, now)
	if at.After(now) {
		return m, m.reserve(at, acquires, holds, now), true
	}
	return admitted, Decision{Acquires: acquires}, false
}

// reserve keeps a slot for a model. If the window of a retry is closed then, the retry waits for it, or for the planned refresh. The wait does not
// count towards giving up.
func (m *Model) reserve(at time.Time, acquires []Acquire, holds []string, now time.Time) Decision {
	decision := Decision{Event: EventLimited, Next: m.State}
	next := &decision.Next
	m.unpark(next, now)
	m.notTried(next, at.Sub(now))
	next.wait(at, next.Trigger, document.Shorten("limited by "+strings.Join(holds, ", "), maxWhy))
	if m.Trigger.started() == TriggerRetry && m.opens(at).After(at) {
		decision.PolicyError = m.rejoin(next, at, now)
	}
	keeps := next.RefreshAt.Equal(at) // else the slots are left to others
	if keeps {
		next.Reserved = strings.Join(holds, " ")
	}
	for _, acquire := range acquires {
		if acquire.Limit = 0; !keeps {
			acquire.After = acquire.Before
		}
		if acquire.After != (Slots{}) {
			decision.Acquires = append(decision.Acquires, acquire)
		}
	}
	return decision
}

// Opens reports whether a blocker may let models go on at now, and if not when to check again. Of limits and circuits Pass decides for each model.
func (b *Blockers) Opens(blocker Blocker, now time.Time) (opens bool, recheck time.Time) {
	kind, name := blocker.Split()
	switch kind {
	case BlockerHold:
		if hold := b.Hold(name); hold != nil && !hold.Ended(now) {
			return false, hold.recheck()
		}
	case BlockerCalendar:
		if until, closed := b.closed(name, now); closed {
			return false, until
		}
	case BlockerSuspect:
		return false, Never
	}
	return true, time.Time{}
}

// Pass decides for a model whose blocker has opened. false: the same blocker stops it again, and it stays unchanged.
func (b *Blockers) Pass(m *Model, limiters *Limiters, attemptUID string, now time.Time) (decision Decision, goes bool) {
	kind, name := m.ParkedBy.Split()
	state := limiters.Circuits[name]
	switch {
	case kind == BlockerLimit, kind == BlockerCircuit && state != nil && state.Open():
		decision = b.StartOrPark(m, limiters, attemptUID, now)
		return decision, decision.Next.ParkedBy != m.ParkedBy
	case kind == BlockerHold && b.Hold(name) != nil:
		return m.Release(b.Hold(name).StartsAt(m.UID), now), true
	default:
		return m.Release(now, now), true
	}
}

// maxBlockers bounds how many blockers a start may meet one after the other.
const maxBlockers = 20

// Timed reports whether a blocker opens at a known time or never. Limits and circuits depend on how attempts end.
func (b Blocker) Timed() bool {
	kind, _ := b.Split()
	return kind == BlockerHold || kind == BlockerCalendar
}

// Forecast is Model.Forecast behind the blockers of the model. If a blocker opens at no known time, it is returned, StartAt is zero, and the rest
// assumes that it opens at once. A full limit is assumed to have room when the model is due.
func (b *Blockers) Forecast(m *Model, limiters *Limiters, now time.Time) (f Forecast, blocker Blocker) {
	next, at, by := *m, now, Blocker("")
	for n := 0; next.Waiting() && n < maxBlockers; n++ {
		if !next.Parked() {
			at = latest(at, next.RefreshAt)
			_, decision, stops := b.stops(&next, limiters, at)
			full := decision.Next.ParkedBy == NewBlocker(BlockerLimit, limiters.Full(limiters.limitsOf(b, &next, at)))
			if !stops || decision.Event == EventGiveUp || full && at.After(now) {
				break
			}
			next.State = decision.Next
			if held := strings.Fields(next.Reserved); len(held) > 0 {
				by = NewBlocker(BlockerLimit, held[0])
			}
			if !next.Parked() {
				continue
			}
		}
		by = next.ParkedBy
		if kind, name := by.Split(); kind == BlockerLimit {
			if until, who := limiters.key(name).ClosedAt(at); who != "" {
				at = ceilMillis(until)
				next.State = next.Release(at, at).Next
				continue
			}
		}
		opens, recheck := b.Opens(by, at)
		if !by.Timed() || recheck.Equal(Never) {
			blocker = by
			next.State = next.Release(at, at).Next
			break
		}
		if !opens {
			at = recheck
		}
		decision, _ := b.Pass(&next, new(Limiters), "", at) // of a hold or a calendar: it starts nothing
		next.State = decision.Next
	}
	if f = next.Forecast(at); blocker != "" {
		f.StartAt = time.Time{}
	}
	f.By = by
	return f, blocker
}
