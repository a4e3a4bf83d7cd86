package model

import (
	"sort"
	"time"
)

// HeadSample is what stood first in the input list for a while. The list is first in, first out, and each attempt has a ticket that tells its
// place in that order. So whoever has a lower ticket than the front was taken, unless it was handed back, and whoever has a higher one waits.
type HeadSample struct {
	Ticket    int       // of the attempt; of an empty list the last one that was drawn
	FirstSeen time.Time // it surely stood there by then
	LastSeen  time.Time // it surely stood in the list until then; zero: the list was empty
}

// HeadSamples are the fronts that dispatchers have noted of an input list, by their tickets.
type HeadSamples struct {
	Noted []HeadSample
	At    time.Time // when they were read
}

// TakenAt is when an attempt that does not stand in the input list was taken at the latest. That is when it was started, unless it was seen
// to wait in line after that: some front before it stood there still.
func (f HeadSamples) TakenAt(s *State) time.Time {
	after := sort.Search(len(f.Noted), func(i int) bool {
		head := f.Noted[i]
		return head.Ticket > s.Ticket || head.Ticket == s.Ticket && head.LastSeen.IsZero()
	})
	if s.Ticket == 0 || after == 0 || !f.Noted[after-1].LastSeen.After(s.StartedAt) {
		return s.StartedAt
	}
	if after == len(f.Noted) {
		return f.At
	}
	return f.Noted[after].FirstSeen
}

const lately = time.Minute

// Rate is how many attempts a second have left the list of late, while it was not empty; 0: not known.
func (f HeadSamples) Rate() float64 {
	first := len(f.Noted) - 1
	for first > 0 && !f.Noted[first-1].LastSeen.IsZero() && f.At.Sub(f.Noted[first-1].FirstSeen) <= lately {
		first--
	}
	if first < 0 || !f.At.After(f.Noted[first].FirstSeen) {
		return 0
	}
	left := f.Noted[len(f.Noted)-1].Ticket - f.Noted[first].Ticket
	return float64(left) / f.At.Sub(f.Noted[first].FirstSeen).Seconds()
}

// ExpireOrExtend decides about an attempt whose deadline has passed, and which does not stand in the input list: what it has waited there does not
// count, once. So it has either a full timeout from when it was taken, or it has expired.
func (m *Model) ExpireOrExtend(fronts HeadSamples, now time.Time) Decision {
	takenAt := fronts.TakenAt(&m.State)
	timed := m.Policy.Timeout > 0 && !m.awaitsBegin(&m.State)
	if !timed || !m.ProcessingAt.IsZero() || !m.TakenAt.IsZero() || !m.deadline(&m.State, takenAt).After(now) {
		return m.Expire(now)
	}
	decision := Decision{Event: EventTaken, Next: m.State}
	next := &decision.Next
	next.TakenAt = takenAt
	next.DeadlineAt = m.deadline(next, takenAt)
	m.expectTimeout(next)
	return decision
}
