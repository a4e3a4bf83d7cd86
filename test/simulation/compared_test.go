package simulation

import (
	"fmt"
	"strconv"
	"strings"
)

// compared is what whoever changes what operators set has read of it.
type compared struct {
	seen, opened string // how many changes there were; of a circuit, since when it was open
	turns        bool   // it turns the circuit of the queue
	part, number string // of the command that asks for it; empty: none does
}

// behind reports whether a command that was carried out already, or a later one of the same part, asks for the change.
func (p *replay) behind() bool {
	last, _, _ := strings.Cut(p.before.ordered[p.compared.part], " ")
	return p.compared.part != "" && count(p.compared.number) <= count(last)
}

// outdated reports whether what is about to be changed has changed since it was read.
func (p *replay) outdated() bool {
	c := p.compared
	return c != nil && (c.seen != p.before.changes || c.turns && c.opened != p.before.queueCircuit["opened_at"])
}

// checkCompared checks that a change of what operators set is counted, and that one which was decided about something else does nothing.
func (p *replay) checkCompared() error {
	if p.compared == nil {
		return nil
	}
	is, was := p.after.set(), p.before.set()
	if p.behind() && is != was {
		return fmt.Errorf("the command %s of %s was carried out behind %s: want %s, found %s", p.compared.number, p.compared.part, p.before.ordered[p.compared.part], was, is)
	}
	if p.outdated() && (is != was || p.after.changes != p.before.changes) {
		return fmt.Errorf("a change that was decided after %q changes came after %q, and was made: want %s, found %s", p.compared.seen, p.before.changes, was, is)
	}
	before, _ := strconv.Atoi(p.before.changes)
	if after, _ := strconv.Atoi(p.after.changes); is != was && after != before+1 {
		return fmt.Errorf("what operators set was changed, and %d changes were counted behind %d", after, before)
	}
	return nil
}

// set is what operators set.
func (s *snapshot) set() string {
	return fmt.Sprint(s.holds, s.limits, s.calendars, s.policies, s.openBulks)
}
