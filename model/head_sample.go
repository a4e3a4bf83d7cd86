package model

import (
	"sort"
	"time"
)

// HeadSample is an attempt that was first in the input list for a while. Tickets number attempts in the order of the list. So attempts with a lower
// ticket were taken, unless they were handed back, and those with a higher one wait.
type HeadSample struct {
	Ticket    int       // of the attempt; of an empty list the last one that was drawn
	FirstSeen time.Time // it surely was in the list by then
	LastSeen  time.Time // it surely was in the list until then; zero: the list was empty
}

// HeadSamples are the fronts that dispatchers have noted of an input list, by their tickets.
type HeadSamples struct {
	Noted []HeadSample
	At    time.Time // when they were read
}

// TakenAt is the latest time at which an attempt was taken that is not in the input list: its start, unless a head before it was seen later.
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

// ExpireOrExtend decides for an attempt past its deadline that is not in the input list. Once, the time in the list does not count: the attempt
// gets its full timeout from when it was taken.
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
