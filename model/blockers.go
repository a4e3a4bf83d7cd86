package model

import (
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// Blockers are what may keep models of a queue from starting, as it was at one instant. The zero value keeps none.
type Blockers struct {
	Holds []Hold
	// HoldChanges tells this state of the holds from any other.
	HoldChanges string
	Calendars   map[string]schedule.Calendar
	QueueLimits []QueueLimit     // of all models of the queue
	Limits      map[string]Limit // that were set for a key at run time
	Part, Parts int              // the part of the queue; 0 parts: it has one
}

// lookAgain is when a dispatcher looks at a gate by itself that others tell it of.
const lookAgain = 30 * time.Second

// lookSoon is the same of a key that was found full: it may have been freed since, when nobody waited for it yet.
const lookSoon = time.Second

// Empty reports whether nothing is stopped whatever policies say.
func (g *Blockers) Empty() bool { return len(g.Holds) == 0 && len(g.QueueLimits) == 0 }

// Hold finds a hold; nil: there is none of that name.
func (g *Blockers) Hold(id string) *Hold {
	for i := range g.Holds {
		if g.Holds[i].ID == id {
			return &g.Holds[i]
		}
	}
	return nil
}

// Needs are the keys that Wake has to know of a model: those of its limits, and that of its circuit; empty: none.
func (g *Blockers) Needs(m *Model, now time.Time) (limits []string, circuit string) {
	if len(m.Policy.Limits) > 0 || len(g.QueueLimits) > 0 {
		for _, limit := range g.LimitsOf(m, now) {
			limits = append(limits, limit.Name)
		}
	}
	return limits, m.CircuitKey()
}

// Stop finds the hold or calendar that keeps a model from starting at now, and when a dispatcher is to look at that; empty: none. Of several
// it is the one that ends last.
func (g *Blockers) Stop(m *Model, now time.Time) (gate Blocker, look time.Time) {
	for i := range g.Holds {
		hold := &g.Holds[i]
		if !hold.Ended(now) && hold.look().After(look) && hold.Selector.Matches(m, StatusDue, now) {
			gate, look = hold.Blocker(), hold.look()
		}
	}
	for _, name := range m.Policy.Closed {
		if until, closed := g.closed(name, now); closed && until.After(look) {
			gate, look = NewBlocker(BlockerCalendar, name), until
		}
	}
	return gate, look
}

// closed tells until when a calendar is closed. One that is not stored, or cannot say, closes nothing.
func (g *Blockers) closed(name string, now time.Time) (until time.Time, closed bool) {
	calendar, stored := g.Calendars[name]
	if !stored {
		return until, false
	}
	until, closed, err := calendar.ClosedUntil(now)
	return until, closed && err == nil
}

// StartOrPark decides what a model does at now that is due, or waits for a gate which may let it go on. Beside what Model.StartOrSkip may do it parks, or
// waits for a slot. rooms tells what Needs has named, and is told what the model takes.
func (g *Blockers) StartOrPark(m *Model, rooms *Limiters, attemptUID string, now time.Time) Decision {
	if gate, look := g.Stop(m, now); gate != "" {
		return m.Park(gate, look, now)
	}
	probe := false
	circuit := m.CircuitKey()
	if state := rooms.Circuits[circuit]; circuit != "" && state != nil && state.Open() {
		if probe = state.Probes(now); !probe {
			look := state.ProbeAt
			if !look.After(now) {
				look = now.Add(lookAgain)
			}
			return m.Park(NewBlocker(BlockerCircuit, circuit), look, now)
		}
	}
	decision := m.admitted(now, attemptUID)
	if decision.Event != EventStart {
		return decision
	}
	var counted []string
	if limits := g.LimitsOf(m, now); len(limits) > 0 {
		if name, full := rooms.full(limits); full {
			return m.Park(NewBlocker(BlockerLimit, name), m.lookAtFull(name, now), now)
		}
		held := strings.Fields(m.Reserved)
		if name, opens := rooms.closed(limits, held, now); name != "" {
			decision = m.Park(NewBlocker(BlockerLimit, name), opens, now)
			decision.Acquires = []Acquire{{Name: name, Before: rooms.key(name).Slots, After: rooms.key(name).Slots}} // by a start that may be refused
			return decision
		}
		at, takes, holds := rooms.reserve(limits, held, now)
		if at.After(now) {
			if opens := m.opens(at); m.Trigger.started() == TriggerRetry && opens.After(at) { // when the turn of the retry comes, its window has closed
				at, holds = opens, nil
				for i := range takes {
					takes[i].After = takes[i].Before
				}
			}
			rooms.take(takes)
			return m.reserve(at, takes, holds, now)
		}
		rooms.start(limits, takes, held, m.RefreshAt, now)
		rooms.take(takes)
		counted, decision.Acquires = names(BlockerLimit, takes), takes
	}
	if circuit != "" {
		counted = append(counted, string(NewBlocker(BlockerCircuit, circuit)))
		if decision.Probe = probe; probe {
			rooms.Circuits[circuit].Probe = m.UID
		}
	}
	decision.Next.Counted = strings.Join(counted, " ")
	return decision
}

// admitted is Wake of a model that is due, and Admit of one that is parked.
func (m *Model) admitted(now time.Time, attemptUID string) Decision {
	if m.Parked() {
		return m.Admit(now, attemptUID)
	}
	return m.StartOrSkip(now, attemptUID)
}

// lookAtFull is when a dispatcher is to look at a key that the model finds full.
func (m *Model) lookAtFull(name string, now time.Time) time.Time {
	if m.ParkedBy == NewBlocker(BlockerLimit, name) {
		return now.Add(lookAgain)
	}
	return now.Add(lookSoon)
}

// reserve lets a model wait for a slot of its keys, which nobody else gets, or for its retry window: then it holds none. What it waits does not count towards the give-up window.
func (m *Model) reserve(at time.Time, takes []Acquire, holds []string, now time.Time) Decision {
	decision := Decision{Event: EventLimited, Next: m.State}
	next := &decision.Next
	m.unpark(next, now)
	m.notTried(next, at.Sub(now))
	for _, take := range takes {
		if take.After != (Slots{}) {
			decision.Acquires = append(decision.Acquires, Acquire{Name: take.Name, Before: take.Before, After: take.After})
		}
	}
	why := whyWindow
	if len(holds) > 0 {
		why = document.Shorten("limited by "+strings.Join(holds, ", "), maxWhy)
	}
	next.wait(at, next.Trigger, why)
	next.Reserved = strings.Join(holds, " ")
	return decision
}

// Opens tells of a gate that models wait for whether it lets any go on at now, and if not when to look again. What limits and circuits let go
// on is decided model by model.
func (g *Blockers) Opens(gate Blocker, now time.Time) (opens bool, look time.Time) {
	kind, name := gate.Split()
	switch kind {
	case BlockerHold:
		if hold := g.Hold(name); hold != nil && !hold.Ended(now) {
			return false, hold.look()
		}
	case BlockerCalendar:
		if until, closed := g.closed(name, now); closed {
			return false, until
		}
	}
	return true, time.Time{}
}

// Pass decides about a model that waits for a gate which has opened. One that finds itself before the same gate again stays as it is: false.
func (g *Blockers) Pass(m *Model, rooms *Limiters, attemptUID string, now time.Time) (decision Decision, goes bool) {
	kind, name := m.ParkedBy.Split()
	state := rooms.Circuits[name]
	switch {
	case kind == BlockerLimit, kind == BlockerCircuit && state != nil && state.Open():
		decision = g.StartOrPark(m, rooms, attemptUID, now)
		return decision, decision.Next.ParkedBy != m.ParkedBy
	case kind == BlockerHold && g.Hold(name) != nil:
		return m.Release(g.Hold(name).StartsAt(m.UID), now), true
	default:
		return m.Release(now, now), true
	}
}
