package model

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

func TestTheFrontsOfTheListTellWhenAnAttemptWasTakenAtTheLatest(t *testing.T) {
	start := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	front := func(ticket, first, last int) HeadSample { return HeadSample{ticket, at(first), at(last)} }
	empty := func(ticket, seen int) HeadSample { return HeadSample{Ticket: ticket, FirstSeen: at(seen)} }
	for name, test := range map[string]struct {
		ticket int
		noted  []HeadSample
		want   int // seconds after the start, which was at 10
	}{
		"nothing was noted":                      {7, nil, 10},
		"it has no ticket":                       {0, []HeadSample{front(5, 11, 20)}, 10},
		"it was seen to wait, then passed":       {7, []HeadSample{front(5, 5, 20), front(9, 21, 30), front(10, 31, 40)}, 21},
		"it was the front itself":                {7, []HeadSample{front(7, 12, 20), front(8, 22, 30)}, 22},
		"it was the last, then the list empty":   {7, []HeadSample{front(6, 12, 20), empty(7, 23), front(9, 40, 50)}, 23},
		"it was seen to wait, and not passed":    {7, []HeadSample{front(5, 5, 20)}, 60},
		"the front was seen before it came only": {7, []HeadSample{front(5, 5, 10), front(9, 21, 30)}, 10},
		"the list was empty before it came":      {7, []HeadSample{front(5, 5, 8), empty(6, 9), front(9, 21, 30)}, 10},
		"it was passed when nobody looked":       {7, []HeadSample{front(9, 21, 30)}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			fronts := HeadSamples{Noted: test.noted, At: at(60)}
			if got := fronts.TakenAt(&State{Ticket: test.ticket, StartedAt: at(10)}); !got.Equal(at(test.want)) {
				t.Errorf("want %s, got %s", at(test.want), got)
			}
		})
	}
}

func TestADeadlineThatWasSpentInLineIsMovedOnce(t *testing.T) {
	start := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	seen := func(minutes int) HeadSamples {
		return HeadSamples{At: start.Add(time.Hour), Noted: []HeadSample{
			{Ticket: 1, FirstSeen: start, LastSeen: start.Add(time.Minute)},
			{Ticket: 3, FirstSeen: start.Add(time.Duration(minutes) * time.Minute), LastSeen: start.Add(time.Hour)},
		}}
	}
	for name, test := range map[string]struct {
		change func(m *Model)
		taken  int // minutes after the start
		want   Event
	}{
		"taken in line":              {func(*Model) {}, 8, EventTaken},
		"taken at once":              {func(*Model) {}, 0, EventTimeout},
		"begun":                      {func(m *Model) { m.ProcessingAt = start.Add(time.Minute) }, 8, EventTimeout},
		"moved before":               {func(m *Model) { m.TakenAt = start.Add(time.Minute) }, 8, EventTimeout},
		"no timeout":                 {func(m *Model) { m.Policy.Timeout = 0 }, 8, EventTimeout},
		"a queue timeout of its own": {func(m *Model) { m.Policy.QueueTimeout = time.Minute }, 8, EventQueueTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			m := Model{UID: "m", Policy: policy.Default()}
			m.State = m.Start(start, "a").Next
			m.Ticket = 2
			test.change(&m)
			now := start.Add(10 * time.Minute)
			decision := m.ExpireOrExtend(seen(test.taken), now)
			if decision.Event != test.want {
				t.Fatalf("want %s, got %s", test.want, decision.Event)
			}
			if next := decision.Next; test.want == EventTaken && (!next.DeadlineAt.Equal(start.Add(18*time.Minute)) || !next.TakenAt.Equal(start.Add(8*time.Minute)) || !next.EntryDeadlineAt.Equal(now)) {
				t.Errorf("want a deadline ten minutes after it was taken, got %+v", next)
			}
		})
	}
}
