package model

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/model/policy"
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
			must(t, err)
			return decision
		},
		"a save changes it": func(m *Model) Decision { // which begins anew
			decision, _, err := m.Put(Definition{UID: "m1", PolicyName: "p", Rule: "FREQ=DAILY"}, usual, true, now)
			must(t, err)
			return decision
		},
	} {
		m := Model{UID: "m1", PolicyName: "p", Policy: usual, State: State{
			AttemptNo: 1, FailingSince: began, TryingSince: began, RefreshAt: parked, Trigger: TriggerRetry, ParkedBy: "hold:h1", ParkedSince: parked,
		}}
		next := end(&m).Next
		tried := now.Sub(next.TryingSince)
		failIf(t, next.Parked() || tried > 10*time.Minute,
			"%s: parked %t, and it has tried for %s, want 10m at most of the 40m, 30m of which it was parked", name, next.Parked(), tried)
	}
}

// waiting are models of one key with a rate of six a minute, due at an instant.
func waiting(t *testing.T, n int, more string, due time.Time) (models []*Model) {
	t.Helper()
	p := policyOf(t, `{"limits":[{"key":"{policy}","rate":"6/m"}],"retries":["1m"]`+more+`}`)
	for i := range n {
		m := &Model{UID: string(rune('a' + i)), PolicyName: "p", State: State{RefreshAt: due, Trigger: TriggerRetry, AttemptNo: 1, FailingSince: due, TryingSince: due}}
		must(t, m.Resolve(p, schedule.Parse))
		models = append(models, m)
	}
	return models
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

var slotsBegin = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)

// second is an instant, in seconds behind the begin; 0: none.
func second(s float64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return slotsBegin.Add(time.Duration(s * float64(time.Second))).Round(time.Microsecond)
}

func TestAStartClosesItsKeyForAnIntervalAndMovesTheLineByWhatItIsLate(t *testing.T) {
	at := func(free, closed float64) Slots { return Slots{Free: second(free), Closed: second(closed)} }
	for name, test := range map[string]struct {
		was       Slots
		slot, now float64
		want      Slots
	}{
		"at its slot":                         {at(50, 10), 10, 10, at(50, 11)},
		"a little late, and no other for it":  {at(50, 10), 10, 10.05, at(50, 11)},
		"later, and so are those behind":      {at(50, 10), 10, 13.1, at(53, 14)},
		"late by others, who moved the line":  {at(50, 13), 10, 13, at(50, 14)},
		"behind slots that nobody used":       {at(50, 10), 20, 20, at(50, 21)},
		"the last of its line":                {at(11, 10), 10, 30.1, at(31, 31)},
		"when nothing is remembered":          {at(0, 0), 10, 30.1, at(31, 31)},
		"of a key that was closed long since": {at(11, 5), 10, 10, at(11, 11)},
	} {
		diff := cmp.Diff(test.want, test.was.start(second(test.slot), time.Second, second(test.now)))
		failIf(t, diff != "", "%s (-want +got):\n%s", name, diff)
	}
}

func TestSlotsAreReadAsTheyWereWritten(t *testing.T) {
	for text, want := range map[string]Slots{
		"": {}, "1795240801000000": {Free: second(1)},
		"1795240801000001 1795240800500000":                          {Free: second(1.000001), Closed: second(0.5)},
		" 1795240800500000":                                          {Closed: second(0.5)},
		"1795240801000000 1795240800500000 tbl_1 (too many)":         {Free: second(1), Closed: second(0.5), By: "tbl_1 (too many)"},
		"1795240801000000 1795240802000000/1795240800500000 a (b/c)": {Free: second(1), Closed: second(2), By: "a (b/c)", Paced: second(0.5)},
		"1795240802000000 1795240802000000/1795240802000000":         {Free: second(2), Closed: second(2), Paced: second(2)},
	} {
		got := ParseSlots(text)
		failIf(t, got != want || got.String() != text, "%q is read as %v and written as %q", text, got, got.String())
	}
	got := ParseSlots("soon never")
	failIf(t, got != (Slots{}), "what is no number is read as %v", got)
}

func TestTheEndOfALineIsRememberedWhileSomebodyHoldsASlot(t *testing.T) {
	got := (Slots{Free: second(11), Closed: second(11)}).Last()
	failIf(t, got != second(11), "nobody holds one: forgotten %s", got)
	got = (Slots{Free: second(12), Closed: second(11)}).Last()
	failIf(t, got != second(12).Add(lineKept), "somebody holds one: forgotten %s", got)
}

// startsOfAKey lets models of a key with a rate become due, and a dispatcher run at some instants only. It returns when they started, by uid.
type startsOfAKey struct {
	blockers Blockers
	limiters Limiters
	models   map[string]*Model
	begun    []time.Time
	order    []string
}

