package poller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

// line saves one-shots, each with its tenant behind an @, under limits, and lets a dispatcher start or park each.
func (b *bundle) line(limits string, uids ...string) {
	b.t.Helper()
	for _, uid := range uids {
		name, tenant, found := strings.Cut(uid, "@")
		if !found {
			tenant = "t1"
		}
		b.obey(fmt.Sprintf(`{"type":"put","uid":%q,"labels":{"tenant":%q},"payload":{"input_url":"http://feed/x"},"policy":{"timeout":"1m","retries":[]%s}}`, name, tenant, limits))
		b.dispatch()
		b.dispatch()
	}
	b.Redis.Del(b.t.Context(), b.Store.Keys.Wake)
}

const (
	oneAHost = `,"limits":[{"key":"{host(input_url)}","running":1}]`
	twoAHost = `,"limits":[{"key":"{host(input_url)}","running":2}]`
)

// holding lists the models that hold a place of the host.
func (b *bundle) holding() (uids []string) {
	b.t.Helper()
	for uid := range b.Scores(b.Store.Keys.Limit("host=feed")) {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids
}

func TestAHeadThatSomethingElseStopsIsParkedThereAndItsPlaceIsLeft(t *testing.T) {
	for name, test := range map[string]struct {
		policy  string
		prepare func(b *bundle)
		by      string
	}{
		"a calendar": {policy: `,"closed":["nights"]`, by: "calendar:nights", prepare: func(b *bundle) {
			closed := check.Got(schedule.ParseCalendar(map[string]any{"name": "nights", "rrule": "FREQ=DAILY;BYHOUR=6;BYMINUTE=30;BYSECOND=0", "dtstart": "2026-01-01", "for": "2h"}))(b.t)
			must(b.t, flow.Of(b.Store).PutCalendar(b.t.Context(), closed, b.Clock.Now()))
		}},
		"a hold": {by: "hold:h1", prepare: func(b *bundle) {
			must(b.t, flow.Of(b.Store).PutHold(b.t.Context(), &model.Hold{ID: "h1", Since: b.Clock.Now()}))
		}},
		"an open circuit": {policy: `,"circuit":{"key":"{host(input_url)}","open_after":"9 of 9","probe":"1m"}`, by: "circuit:host=feed", prepare: func(b *bundle) {
			must(b.t, check.Only(flow.Of(b.Store).OpenCircuit(b.t.Context(), "host=feed", "ann", "", b.Clock.Now().Add(time.Hour), b.Clock.Now())))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.line(oneAHost+test.policy, "a", "b")
				test.prepare(b)
				b.Redis.Del(t.Context(), b.Store.Keys.Wake)
				b.Say(b.result("success", "a"))
				round := b.round()
				failIf(t, round.Started != 0 || b.Stats()["success"] != 1, "want an end and no start, got %+v", round)
				equal(t, test.by, b.Model("b")["parked_by"])
				b.expectLeft("b")
			})
		})
	}
}

func TestADispatcherCountsAsAliveUntilTheInstantThatItHasNoted(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(oneAHost, "a", "b")
		b.Redis.HSet(t.Context(), b.Store.Keys.Heard, store.HeardWindow, fmt.Sprint("1000 ", b.Clock.Now().UnixMilli()))
		b.hear(b.result("success", "a"))
		b.expectStart("b")
	})
}

func TestWhatIsWantedLaterKeepsNoPlaceFree(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(oneAHost, "a", "b")
		b.Redis.ZAdd(t.Context(), b.Store.Keys.Urgent, fixture.At(float64(b.Clock.Now().UnixMilli()+1), "x"))
		b.hear(b.result("success", "a"))
		b.expectStart("b")
	})
}

func TestAHeldHeadLetsTheNextOneGo(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(oneAHost, "a", "b", "c")
		selector := check.Got(model.ParseSelector("uid=b"))(t)
		must(t, flow.Of(b.Store).PutHold(t.Context(), &model.Hold{ID: "h1", Selector: selector, Since: b.Clock.Now()}))
		b.hear(b.result("success", "a"))
		b.expectStart("c")
		equal(t, "hold:h1", b.Model("b")["parked_by"])
	})
}

