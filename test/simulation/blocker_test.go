package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// stops are the blockers as the dispatcher has read them, or a poller that starts models.
func (p *replay) stops() *model.Blockers {
	switch {
	case p.saw != nil:
		return p.saw.stops()
	case p.settings != nil:
		return p.settings.stops()
	default:
		return p.before.stops()
	}
}

// wake asks what a model does that is due, or that its blocker lets through.
func (p *replay) wake(m *model.Model, event model.Event, at time.Time, entry map[string]string) model.Decision {
	failIf(m == nil || !m.Due(at) && !m.Parked(), "the model is not due")
	blocker, _ := p.stops().Stop(m, at)
	failIf(blocker != "", "the blocker %s is closed", blocker)
	kind, _ := m.ParkedBy.Split()
	failIf(kind == model.BlockerHold || kind == model.BlockerCalendar, "the model is not due, it waits for %s", m.ParkedBy)
	if event == model.EventLimited {
		return p.limit(m, at, entry)
	}
	admitted := *m
	if m.Parked() {
		released := m.Release(at, at)
		if admitted.State = released.Next; !admitted.Due(at) {
			return released
		}
	}
	decision := admitted.StartOrSkip(at, entry["attempt_uid"])
	if decision.Event != model.EventStart {
		return decision
	}
	decision.Next.Ticket = count(p.before.stats["start"]) + len(p.started) + 1
	for _, hold := range p.before.stops().Holds { // whatever the dispatcher has read
		failIf(!hold.Ended(at) && hold.Selector.Matches(m, model.StatusDue), "the hold %s picks the model, and it starts", hold.ID)
	}
	p.handOver(m, at)
	decision.Next.Counted = strings.Join(p.takeKeys(m, at), " ")
	return decision
}

// park asks for a model that waits for a blocker: that must keep it.
func (p *replay) park(m *model.Model, at time.Time, entry map[string]string) model.Decision {
	blocker := model.Blocker(entry["parked_by"])
	failIf(m == nil || !m.Due(at) && !m.Parked() || m.ParkedBy == blocker, "the model is not due")
	stop, _ := p.stops().Stop(m, at)
	kind, name := blocker.Split()
	closed := false
	switch kind {
	case model.BlockerHold, model.BlockerCalendar:
		closed = blocker == stop
	case model.BlockerLimit:
		closed = stop == "" && slices.ContainsFunc(p.stops().LimitsOf(m, at), func(l model.Limit) bool {
			slots := p.slots[name]
			return l.Name == name && (l.Running > 0 || slots.Closed.After(at) && (slots.By != "" || slices.Contains(strings.Fields(m.Reserved), name)))
		})
	case model.BlockerCircuit:
		closed = stop == "" && m.CircuitKey() == name && p.wasOpen(name)
	}
	failIf(!closed, "the blocker %s does not keep the model", blocker)
	return m.Park(blocker, time.Time{}, at)
}

// release asks for a model whose blocker has opened.
func (p *replay) release(m *model.Model, at time.Time) model.Decision {
	failIf(m == nil || !m.Parked(), "the model waits for no blocker")
	g := p.stops()
	opens, _ := g.Opens(m.ParkedBy, at)
	failIf(!opens, "the blocker %s is closed", m.ParkedBy)
	kind, name := m.ParkedBy.Split()
	if hold := g.Hold(name); kind == model.BlockerHold && hold != nil {
		return m.Release(hold.StartsAt(m.UID), at)
	}
	return m.Release(at, at)
}

