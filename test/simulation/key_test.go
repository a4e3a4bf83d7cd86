package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// takeKeys checks that all keys of a start let it through, and notes what it takes of them. It returns what the attempt is counted by.
// The promise of a rate is one start a slot, and slots an interval apart. Two starts come closer when one of them is late for its slot.
func (p *replay) takeKeys(m *model.Model, at time.Time) (counted []string, err error) {
	for _, limit := range p.stops().LimitsOf(m, at) {
		if runs := p.runningOf(limit.Name, at); limit.Running > 0 && len(runs) >= limit.Running {
			return nil, fmt.Errorf("of the key %s may run %d, and %v do", limit.Name, limit.Running, runs)
		}
		interval, next := limit.Rate.Interval(), p.slots[limit.Name]
		switch reserved := slices.Contains(strings.Fields(m.Reserved), limit.Name); {
		case reserved:
		case interval == 0 && next.After(at): // it was closed a moment ago
			p.slots[limit.Name] = microseconds(p.after.rates[limit.Name])
		case next.After(at):
			return nil, fmt.Errorf("the next start of the key %s is to be at %s", limit.Name, next)
		case interval > 0:
			p.slots[limit.Name] = at.Add(interval)
		}
		counted = append(counted, string(model.NewGate(model.GateLimit, limit.Name)))
	}
	if name := m.CircuitKey(); name != "" {
		counted = append(counted, string(model.NewGate(model.GateCircuit, name)))
		err = p.probe(m.UID, name, at)
	}
	return counted, err
}

// limit asks for a model that waits for a slot of its keys: the next one of each.
func (p *replay) limit(m *model.Model, at time.Time, entry map[string]string) (model.Decision, error) {
	reserved := strings.Fields(entry["reserved"])
	g, rooms := *p.stops(), model.Rooms{}
	rooms.Learn(model.Rooms{Keys: map[string]*model.Room{}})
	for _, name := range reserved {
		rooms.Keys[name] = &model.Room{Free: p.slots[name]}
	}
	decision := g.Wake(m, &rooms, "", at)
	for _, take := range decision.Takes {
		p.slots[take.Name] = take.Until
	}
	return decision, nil
}

// runningOf lists the attempts that a key counts.
func (p *replay) runningOf(name string, at time.Time) (uids []string) {
	all := maps.Clone(p.before.models)
	maps.Copy(all, p.after.models)
	for _, uid := range slices.Sorted(maps.Keys(all)) {
		m := p.model(uid)
		if m != nil && m.Running() && !m.DeadlineAt.Before(at) && slices.Contains(model.CountedBy(m.Counted, model.GateLimit), name) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// giveBack notes what the end of an attempt gives back of its keys, and says of their circuits.
func (p *replay) giveBack(m *model.Model, decision model.Decision, at time.Time) {
	if m == nil || m.Counted == "" || decision.Next.Counted != "" {
		return
	}
	p.frees = true
	for _, name := range model.CountedBy(m.Counted, model.GateLimit) {
		if until := decision.ClosedUntil; until.After(at) && until.After(p.slots[name]) {
			p.slots[name] = until
		}
	}
	for _, name := range model.CountedBy(m.Counted, model.GateCircuit) {
		p.settleCircuit(m, name, decision.CircuitOutcome, at)
	}
}

// settleCircuit counts what the end of an attempt says of its key: an open circuit is settled by its probe alone.
func (p *replay) settleCircuit(m *model.Model, name string, outcome model.CircuitOutcome, at time.Time) {
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
	case open:
		is.probe = ""
	case outcome != model.CircuitUnsettled && strings.Count(is.recent, "1") >= failures:
		is.opened, is.probeAt = at, at.Add(pause)
		p.tell("circuit_opened", name, at)
	}
	p.states[name] = is
}

// tell notes what journal and outbox must say of a circuit.
func (p *replay) tell(event, name string, at time.Time) {
	p.notices++
	p.told = append(p.told, fmt.Sprint(event, " ", name, " ", model.FormatTime(at)))
}

// probe notes whether a start tries an open circuit: one at a time, and not too soon.
func (p *replay) probe(uid, name string, at time.Time) error {
	is := p.states[name]
	probes := !is.opened.IsZero() && p.after.circuits[name]["probe"] == uid
	switch {
	case probes && is.probe != "":
		return fmt.Errorf("%s tries the circuit of %s already", is.probe, name)
	case probes && is.probeAt.After(at):
		return fmt.Errorf("the circuit of %s is to be tried at %s", name, is.probeAt)
	case !probes && !is.opened.IsZero() && p.stayedOpen(name):
		return fmt.Errorf("the circuit of %s is open, and the start does not try it", name)
	case probes:
		is.probe = uid
		p.states[name] = is
	}
	return nil
}

// checkSteered checks that slots and circuits of keys are what the entries say.
func (p *replay) checkSteered() error {
	if !p.steers {
		return nil
	}
	for _, name := range keyNames {
		if is := microseconds(p.after.rates[name]); !is.Equal(p.slots[name]) {
			return fmt.Errorf("the next slot of %s is %s, want %s", name, is, p.slots[name])
		}
		if is, want := p.after.circuit(name), p.states[name]; is != want {
			return fmt.Errorf("the circuit of %s is %+v, want %+v", name, is, want)
		}
	}
	var told []string
	for _, entry := range p.after.journal {
		if aboutCircuit(entry) && !aboutQueueCircuit(entry) {
			told = append(told, entry["event"]+" "+entry["key"]+" "+entry["at"])
		}
	}
	if !slices.Equal(told, p.told) {
		return fmt.Errorf("told of circuits is %q, want %q", told, p.told)
	}
	latest := p.now
	if p.setBack {
		latest = model.Never // what has died by then is forgotten
	}
	return p.after.checkKeys(latest.UnixMilli())
}

func aboutCircuit(entry map[string]string) bool { return strings.HasPrefix(entry["event"], "circuit_") }

// microseconds reads an instant in Unix us; empty: none.
func microseconds(text string) time.Time {
	us := count(cmp.Or(text, "0"))
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(us)).UTC()
}
