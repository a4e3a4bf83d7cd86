package store

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

func TestAnIndexKnowsItsKeyItsFieldAndItsMembers(t *testing.T) {
	keys := newKeys("q")
	for _, test := range []struct {
		index       Index
		key, field  string
		scored      bool
		said, other string
	}{
		{Index{KeyBlocker, "hold:h"}, keys.ParkedBy("hold:h"), "parked_by", true, "hold:h", "hold:h hold:h"},
		{Index{KeyLimit, "a=1"}, keys.Limit("a=1"), "counted_by", true, "limit:b=1 limit:a=1", "circuit:a=1 limit:a=12"},
		{Index{KeyLabel, "tenant=t=1"}, keys.Label("tenant=t=1"), labelPrefix + "tenant", false, "t=1", "t"},
	} {
		i := test.index
		check.FailIf(t, keys.Index(i) != test.key || i.Field() != test.field || i.Scored() != test.scored, "%v: got %s, %s, %t", i, keys.Index(i), i.Field(), i.Scored())
		check.FailIf(t, !i.Said(test.said) || i.Said(test.other) || i.Said(""), "%v: a member by %q: %t, by %q: %t", i, test.said, i.Said(test.said), test.other, i.Said(test.other))
	}
}

func TestATransitionLeavesAnIndexInWhichItsModelIsByMistake(t *testing.T) {
	leave := func(index Index) *Transition {
		one := new(Transition)
		one.was.counted = "limit:b=1"
		return one.Leaving(index)
	}
	check.FailIf(t, leave(Index{KeyBlocker, "hold:h"}).was.blocker != "hold:h", "a blocker")
	check.FailIf(t, leave(Index{KeyLimit, "a=1"}).was.counted != "limit:b=1 limit:a=1", "a limit")
	check.FailIf(t, leave(Index{KeyLabel, "tenant=t=1"}).stray != "tenant=t=1", "a label")
}

func TestTheNameOfAPartIsThatOfItsQueueAndItsPlace(t *testing.T) {
	for name, want := range map[string]struct {
		whole string
		place int
		like  bool
	}{
		"{q:0}": {"{q}", 0, true}, "{q:17}": {"{q}", 17, true}, "{a:b:9999}": {"{a:b}", 9999, true},
		"{q}": {}, "q:1": {}, "{q:01}": {}, "{q:10000}": {}, "{q:-1}": {}, "{:1}": {}, "{q:1}x": {},
	} {
		whole, place, like := wholeOf(name)
		check.FailIf(t, whole != want.whole || place != want.place || like != want.like, "%s: got %s, %d, %t", name, whole, place, like)
	}
}

func TestOfTwoInstantsAZeroOneIsNone(t *testing.T) {
	first, second := time.UnixMilli(1), time.UnixMilli(2)
	for _, test := range [][3]time.Time{{first, second, first}, {second, first, first}, {{}, second, second}, {first, {}, first}, {}} {
		got := Earlier(test[0], test[1])
		check.FailIf(t, !got.Equal(test[2]), "of %s and %s: got %s", test[0], test[1], got)
	}
	check.FailIf(t, TrueFirst(true, false) >= 0 || TrueFirst(false, true) <= 0 || TrueFirst(true, true) != 0, "true is not first")
	sums := map[string]int64{"a": 1}
	AddUp(sums, map[string]int64{"a": 2, "b": 3})
	check.Equal(t, map[string]int64{"a": 3, "b": 3}, sums)
}

func TestATransitionIsAboutTheAttemptThatItStartsChangesOrEnds(t *testing.T) {
	now := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	ended := &model.Attempt{AttemptUID: "e", AttemptNo: 3}
	runs := model.State{AttemptUID: "r", AttemptNo: 2, StartedAt: now.Add(-time.Minute), DeadlineAt: now, Worker: "w"}
	for name, test := range map[string]struct {
		decision   model.Decision
		attemptUID string
		want       string
		endedAt    time.Time
	}{
		"with a record":   {model.Decision{Ended: ended, Next: runs}, "e", "e", time.Time{}},
		"it starts":       {model.Decision{Next: runs}, "", "r", time.Time{}},
		"it goes on":      {model.Decision{Next: runs}, "r", "r", time.Time{}},
		"without any":     {model.Decision{}, "", "", time.Time{}},
		"ends, no record": {model.Decision{}, "r", "r", now},
	} {
		transition := &Transition{decision: test.decision, attemptUID: test.attemptUID, before: make(values, len(fieldNames))}
		for i, value := range encode(&model.Model{State: runs}) {
			transition.before[i] = value
		}
		got := transition.Attempt(now)
		check.FailIf(t, got.AttemptUID != test.want || !got.EndedAt.Equal(test.endedAt), "%s: got %+v", name, got)
		check.FailIf(t, test.want == "r" && (got.AttemptNo != 2 || got.Worker != "w" || !got.DeadlineAt.Equal(now)), "%s: got %+v", name, got)
	}
	for event, want := range map[model.Event][2]bool{
		model.EventCreate: {true, false}, model.EventImport: {true, false}, model.EventRemove: {false, true}, model.EventOrphan: {false, true}, model.EventUpdate: {},
	} {
		one := &Transition{decision: model.Decision{Event: event}}
		check.FailIf(t, one.creates() != want[0] || one.removes() != want[1], "%s: creates %t, removes %t", event, one.creates(), one.removes())
	}
	check.FailIf(t, (&Transition{decision: model.Decision{Event: model.EventImport}, rev: "1"}).creates(), "an import over a model creates it")
}