func TestThreeHeadsAreTriedAndThenADispatcherIs(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(oneAHost, "a", "b@t2", "c@t2", "d@t2", "e", "f")
		selector := check.Got(model.ParseSelector("tenant=t2"))(t)
		must(t, flow.Of(b.Store).PutHold(t.Context(), &model.Hold{ID: "h1", Selector: selector, Since: b.Clock.Now()}))
		b.Redis.Del(t.Context(), b.Store.Keys.Wake)
		b.hear(b.result("success", "a"))
		equal(t, []string{"b", "c", "d"}, sortedNames(b.Scores(b.Store.Keys.ParkedBy("hold:h1"))))
		equal(t, []string{"e", "f"}, sortedNames(b.Scores(b.Store.Keys.ParkedBy(gate))))
		b.expectLeft("e")
		b.dispatch()
		b.expectStart("e")
	})
}

func sortedNames(scores map[string]int64) (names []string) {
	for name := range scores {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestAKeyThatAnAnswerClosesStartsNothing(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(oneAHost+`,"retry_after_scope":"key"`, "a", "b")
		b.hear(b.result("failure", "a", `"error_type":"http_429"`, `"retry_after":20`))
		b.expectLeft("b")
		b.dispatch()
		failIf(t, b.Attempt("b") != "", "want it to wait until the key opens, got %v", b.Model("b"))
		b.Clock.Turn(20 * time.Second)
		b.dispatch()
		b.dispatch()
		b.expectStart("b")
	})
}

func TestAKeyThatAnAnswerClosesStartsNothingBehindOtherEndsEither(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(twoAHost+`,"retry_after_scope":"key"`, "a", "b", "c", "d")
		b.Say(b.result("failure", "a", `"error_type":"http_429"`, `"retry_after":20`), b.result("success", "b"))
		round := b.round()
		failIf(t, round.Applied != 2 || round.Started != 0, "want two ends and no start, got %+v", round)
		b.expectLeft("c")
	})
}

func TestAHeadOfARateReservesTheNextSlot(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(`,"limits":[{"key":"{host(input_url)}","running":1,"rate":"6/m"}]`, "a", "b", "c")
		b.Clock.Turn(2 * time.Second)
		b.Say(b.result("success", "a"))
		round := b.round()
		failIf(t, round.Started != 0, "want no start before its slot, got %+v", round)
		want := map[string]int64{"b": fixture.Start.Add(10 * time.Second).UnixMilli(), "c": fixture.Start.Add(20 * time.Second).UnixMilli()}
		equal(t, want, b.Scores(b.Store.Keys.Due))
		equal(t, []string(nil), b.holding())
	})
}

func TestAHeadOfARateWhoseIntervalIsOverTakesItsSlot(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(`,"limits":[{"key":"{host(input_url)}","running":1,"rate":"30/m"}]`, "a", "b")
		b.Clock.Turn(3 * time.Second)
		b.hear(b.result("success", "a"))
		b.expectStart("b")
		closed := model.ParseSlots(b.Redis.Get(t.Context(), b.Store.Keys.Rate("host=feed")).Val()).Closed
		equal(t, b.Clock.Now().Add(2*time.Second), closed)
	})
}

func TestAStartInAFreedPlaceTakesAllOfItsKeys(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(`,"limits":[{"key":"{host(input_url)}","running":1},{"key":"{label.tenant}","running":3}]`, "a", "b@t2", "c@t2")
		b.hear(b.result("success", "a"))
		b.expectStart("b")
		_, counted := b.Scores(b.Store.Keys.Limit("tenant=t2"))["b"]
		failIf(t, !counted || len(b.Scores(b.Store.Keys.Limit("tenant=t1"))) > 0, "want its tenant to count it, and no other")
		failIf(t, len(b.Scores(b.Store.Keys.ParkedBy("limit:host=feed"))) != 1, "want one left in line")
	})
}

func TestSeveralEndsStartSeveralModelsInTheirOrder(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(twoAHost, "a", "b", "c", "d", "e")
		b.Say(b.result("success", "a"), b.result("failure", "b"))
		round := b.round()
		failIf(t, round.Started != 2 || round.Applied != 2, "want two ends and two starts, got %+v", round)
		equal(t, []string{"c", "d"}, b.holding())
		failIf(t, len(b.List(b.Store.Keys.Wake)) > 0 || b.Scores(b.Store.Keys.Blockers)[gate] <= b.Clock.Now().UnixMilli(), "want no dispatcher called")
		b.expectStart("d")
	})
}

func TestAsManyModelsStartAsPlacesAreGivenBack(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		uids := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}
		b.line(`,"limits":[{"key":"{host(input_url)}","running":5}]`, uids...)
		for _, uid := range uids[:5] {
			b.Say(b.result("success", uid))
		}
		round := b.round()
		failIf(t, round.Started != 5, "want five starts, got %+v", round)
		equal(t, uids[5:10], b.holding())
	})
}

