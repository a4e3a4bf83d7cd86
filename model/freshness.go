package model

import (
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// Freshness is the age class of the last success, as it was last reported. Empty: the policy promises nothing.
type Freshness string

// The freshnesses, from the best to the worst.
const (
	Fresh          Freshness = "fresh"
	FreshnessLate  Freshness = "late"  // for longer than warn_within without a success
	FreshnessStale Freshness = "stale" // for longer than fresh_within
	// FreshnessNever is a model that is watched, has not succeeded yet, and is neither late nor stale so far.
	FreshnessNever Freshness = "never"
)

// Freshnesses are all of them, from the best to the worst.
var Freshnesses = []Freshness{Fresh, FreshnessNever, FreshnessLate, FreshnessStale}

// kept reports whether a model of this freshness is neither late nor stale, and watched.
func (f Freshness) kept() bool { return f == Fresh || f == FreshnessNever }

// Watched reports whether the policy of the model promised something when it was decided about last.
func (s *State) Watched() bool { return s.Freshness != "" }

// freshFrom is the last success, or when the model began to be watched.
func (s *State) freshFrom() time.Time {
	if s.LastSuccessAt.IsZero() {
		return s.FreshSince
	}
	return s.LastSuccessAt
}

// Watch adds the freshness to a decision at now. A success makes the model fresh. Only ChangeFreshness reports late and stale; a policy that
// promises less improves the freshness at once.
func (m *Model) Watch(decision *Decision, now time.Time) {
	next, promised := &decision.Next, decision.Event == EventWatch
	decision.PriorFreshness = m.Freshness
	if saved := decision.Definition; saved != nil {
		promised = !saved.Policy.WatchesAlike(m.Policy)
		m = saved
	}
	switch {
	case m.Policy.FreshWithin == 0:
		next.Freshness, next.FreshSince, next.StaleAt = "", time.Time{}, time.Time{}
		return
	case !next.LastSuccessAt.IsZero():
		next.FreshSince = time.Time{}
	case next.FreshSince.IsZero():
		next.FreshSince = now
	}
	if next.Freshness == "" || next.Freshness.kept() {
		next.Freshness = next.punctual() // if it is not, the dispatcher reports it
	}
	same := next.StaleAt.Equal(m.changes(next))
	is := m.freshness(next, now)
	better := is.kept() || is == FreshnessLate && next.Freshness == FreshnessStale
	if better && (!same || promised && next.Freshness == FreshnessLate) {
		next.Freshness = is
	}
	next.StaleAt = m.changes(next)
	decision.NotifiesFresh = decision.PriorFreshness == FreshnessStale && next.Freshness.kept() && m.Policy.Notifies(policy.NoticeFresh)
}

func (m *Model) freshness(s *State, now time.Time) Freshness {
	switch age := now.Sub(s.freshFrom()); {
	case age >= m.Policy.FreshWithin:
		return FreshnessStale
	case m.Policy.WarnWithin > 0 && age >= m.Policy.WarnWithin:
		return FreshnessLate
	default:
		return s.punctual()
	}
}

func (s *State) punctual() Freshness {
	if s.LastSuccessAt.IsZero() {
		return FreshnessNever
	}
	return Fresh
}

// changes is when the freshness changes next, or became stale.
func (m *Model) changes(s *State) time.Time {
	if s.Freshness.kept() && m.Policy.WarnWithin > 0 {
		return s.freshFrom().Add(m.Policy.WarnWithin)
	}
	return s.freshFrom().Add(m.Policy.FreshWithin)
}

// ChangeFreshness makes a model late or stale whose freshness is to change at now, unless its policy promises something else by now.
func (m *Model) ChangeFreshness(now time.Time) Decision {
	decision := Decision{Event: EventWatch, Next: m.State}
	if m.Policy.FreshWithin == 0 || m.freshFrom().IsZero() {
		return decision
	}
	switch is := m.freshness(&m.State, now); {
	case is == m.Freshness || is.kept():
	case is == FreshnessLate && m.Freshness != FreshnessStale:
		decision.Event, decision.Next.Freshness = EventBecameLate, is
	case is == FreshnessStale:
		decision.Event, decision.Next.Freshness = EventBecameStale, is
		decision.addNotice(policy.NoticeStale, &m.Policy)
	}
	return decision
}
