package model

import (
	"testing"
	"time"
)

func TestWhatWasParkedDoesNotCountTowardsGivingUpWhoeverEndsIt(t *testing.T) {
	began := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	parked, now := began.Add(10*time.Minute), began.Add(40*time.Minute)
	usual := policyOf(t, `{"retries":["1m","1m"],"give_up_after":"1h"}`)
	for name, end := range map[string]func(*Model) Decision{
		"its gate opens": func(m *Model) Decision { return m.Release(now, now) },
		"a hand runs it": func(m *Model) Decision { decision, _ := m.Run(false, now); return decision },
		"a save wants it now": func(m *Model) Decision {
			decision, _, err := m.Put(Definition{UID: "m1", PolicyName: "p", Refresh: RefreshNow}, usual, true, now)
			if err != nil {
				t.Fatal(err)
			}
			return decision
		},
		"a save changes it": func(m *Model) Decision { // which begins anew
			decision, _, err := m.Put(Definition{UID: "m1", PolicyName: "p", Rule: "FREQ=DAILY"}, usual, true, now)
			if err != nil {
				t.Fatal(err)
			}
			return decision
		},
	} {
		m := Model{UID: "m1", PolicyName: "p", Policy: usual, State: State{
			AttemptNo: 1, FailingSince: began, TryingSince: began, RefreshAt: parked, Trigger: TriggerRetry, ParkedBy: "hold:h1", ParkedSince: parked,
		}}
		next := end(&m).Next
		if tried := now.Sub(next.TryingSince); next.Parked() || tried > 10*time.Minute {
			t.Errorf("%s: parked %t, and it has tried for %s, want 10m at most of the 40m, 30m of which it was parked", name, next.Parked(), tried)
		}
	}
}
