package model

import (
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/schedule"
)

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
	gates, rooms, now := Blockers{}, Limiters{}, slotsBegin
	var slots []time.Time
	var line Slots
	for i, m := range waiting(t, 5, "", now) {
		decision := gates.StartOrPark(m, &rooms, "a", now)
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
	gates, rooms, now := Blockers{}, Limiters{}, slotsBegin.Add(45*time.Second)
	models := waiting(t, 4, window, now)
	models[3].Trigger = TriggerPlanned
	wants := []time.Time{{}, now.Add(10 * time.Second), slotsBegin.AddDate(0, 0, 1), now.Add(20 * time.Second)}
	var line Slots
	for i, m := range models {
		decision := gates.StartOrPark(m, &rooms, "a", now)
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
