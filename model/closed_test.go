package model

import (
	"testing"
	"time"
)

func TestAKeyThatAnAnswerHasClosedParksItsModelsUntilItOpens(t *testing.T) {
	const answer = "tbl_1 (http_429)"
	for name, test := range map[string]struct {
		slots   Slots
		parks   bool
		startAt time.Time
	}{
		"by an answer":     {Slots{second(60), second(60), answer}, true, second(60)},
		"opens now":        {Slots{second(10), second(10), answer}, false, second(10)},
		"by the last slot": {Slots{second(60), second(60), ""}, false, second(60)},
	} {
		m, now := waiting(t, 1, "", second(10))[0], second(10)
		limiters := func() *Limiters {
			l := new(Limiters)
			l.Learn(Limiters{Keys: map[string]*LimiterState{"policy=" + m.PolicyKey(): {Slots: test.slots}}})
			return l
		}
		decision := new(Blockers).StartOrPark(m, limiters(), "a1", now)
		parked := decision.Event == EventParked && decision.Recheck.Equal(test.slots.Closed)
		if parked != test.parks {
			t.Errorf("%s: got %s, to be looked at again at %s, want parked: %t", name, decision.Event, decision.Recheck, test.parks)
		}
		f, blocker := new(Blockers).Forecast(m, limiters(), now)
		if !f.StartAt.Equal(test.startAt) || blocker != "" {
			t.Errorf("%s: it is foretold to start at %s, behind %q, want at %s", name, f.StartAt, blocker, test.startAt)
		}
	}
}

func TestWhoOpensAKeyGivesBackTheTimeForWhichItWasClosed(t *testing.T) {
	for name, test := range map[string]struct{ was, want Slots }{
		"nobody has reserved":    {Slots{second(60), second(60), "a"}, Slots{Free: second(10), Closed: second(10)}},
		"some have":              {Slots{second(90), second(60), "a"}, Slots{Free: second(40), Closed: second(10)}},
		"a line that was behind": {Slots{second(55), second(60), "a"}, Slots{Free: second(10), Closed: second(10)}},
	} {
		got := test.was.Open(second(10))
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}