func TestOfSeveralPlacesThoseThatNobodyTakesAreLeft(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(`,"limits":[{"key":"{host(input_url)}","running":3}]`, "a", "b", "c", "d", "e", "f")
		selector := check.Got(model.ParseSelector("uid=e"))(t)
		must(t, flow.Of(b.Store).PutHold(t.Context(), &model.Hold{ID: "h1", Selector: selector, Since: b.Clock.Now()}))
		b.Redis.HSet(t.Context(), b.Store.Keys.Model("f"), "policy", "nobody-knows-it") // with a fault: a dispatcher says so
		b.Redis.Del(t.Context(), b.Store.Keys.Wake)
		b.hear(b.result("success", "a"), b.result("success", "b"))
		equal(t, []string{"c", "d"}, b.holding())
		b.expectLeft("f")
	})
}

// once meddles before the first commit alone.
func once(meddle func()) func() {
	done := false
	return func() {
		if !done {
			done = true
			meddle()
		}
	}
}

func TestAStartIsRefusedWithItsOwnEndAloneAndTriedAgainWithIt(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(twoAHost, "a", "b", "c", "d", "e")
		b.Say(b.result("success", "a"), b.result("success", "b"))
		conflict := once(func() { b.Redis.HIncrBy(t.Context(), b.Store.Keys.Model("a"), "rev", 1) })
		var holding []string
		commits := 0
		round := b.roundOf(b.poller(meddler{b.Store, flow.Of(b.Store), func() {
			conflict()
			if commits++; commits == 2 {
				holding = b.holding()
			}
		}}, poller.Config{}))
		equal(t, []string{"a", "d"}, holding)
		equal(t, []string{"c", "d"}, b.holding())
		failIf(t, round.Applied != 2 || round.Started != 2, "want both applied at last, got %+v", round)
	})
}

func TestAHeadThatAMessageOfTheSameBatchChangesIsLeft(t *testing.T) {
	for _, command := range []string{`{"type":"disable","uid":"b"}`, `{"type":"remove","uid":"b"}`, `{"type":"put","uid":"b","payload":{"input_url":"http://feed/y"}}`, `{"type":"run","uid":"b"}`} {
		t.Run(command, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.line(oneAHost, "a", "b", "c")
				b.Say(b.result("success", "a"))
				b.Command(command)
				round := b.round()
				failIf(t, round.Claimed != 2 || round.Applied != 2 || round.Started != 0, "want both messages applied and no start, got %+v", round)
				b.expectLeft("b")
				failIf(t, len(b.holding()) > 0, "want the place free, got %v", b.holding())
			})
		})
	}
}

func TestAWithdrawalFreesAPlaceToo(t *testing.T) {
	for _, command := range []string{`{"type":"remove","uid":"a"}`, `{"type":"disable","uid":"a"}`, `{"type":"run","uid":"a","force":true}`} {
		t.Run(command, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.line(oneAHost, "a", "b")
				b.obey(command)
				b.expectStart("b")
				equal(t, []string{"b"}, b.holding())
				failIf(t, len(b.List(b.Store.Keys.Input)) != 1, "want the entry of the other taken back, got %q", b.List(b.Store.Keys.Input))
			})
		})
	}
}

func TestAPlaceThatNobodyWaitsForCallsNoDispatcher(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(oneAHost, "a")
		b.hear(b.result("failure", "a", `"retryable":false`))
		equal(t, map[string]int64{}, b.Scores(b.Store.Keys.Blockers))
		equal(t, []string{}, b.List(b.Store.Keys.Wake))
	})
}

// Of several keys one calls a dispatcher, wherever it stands among them.
func TestAPlaceIsLeftWhateverOtherKeysGiveBack(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		const others = `{"key":"{label.tenant}","running":9},{"key":"{policy}","running":9},{"key":"{input_url}","running":9}`
		b.line(`,"limits":[{"key":"{host(input_url)}","running":1},`+others+`]`, "a", "b")
		b.Redis.HDel(t.Context(), b.Store.Keys.Heard, store.HeardWindow)
		b.hear(b.result("success", "a"))
		b.expectLeft("b")
	})
}

func TestAnAttemptThatGoesOnGivesNoPlaceAway(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.line(oneAHost, "a", "b")
		b.hear(b.result("started", "a"), b.result("user_friendly_status", "a", `"status":"half"`))
		equal(t, []string{"a"}, b.holding())
		failIf(t, b.Attempt("b") != "", "want one at a time")
	})
}