// round decides at now which models may go on: parked ones first, both longest due first.
func (s *startsOfAKey) round(now time.Time) {
	var uids []string
	for uid, m := range s.models {
		if m.Due(now) || m.Parked() {
			uids = append(uids, uid)
		}
	}
	slices.SortFunc(uids, func(a, b string) int {
		x, y := s.models[a], s.models[b]
		if x.Parked() != y.Parked() {
			return map[bool]int{true: -1, false: 1}[x.Parked()]
		}
		return 2*x.RefreshAt.Compare(y.RefreshAt) + map[bool]int{true: -1, false: 1}[a < b]
	})
	for _, uid := range uids {
		m := s.models[uid]
		decision := s.blockers.StartOrPark(m, &s.limiters, "a-"+uid, now)
		m.State = decision.Next
		if decision.Event == EventStart {
			s.begun, s.order = append(s.begun, now), append(s.order, uid)
			delete(s.models, uid)
		}
	}
}

func (s *startsOfAKey) add(n int, p policy.Policy, now time.Time) {
	for range n {
		uid := fmt.Sprintf("m%04d", len(s.models)+len(s.begun))
		s.models[uid] = &Model{UID: uid, PolicyName: "p", Policy: p, State: State{RefreshAt: now, Trigger: TriggerDeferred}}
	}
}

func TestStartsOfAKeyComeInTheOrderOfTheirSlotsAndNeverInABurstWheneverADispatcherRuns(t *testing.T) {
	policies := map[string]policy.Policy{}
	intervals := map[string]time.Duration{"6/m": 10 * time.Second, "60/m": time.Second, "7/s": time.Second / 7, "100/s": 10 * time.Millisecond}
	for rate := range intervals {
		policies[rate] = policyOf(t, `{"limits":[{"key":"{policy}","rate":"`+rate+`"}]}`)
	}
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.SampledFrom(slices.Sorted(maps.Keys(intervals))).Draw(t, "rate")
		s := &startsOfAKey{models: map[string]*Model{}}
		now, interval := slotsBegin, intervals[rate]
		for range rapid.IntRange(1, 8).Draw(t, "episodes") {
			s.add(rapid.IntRange(0, 20).Draw(t, "new"), policies[rate], now)
			step := time.Duration(rapid.IntRange(1, 5000).Draw(t, "step")) * time.Millisecond
			for range rapid.IntRange(1, 10).Draw(t, "rounds") {
				s.round(now)
				now = now.Add(step)
			}
		}
		for range 10 * len(s.models) {
			s.round(now)
			now = ceilMillis(now.Add(interval))
		}
		if len(s.models) > 0 {
			t.Fatalf("%d never started", len(s.models))
		}
		for i, first := range s.begun {
			for j, later := range s.begun[i:] {
				if took := later.Sub(first); took < time.Duration(j)*interval-evenly {
					t.Fatalf("%d starts behind the one at %s took %s: want %s at least", j, first, took, time.Duration(j)*interval-evenly)
				}
			}
		}
		if !slices.IsSorted(s.order) {
			t.Fatalf("not in the order of their slots: %v", s.order)
		}
	})
}

// No two models reserve one slot, though they are decided about in one round that has read the slots once.
func TestModelsOfOneRoundReserveDifferentSlots(t *testing.T) {
	blockers, limiters, now := Blockers{}, Limiters{}, slotsBegin
	var slots []time.Time
	var line Slots
	for i, m := range waiting(t, 5, "", now) {
		decision := blockers.StartOrPark(m, &limiters, "a", now)
		failIf(t, len(decision.Acquires) != 1 || decision.Acquires[0].Before != line,
			"model %d takes %+v of slots as they were read: want them as the one before has left them, %+v", i, decision.Acquires, line)
		line = decision.Acquires[0].After
		if decision.Event == EventLimited {
			slots = append(slots, decision.Next.RefreshAt)
		}
	}
	want := []time.Time{second(10), second(20), second(30), second(40)}
	failIf(t, !slices.EqualFunc(slots, want, time.Time.Equal), "reserved are %v, want %v", slots, want)
}

func TestASlotIsReservedBehindTheLineAndNotWhileTheKeyIsClosed(t *testing.T) {
	for name, test := range map[string]struct {
		was       Slots
		now, slot float64
	}{
		"nothing is remembered": {Slots{}, 10, 10},
		"the line has passed":   {Slots{Free: second(5), Closed: second(4)}, 10, 10},
		"behind the line":       {Slots{Free: second(50), Closed: second(11)}, 10, 50},
		"closed beyond it":      {Slots{Free: second(12), Closed: second(40)}, 10, 40},
	} {
		slot, after := test.was.reserve(time.Second, second(test.now))
		diff := cmp.Diff([]time.Time{second(test.slot), second(test.slot + 1), test.was.Closed}, []time.Time{slot, after.Free, after.Closed})
		failIf(t, diff != "", "%s (-want +got):\n%s", name, diff)
	}
}
