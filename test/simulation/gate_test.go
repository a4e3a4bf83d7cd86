package simulation

import (
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// stops are the gates as the dispatcher has read them.
func (p *replay) stops() *model.Blockers {
	if p.saw == nil {
		return p.before.stops()
	}
	return p.saw.stops()
}

// wake asks what a model does that is due, or that its gate lets through.
func (p *replay) wake(m *model.Model, event model.Event, at time.Time, entry map[string]string) model.Decision {
	failIf(m == nil || !m.Due(at) && !m.Parked(), "the model is not due")
	gate, _ := p.stops().Stop(m, at)
	failIf(gate != "", "the gate %s is closed", gate)
	kind, _ := m.ParkedBy.Split()
	failIf(kind == model.BlockerHold || kind == model.BlockerCalendar, "the model is not due, it waits for %s", m.ParkedBy)
	if event == model.EventLimited {
		return p.limit(m, at, entry)
	}
	var decision model.Decision
	if m.Parked() {
		decision = m.Admit(at, entry["attempt_uid"])
	} else {
		decision = m.StartOrSkip(at, entry["attempt_uid"])
	}
	if decision.Event != model.EventStart {
		return decision
	}
	decision.Next.Ticket = count(p.before.stats["start"]) + len(p.started) + 1
	for _, hold := range p.before.stops().Holds { // whatever the dispatcher has read
		failIf(!hold.Ended(at) && hold.Selector.Matches(m, model.StatusDue), "the hold %s picks the model, and it starts", hold.ID)
	}
	decision.Next.Counted = strings.Join(p.takeKeys(m, at), " ")
	return decision
}

// park asks for a model that waits for a gate: that must keep it.
func (p *replay) park(m *model.Model, at time.Time, entry map[string]string) model.Decision {
	gate := model.Blocker(entry["parked_by"])
	failIf(m == nil || !m.Due(at) && !m.Parked() || m.ParkedBy == gate, "the model is not due")
	stop, _ := p.stops().Stop(m, at)
	kind, name := gate.Split()
	closed := false
	switch kind {
	case model.BlockerHold, model.BlockerCalendar:
		closed = gate == stop
	case model.BlockerLimit:
		closed = stop == "" && slices.ContainsFunc(p.stops().LimitsOf(m, at), func(l model.Limit) bool {
			return l.Name == name && (l.Running > 0 || p.slots[name].Closed.After(at) && slices.Contains(strings.Fields(m.Reserved), name))
		})
	case model.BlockerCircuit:
		ever, _ := p.wasOpen(name)
		closed = stop == "" && m.CircuitKey() == name && ever
	}
	failIf(!closed, "the gate %s does not keep the model", gate)
	return m.Park(gate, time.Time{}, at)
}

// release asks for a model whose gate has opened.
func (p *replay) release(m *model.Model, at time.Time) model.Decision {
	failIf(m == nil || !m.Parked(), "the model waits for no gate")
	g := p.stops()
	opens, _ := g.Opens(m.ParkedBy, at)
	failIf(!opens, "the gate %s is closed", m.ParkedBy)
	kind, name := m.ParkedBy.Split()
	if hold := g.Hold(name); kind == model.BlockerHold && hold != nil {
		return m.Release(hold.StartsAt(m.UID), at)
	}
	return m.Release(at, at)
}

// wasOpen reports whether a circuit was open at any time since the round began, and whether it was all the time.
func (p *replay) wasOpen(name string) (ever, always bool) {
	always = true
	for _, states := range append(slices.Clip(p.circuits), p.before.circuits) {
		open := states[name]["opened_at"] != ""
		ever, always = ever || open, always && open
	}
	return ever, always
}

// wait counts the time for which a model is parked, and checks that it is not given up before it could try for as long as its policy says.
func (p *replay) wait(m *model.Model, decision model.Decision, at time.Time) {
	if m == nil {
		return
	}
	tried := p.tried[m.UID]
	parks := decision.Next.Parked()
	switch {
	case parks && tried.parked.IsZero():
		tried.parked = at
	case !parks && !tried.parked.IsZero():
		tried.waited, tried.parked = tried.waited+max(0, at.Sub(tried.parked)), time.Time{}
	}
	window := m.Policy.GiveUpAfter
	ends := strings.HasPrefix(decision.Next.Why, "final: no success")
	switch decision.Event {
	case model.EventParked, model.EventReleased, model.EventLimited:
		failIf(decision.Next.AttemptNo != m.AttemptNo, "to wait for a gate counts as an attempt: %d, it was %d", decision.Next.AttemptNo, m.AttemptNo)
	case model.EventStart:
		if tried.since.IsZero() {
			tried = effort{since: at} // it was parked before that
		}
	case model.EventSuccess:
		tried = effort{since: at}
	case model.EventRemove:
		tried = effort{}
	case model.EventGiveUp, model.EventFailure, model.EventTimeout:
		failIf(ends && window > 0 && !p.setBack && at.Sub(tried.since) < window+tried.waited,
			"the model is given up after %s, of which it was parked %s: want %s without that", at.Sub(tried.since), tried.waited, window)
	}
	p.tried[m.UID] = tried
}

// effort is since when a model tries to succeed, for how long of that it was parked, and since when it is; zero: it is not.
type effort struct {
	since  time.Time
	waited time.Duration
	parked time.Time
}
