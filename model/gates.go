package model

import "time"

// Gates are what may keep models of a queue from starting, as it was at one instant. The zero value keeps none.
type Gates struct {
	Holds []Hold
	// HoldChanges tells this state of the holds from any other.
	HoldChanges string
}

// Empty reports whether nothing is stopped.
func (g *Gates) Empty() bool { return len(g.Holds) == 0 }

// Hold finds a hold; nil: there is none of that name.
func (g *Gates) Hold(id string) *Hold {
	for i := range g.Holds {
		if g.Holds[i].ID == id {
			return &g.Holds[i]
		}
	}
	return nil
}

// Stop finds the gate that keeps a model from starting at now, and when a dispatcher is to look at that; empty: none. Of several holds it is
// the one that ends last.
func (g *Gates) Stop(m *Model, now time.Time) (gate Gate, look time.Time) {
	for i := range g.Holds {
		hold := &g.Holds[i]
		if !hold.Ended(now) && hold.look().After(look) && hold.Selector.Matches(m, StatusDue, now) {
			gate, look = hold.Gate(), hold.look()
		}
	}
	return gate, look
}

// Opens tells of a gate that models wait for whether it lets them go at now, and if not when to look again.
func (g *Gates) Opens(gate Gate, now time.Time) (opens bool, look time.Time) {
	kind, name := gate.Split()
	if hold := g.Hold(name); kind == GateHold && hold != nil && !hold.Ended(now) {
		return false, hold.look()
	}
	return true, time.Time{}
}

// Pass decides about a model that waits for a gate which has opened.
func (g *Gates) Pass(m *Model, now time.Time) Decision {
	at := now
	if kind, name := m.ParkedBy.Split(); kind == GateHold {
		if hold := g.Hold(name); hold != nil {
			at = hold.StartsAt(m.UID)
		}
	}
	return m.Release(at, now)
}