// wasOpen reports whether a circuit was open at any time since the round began.
func (p *replay) wasOpen(name string) bool {
	return slices.ContainsFunc(append(slices.Clip(p.circuits), p.before.circuits), func(states map[string]map[string]string) bool {
		return states[name]["opened_at"] != ""
	})
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
	ends := strings.HasPrefix(decision.Next.Why, "disabled, no success")
	switch decision.Event {
	case model.EventParked, model.EventReleased, model.EventLimited:
		failIf(decision.Next.AttemptNo != m.AttemptNo, "to wait for a blocker counts as an attempt: %d, it was %d", decision.Next.AttemptNo, m.AttemptNo)
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

// littleLate is by how much a round may be late for a slot without delaying those behind it, and so by how much sooner a start may follow another.
const littleLate = 100 * time.Millisecond

// takeKeys checks that all keys of a start let it through, and notes what it takes of them. It returns what the attempt is counted by.
// The promise of a rate is that starts are an interval apart, and as many intervals if there are others between them.
func (p *replay) takeKeys(m *model.Model, at time.Time) (counted []string) {
	for _, limit := range p.stops().LimitsOf(m, at) {
		runs := p.runningOf(limit.Name)
		failIf(limit.Running > 0 && len(runs) >= limit.Running, "of the key %s may run %d, and %v do", limit.Name, limit.Running, runs)
		if interval := limit.Rate.Interval(); interval > 0 {
			opens := p.opens[limit.Name]
			failIf(opens.After(at), "the key %s is closed until %s", limit.Name, opens)
			p.opens[limit.Name] = later(p.opens[limit.Name], at.Add(-littleLate)).Add(interval)
			p.takeSlot(m, limit.Name, interval, at)
		}
		counted = append(counted, string(model.NewBlocker(model.BlockerLimit, limit.Name)))
	}
	if name := m.CircuitKey(); name != "" {
		counted = append(counted, string(model.NewBlocker(model.BlockerCircuit, name)))
		p.probe(m.UID, name, at)
	}
	return counted
}

// takeSlot moves the slots of a key by a start: the slot that the model holds, or the next free one.
func (p *replay) takeSlot(m *model.Model, name string, interval time.Duration, at time.Time) {
	slots, slot := p.slots[name], at
	switch holds := slices.Contains(strings.Fields(m.Reserved), name); {
	case holds && m.RefreshAt.Before(at):
		slot = m.RefreshAt
	case holds:
	case slots.Free.After(at):
		fail("the next start of the key %s is to be at %s", name, slots.Free)
	default:
		slots.Free = at.Add(interval)
	}
	place := later(slots.Closed, slot)
	late := max(0, at.Sub(place)-littleLate)
	slots.Closed = place.Add(late + interval)
	slots.Free, slots.By, slots.Paced = later(slots.Free.Add(late), slots.Closed), "", time.Time{}
	p.slots[name] = slots
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// limit asks for a model that waits for a slot of its keys: the next one of each.
func (p *replay) limit(m *model.Model, at time.Time, entry map[string]string) model.Decision {
	reserved := strings.Fields(entry["reserved"])
	g, rooms := *p.stops(), model.Limiters{}
	if len(reserved) == 0 { // any of them would let the retry through when its window has closed
		for _, limit := range g.LimitsOf(m, at) {
			reserved = append(reserved, limit.Name)
		}
	}
	rooms.Learn(model.Limiters{Keys: map[string]*model.LimiterState{}})
	for _, name := range reserved {
		rooms.Keys[name] = &model.LimiterState{Slots: p.slots[name]}
	}
	decision := g.StartOrPark(m, &rooms, "", at)
	for _, take := range decision.Acquires {
		p.slots[take.Name] = take.After
	}
	return decision
}

// runningOf lists the attempts that a key counts: those that have not ended, also when their deadline has passed.
func (p *replay) runningOf(name string) (uids []string) {
	all := maps.Clone(p.before.models)
	maps.Copy(all, p.after.models)
	for _, uid := range slices.Sorted(maps.Keys(all)) {
		m := p.model(uid)
		if m != nil && m.Running() && slices.Contains(model.CountedBy(m.Counted, model.BlockerLimit), name) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// giveBack notes which slots the end of an attempt returns, and its effect on the circuits.
func (p *replay) giveBack(m *model.Model, decision model.Decision, at time.Time) {
	if m == nil || m.Counted == "" || decision.Next.Counted != "" {
		return
	}
	p.frees, p.freedAt = true, at
	for _, name := range model.CountedBy(m.Counted, model.BlockerLimit) {
		p.freed[name]++
		until, slots := decision.ClosedUntil, p.slots[name]
		if open := later(slots.Closed, at); until.After(open) {
			by := m.UID
			if kind := decision.Ended.ErrorType; kind != "" {
				by += " (" + kind + ")"
			}
			paced := slots.Paced
			if slots.By == "" && paced.IsZero() {
				paced = slots.Closed
			}
			p.slots[name] = model.Slots{Free: later(slots.Free, open).Add(until.Sub(open)), Closed: until, By: by, Paced: paced}
			p.opens[name] = later(p.opens[name], until)
		}
	}
	for _, name := range model.CountedBy(m.Counted, model.BlockerCircuit) {
		p.settleCircuit(m, name, decision, at)
	}
}

// settleCircuit counts the effect of an attempt's end on its key: an open circuit is settled by its probe alone.
func (p *replay) settleCircuit(m *model.Model, name string, decision model.Decision, at time.Time) {
	outcome := decision.CircuitOutcome
	failures, of, pause := 1, 1, time.Minute
	if c := m.Policy.Circuit; c != nil {
		failures, of, pause = c.Failures, c.Of, c.Probe
	}
	is := p.states[name]
	if outcome != model.CircuitUnsettled { // otherwise its policy, which may have changed, counts nothing anew
		is.recent += string(outcome)
		is.recent = is.recent[max(0, len(is.recent)-of):]
	}
	switch open := !is.opened.IsZero(); {
	case open && is.probe != m.UID:
	case open && outcome == model.CircuitAnswered:
		is = circuit{}
		p.tell("circuit_closed", name, at)
	case open && outcome == model.CircuitFailed:
		is.probe, is.probeAt = "", at.Add(pause)
	case open && decision.Event == model.EventPostponed || open && decision.Event == model.EventFailure: // postponed, perhaps too often
		is.probe, is.probeAt = "", at.Add(min(pause, max(0, decision.Next.NotBefore.Sub(at))))
	case open:
		is.probe, is.probeAt = "", at
	case outcome != model.CircuitUnsettled && strings.Count(is.recent, "1") >= failures:
		is.opened, is.probeAt = at, at.Add(pause)
		p.tell("circuit_opened", name, at)
	}
	p.states[name] = is
}

// tell notes the entries of journal and outbox about a circuit.
func (p *replay) tell(event, name string, at time.Time) {
	p.notices++
	p.told = append(p.told, fmt.Sprint(event, " ", name, " ", model.FormatTime(at)))
}

// probe notes whether a start tries an open circuit: one at a time, and not too soon.
func (p *replay) probe(uid, name string, at time.Time) {
	is := p.states[name]
	probes := !is.opened.IsZero() && p.after.circuits[name]["probe"] == uid
	switch {
	case probes && is.probe != "":
		fail("%s tries the circuit of %s already", is.probe, name)
	case probes && is.probeAt.After(at):
		fail("the circuit of %s is to be tried at %s", name, is.probeAt)
	case !probes && !is.opened.IsZero():
		fail("the circuit of %s is open, and the start does not try it", name)
	case probes:
		is.probe = uid
		p.states[name] = is
	}
}

// checkSteered checks that slots and circuits of keys are what the entries say.
func (p *replay) checkSteered() {
	if !p.oracle.steers {
		return
	}
	for _, name := range keyNames {
		if is, want := p.after.rates[name], p.slots[name].String(); is != want {
			fail("the slots of %s are %q, want %q", name, is, want)
		}
		if is, want := p.after.circuit(name), p.states[name]; is != want {
			fail("the circuit of %s is %+v, want %+v", name, is, want)
		}
	}
	var told []string
	for _, entry := range p.after.journal {
		if aboutCircuit(entry) && !aboutQueueCircuit(entry) {
			told = append(told, entry["event"]+" "+entry["key"]+" "+entry["at"])
		}
	}
	failIf(!slices.Equal(told, p.told), "told of circuits is %q, want %q", told, p.told)
	p.after.checkKeys()
}

func aboutCircuit(entry map[string]string) bool { return strings.HasPrefix(entry["event"], "circuit_") }
