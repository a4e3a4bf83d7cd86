package model

import "time"

// hear notes a sign of life. The clock may have been set back since the attempt began.
func (s *State) hear(now time.Time) {
	if s.HeardAt = now; now.Before(s.ProcessingAt) {
		s.HeardAt = s.ProcessingAt
	}
}

// expectSigns starts the watch over an attempt whose worker announces a sign every so often; 0: none. The limit has room for two signs, so that one
// may be lost.
func (m *Model) expectSigns(next *State, every time.Duration, now time.Time) {
	next.SilentAfter, next.HeardAt = 0, time.Time{}
	if every > 0 && m.Policy.SilentAfter > 0 {
		next.SilentAfter = max(m.Policy.SilentAfter, 2*every)
		next.hear(now)
	}
}

// sign is the effect of a message that says only that the worker lives.
func (m *Model) sign(now time.Time) Decision {
	decision := Decision{Event: EventStatus, Next: m.State}
	if m.ExpectsSigns() {
		decision.Next.hear(now)
	}
	return decision
}

// beginAgain handles another `started`: a sign of life, or a new worker after a death, which may announce other signs. The deadline stays. false:
// nothing changes.
func (m *Model) beginAgain(every time.Duration, now time.Time) (Decision, bool) {
	decision, expects := Decision{Event: EventStarted, Next: m.State}, m.ExpectsSigns()
	m.expectSigns(&decision.Next, every, now)
	switch {
	case expects && decision.Next.SilentAfter == m.SilentAfter:
		return m.sign(now), true
	case expects, decision.Next.SilentAfter > 0:
		return decision, true
	default:
		return decision, false
	}
}
