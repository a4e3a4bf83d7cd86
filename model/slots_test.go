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
)

var slotsBegin = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)

// second is an instant, in seconds behind the begin; 0: none.
func second(s float64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return slotsBegin.Add(time.Duration(s * float64(time.Second))).Round(time.Microsecond)
}

func TestAStartClosesItsKeyForAnIntervalAndMovesTheLineByWhatItIsLate(t *testing.T) {
	at := func(free, closed float64) Slots { return Slots{second(free), second(closed)} }
	for name, test := range map[string]struct {
		was       Slots
		slot, now float64
		want      Slots
	}{
		"at its slot":                         {at(50, 10), 10, 10, at(50, 11)},
		"a little late, and no other for it":  {at(50, 10), 10, 10.05, at(50, 11)},
		"later, and so are those behind":      {at(50, 10), 10, 13.1, at(53, 14)},
		"behind slots that nobody used":       {at(50, 10), 20, 20, at(50, 21)},
		"the last of its line":                {at(11, 10), 10, 30.1, at(31, 31)},
		"when nothing is remembered":          {at(0, 0), 10, 30.1, at(31, 31)},
		"of a key that was closed long since": {at(11, 5), 10, 10, at(11, 11)},
	} {
		if diff := cmp.Diff(test.want, test.was.start(second(test.slot), time.Second, second(test.now))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestASlotIsReservedBehindTheLineAndNotWhileTheKeyIsClosed(t *testing.T) {
	for name, test := range map[string]struct {
		was       Slots
		now, slot float64
	}{
		"nothing is remembered": {Slots{}, 10, 10},
		"the line has passed":   {Slots{second(5), second(4)}, 10, 10},
		"behind the line":       {Slots{second(50), second(11)}, 10, 50},
		"closed beyond it":      {Slots{second(12), second(40)}, 10, 40},
	} {
		slot, after := test.was.reserve(time.Second, second(test.now))
		if diff := cmp.Diff([]time.Time{second(test.slot), second(test.slot + 1), test.was.Closed}, []time.Time{slot, after.Free, after.Closed}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSlotsAreReadAsTheyWereWritten(t *testing.T) {
	for text, want := range map[string]Slots{
		"":                                  {},
		"1795240801000000":                  {Free: second(1)},
		"1795240801000001 1795240800500000": {second(1.000001), second(0.5)},
		" 1795240800500000":                 {Closed: second(0.5)},
	} {
		if got := ParseSlots(text); got != want || got.String() != text {
			t.Errorf("%q is read as %v and written as %q", text, got, got.String())
		}
	}
	if got := ParseSlots("soon never"); got != (Slots{}) {
		t.Errorf("what is no number is read as %v", got)
	}
}

func TestTheEndOfALineIsRememberedWhileSomebodyHoldsASlot(t *testing.T) {
	if got := (Slots{second(11), second(11)}).Last(); got != second(11) {
		t.Errorf("nobody holds one: forgotten %s", got)
	}
	if got := (Slots{second(12), second(11)}).Last(); got != second(12).Add(lineKept) {
		t.Errorf("somebody holds one: forgotten %s", got)
	}
}

// startsOfAKey lets models of a key with a rate become due, and a dispatcher run at some instants only. It returns when they started, by uid.
type startsOfAKey struct {
	blockers Blockers
	limiters Limiters
	models   map[string]*Model
	begun    []time.Time
	order    []string
}

// round decides about what may go on at now: first what is parked, both longest due first.
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
