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
		"by an answer":     {Slots{Free: second(60), Closed: second(60), By: answer}, true, second(60)},
		"opens now":        {Slots{Free: second(10), Closed: second(10), By: answer}, false, second(10)},
		"by the last slot": {Slots{Free: second(60), Closed: second(60)}, false, second(60)},
		"by a slow pace":   {Slots{Free: second(86400), Closed: second(86400)}, false, second(86400)},
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
	at := func(free, closed, paced float64) Slots {
		return Slots{Free: second(free), Closed: second(closed), Paced: second(paced)}
	}
	for name, test := range map[string]struct{ was, want Slots }{
		"nobody has reserved":              {at(60, 60, 0), at(10, 10, 0)},
		"some have":                        {at(90, 60, 0), at(40, 10, 0)},
		"a line that was behind":           {at(55, 60, 0), at(10, 10, 0)},
		"its pace has passed":              {at(90, 60, 5), at(40, 10, 5)},
		"its pace, and nobody has":         {at(60, 60, 30), at(30, 30, 30)},
		"its pace, and some have":          {at(90, 60, 30), at(60, 30, 30)},
		"its pace, and the line is behind": {at(55, 60, 30), at(30, 30, 30)},
	} {
		test.was.By = "a"
		got := test.was.Open(second(10))
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestOnlyAnAnswerClosesAKeyForLongerThanThePaceOfItsRate(t *testing.T) {
	began := second(60)
	for _, interval := range []time.Duration{time.Second, time.Hour - 1, time.Hour, 72 * time.Hour} {
		slots := ParseSlots(Slots{}.start(began, interval, began).String())
		if until, by := slots.ClosedAt(began); by != "" || !until.IsZero() {
			t.Errorf("a start each %s: got it closed until %s by the answer to %s, want by nobody's", interval, until, by)
		}
		if got := slots.Closed.Sub(began); got < interval || got > interval+time.Microsecond {
			t.Errorf("a start each %s: got it closed for %s", interval, got)
		}
	}
}
