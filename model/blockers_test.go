package model

import (
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/schedule"
)

func TestWhatWasParkedDoesNotCountTowardsGivingUpWhoeverEndsIt(t *testing.T) {
	began := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	parked, now := began.Add(10*time.Minute), began.Add(40*time.Minute)
	usual := policyOf(t, `{"retries":["1m","1m"],"give_up_after":"1h"}`)
	for name, end := range map[string]func(*Model) Decision{
		"its blocker goes": func(m *Model) Decision { return m.Release(now, now) },
		"a hand runs it":   func(m *Model) Decision { decision, _ := m.Run(false, now); return decision },
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

// waiting are models of one key with a rate of six a minute, due at an instant.
func waiting(t *testing.T, n int, more string, due time.Time) (models []*Model) {
	t.Helper()
	p := policyOf(t, `{"limits":[{"key":"{policy}","rate":"6/m"}],"retries":["1m"]`+more+`}`)
	for i := range n {
		m := &Model{UID: string(rune('a' + i)), PolicyName: "p", State: State{RefreshAt: due, Trigger: TriggerRetry, AttemptNo: 1, FailingSince: due, TryingSince: due}}
		if err := m.Resolve(p, schedule.Parse); err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
	}
	return models
}

// No two models reserve one slot, though they are decided about in one round that has read the slots once.
func TestModelsOfOneRoundReserveDifferentSlots(t *testing.T) {
	blockers, limiters, now := Blockers{}, Limiters{}, slotsBegin
	var slots []time.Time
	var line Slots
	for i, m := range waiting(t, 5, "", now) {
		decision := blockers.StartOrPark(m, &limiters, "a", now)
		if len(decision.Acquires) != 1 || decision.Acquires[0].Before != line {
			t.Errorf("model %d takes %+v of slots as they were read: want them as the one before has left them, %+v", i, decision.Acquires, line)
		}
		line = decision.Acquires[0].After
		if decision.Event == EventLimited {
			slots = append(slots, decision.Next.RefreshAt)
		}
	}
	want := []time.Time{second(10), second(20), second(30), second(40)}
	if !slices.EqualFunc(slots, want, time.Time.Equal) {
		t.Errorf("reserved are %v, want %v", slots, want)
	}
}

// A slot that comes when the window of a retry has closed is left to others, and the retry waits for its window, which does not count towards
// giving up. A planned refresh has no window.
func TestARetryReservesNoSlotOutsideOfItsWindow(t *testing.T) {
	const window = `,"retry_window":"FREQ=DAILY;BYHOUR=6;BYMINUTE=0","give_up_after":"1h"`
	blockers, limiters, now := Blockers{}, Limiters{}, slotsBegin.Add(45*time.Second)
	models := waiting(t, 4, window, now)
	models[3].Trigger = TriggerPlanned
	wants := []time.Time{{}, now.Add(10 * time.Second), slotsBegin.AddDate(0, 0, 1), now.Add(20 * time.Second)}
	var line Slots
	for i, m := range models {
		decision := blockers.StartOrPark(m, &limiters, "a", now)
		next := &decision.Next
		switch {
		case i == 0 && decision.Event != EventStart, i > 0 && (decision.Event != EventLimited || !next.RefreshAt.Equal(wants[i])):
			t.Errorf("model %d: %s for %s, want it to wait for %s", i, decision.Event, next.RefreshAt, wants[i])
		case i == 2 && (next.Reserved != "" || next.Why != whyWindow || !next.TryingSince.Equal(now.Add(wants[i].Sub(now)))):
			t.Errorf("it waits with the slots %q, as %q, and has tried since %s", next.Reserved, next.Why, next.TryingSince)
		case len(decision.Acquires) != 1 || decision.Acquires[0].Before != line:
			t.Errorf("model %d takes %+v, want slots as the one before has left them, %+v", i, decision.Acquires, line)
		}
		line = decision.Acquires[0].After
	}
}
