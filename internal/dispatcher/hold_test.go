package dispatcher_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// hold begins a hold of the models that a selector picks.
func (b *bundle) hold(id, selector string, until time.Time) {
	b.t.Helper()
	picks, err := model.ParseSelector(selector)
	if err == nil {
		err = flow.Of(b.Store).PutHold(context.Background(), &model.Hold{ID: id, Selector: picks, Since: b.now(), Until: until, Reason: "maintenance"})
	}
	must(b.t, err)
}

func (b *bundle) release(id string, within time.Duration) {
	b.t.Helper()
	must(b.t, check.Only(flow.Of(b.Store).ReleaseHold(context.Background(), id, within, b.now())))
}

func (b *bundle) sets(uid string) (in []string) {
	b.t.Helper()
	k := b.Store.Keys
	for _, key := range []string{k.Due, k.Urgent, k.Running, k.Parked} {
		if _, stands := b.Scores(key)[uid]; stands {
			in = append(in, key)
		}
	}
	return in
}

func TestAHeldModelIsParkedWhenItIsDueAndStartsOnceAfterItsHold(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.put("held", "other")
		b.hold("h1", "uid=held", fixture.Start.Add(time.Hour))
		begun := b.round(d)
		equal(t, dispatcher.Round{Started: 1, Parked: 1, Sleep: b.rest(1)}, begun)
		equal(t, []string{b.Store.Keys.Parked}, b.sets("held"))
		hash := b.Model("held")
		failIf(t, hash["parked_by"] != "hold:h1" || hash["parked_since"] != "2026-11-21T07:00:00.000Z" || hash["attempt_no"] != "", "the model is %v", hash)
		b.Clock.Turn(59 * time.Minute)
		round := b.round(d)
		failIf(t, round.Started+round.Released > 0, "a hold that is not over let go: %+v", round)
		b.Clock.Turn(time.Minute)
		round = b.round(d)
		failIf(t, round.Released != 1, "want it released at the end of the hold, got %+v", round)
		round = b.round(d)
		failIf(t, round.Started != 1, "want it started, got %+v", round)
		b.Redis.Del(context.Background(), b.Store.Keys.Input)
		round = b.round(d)
		failIf(t, round.Started != 0 || b.Attempt("held") == "", "want one start, got another: %+v", round)
		for _, key := range []string{b.Store.Keys.Parked, b.Store.Keys.Blockers, b.Store.Keys.ParkedBy("hold:h1")} {
			left := b.Scores(key)
			failIf(t, len(left) > 0, "%s holds %v after the hold", key, left)
		}
		holds, _, _ := flow.Of(b.Store).Holds(context.Background())
		failIf(t, len(holds) > 0, "the hold is not forgotten: %v", holds)
	})
}

func TestAModelThatACalendarKeepsWaitsAndStartsOnceWhenItOpens(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		closed := check.Got(schedule.ParseCalendar(map[string]any{"name": "nights", "rrule": "FREQ=DAILY;BYHOUR=6;BYMINUTE=30;BYSECOND=0", "dtstart": "2026-01-01", "for": "2h"}))(t)
		must(t, flow.Of(b.Store).PutCalendar(t.Context(), closed, b.now()))
		b.fleet(`{"timeout":"1m","retries":[],"closed":["nights"]}`, "t1/a", "t1/b")
		b.put("free")
		begun := b.round(d)
		equal(t, dispatcher.Round{Started: 1, Parked: 2, Sleep: b.rest(1)}, begun)
		equal(t, map[string]int64{"calendar:nights": fixture.Start.Add(90 * time.Minute).UnixMilli()}, b.Scores(b.Store.Keys.Blockers))
		b.Clock.Turn(90*time.Minute - time.Millisecond)
		b.Redis.Del(t.Context(), b.Store.Keys.Input)
		failIf(t, b.round(d).Released > 0 || b.Attempt("t1/a") != "", "want it closed until its end")
		b.Clock.Turn(time.Millisecond)
		b.settle(d)
		failIf(t, b.Attempt("t1/a") == "" || b.Attempt("t1/b") == "", "want both started when it opens, got %v", b.Model("t1/a"))
		failIf(t, len(b.Scores(b.Store.Keys.Blockers))+len(b.Scores(b.Store.Keys.Parked)) > 0, "want nothing left that waits, got %v", b.Scores(b.Store.Keys.Blockers))
		b.finish("t1/a", "t1/b")

		b.fleet(`{"timeout":"1m","retries":[],"closed":["nights"]}`, "t1/c")
		b.Clock.Turn(22 * time.Hour)
		b.round(d)
		failIf(t, !check.Got(flow.Of(b.Store).RemoveCalendar(t.Context(), "nights", b.now()))(t), "want it removed")
		b.settle(d)
		failIf(t, b.Attempt("t1/c") == "", "want it started when the calendar is removed, got %v", b.Model("t1/c"))
	})
}

func TestAHoldOfManyModelsIsReleasedBatchByBatchSpreadOverItsTime(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		d := b.dispatcher(b.Store, dispatcher.Config{Batch: 7})
		var uids []string
		for i := range 50 {
			uids = append(uids, fmt.Sprintf("m%02d", i))
		}
		b.put(uids...)
		b.hold("h1", "", time.Time{})
		for parked := 0; parked < len(uids); {
			round := b.round(d)
			parked += round.Parked
			stopIf(t, round.Started > 0 || round.Parked == 0, "want all parked, got %+v after %d", round, parked)
		}
		b.Clock.Turn(time.Hour)
		b.release("h1", 10*time.Minute)
		for released := 0; released < len(uids); {
			round := b.round(d)
			released += round.Released
			stopIf(t, round.Released == 0 || round.Released > 7, "want at most a batch, and some, got %+v", round)
		}
		first, last := 0, 0
		for _, at := range b.Scores(b.Store.Keys.Due) {
			switch into := time.UnixMilli(at).Sub(b.now()); {
			case into < 0 || into >= 10*time.Minute:
				t.Fatalf("a model starts %s after the release", into)
			case into < 5*time.Minute:
				first++
			default:
				last++
			}
		}
		failIf(t, first < 10 || last < 10 || first+last != len(uids), "%d start in the first half and %d in the second", first, last)
	})
}

func TestNoAttemptStartsThatWasDecidedBeforeAHoldBegan(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("m1")
		before := &interrupted{Store: b.Store, before: func() { b.hold("h1", "", time.Time{}) }}
		round := b.round(b.dispatcher(before, dispatcher.Config{}))
		failIf(t, round.Started != 0 || round.Refused != 1, "want the start refused, got %+v", round)
		failIf(t, b.Attempt("m1") != "", "an attempt was started after its hold had begun")
	})
}

// interrupted is a store in which something happens before each commit.
type interrupted struct {
	*store.Store
	before func()
}

func (s *interrupted) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	s.before()
	return s.Store.Commit(ctx, batch)
}

func TestADispatcherThatDiesAtAGateLeavesItToAnother(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		d := b.dispatcher(b.Store, dispatcher.Config{Owner: "a"})
		b.put("m1")
		b.hold("h1", "", fixture.Start.Add(time.Minute))
		b.round(d)
		b.Clock.Turn(time.Minute)
		dies := store.DueRequest{Limit: 10, Owner: "b", Lease: 4 * time.Second}
		due, err := b.Store.ReadDue(context.Background(), dies)
		stopIf(t, err != nil || len(due.Rechecks) != 1, "read %+v, %v", due, err)
		round := b.round(d)
		failIf(t, round.Released != 0, "two dispatchers look at one gate: %+v", round)
		b.Clock.Turn(4 * time.Second)
		round = b.round(d)
		failIf(t, round.Released != 1, "want it released by the other, got %+v", round)
	})
}

func TestHeldTimeCountsNotTowardsTheGiveUpWindow(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.saveOne(`{"timeout":"1m","retries":["10m","10m","10m"],"give_up_after":"30m","on_exhausted":"give_up"}`, "")
		b.round(d)
		b.Redis.Del(context.Background(), b.Store.Keys.Input) // a worker has it, and is never heard of again
		b.Clock.Turn(time.Minute)
		b.round(d) // it has failed: 10m
		b.hold("h1", "", fixture.Start.Add(5*time.Hour))
		b.Clock.Turn(10 * time.Minute)
		if round := b.round(d); round.Parked != 1 {
			t.Fatalf("want it parked, got %+v", round)
		}
		b.Clock.Set(fixture.Start.Add(5 * time.Hour))
		b.round(d)
		round := b.round(d)
		failIf(t, round.Started != 1 || round.GaveUp != 0, "want a retry after five hours of hold, got %+v", round)
		if hash := b.Model("tbl_1"); hash["trying_since"] != "2026-11-21T11:49:00.000Z" || hash["attempt_no"] != "2" {
			t.Errorf("the give-up window counts from %s, attempt %s", hash["trying_since"], hash["attempt_no"])
		}
	})
}

func TestAParkedModelWhoseKeyIsBrokenKeepsNobodyBusy(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.put("m1")
		b.hold("h1", "", time.Time{})
		b.settle(d)
		b.Redis.Del(t.Context(), b.Store.Keys.Model("m1"))
		b.Redis.Set(t.Context(), b.Store.Keys.Model("m1"), "broken", 0)
		b.release("h1", 0)
		for range 5 {
			b.round(d)
		}
		round := b.round(d)
		failIf(t, round.Sleep == 0 || len(b.Scores(b.Store.Keys.Parked)) > 0, "the dispatcher goes on about it: %+v", round)
	})
}

func TestAParkedModelThatGetsOtherLabelsLeavesAHoldThatPicksItNoMore(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.hold("h1", "tenant=t1", time.Time{})
		b.fleet(fourAHost, "t1/m1")
		b.settle(d)
		records, err := b.Store.Load(t.Context(), []string{"t1/m1"})
		must(t, err)
		r := records["t1/m1"]
		definition := model.Definition{UID: r.UID, Payload: r.Payload, PolicyName: "p", Labels: map[string]string{"tenant": "t2"}}
		decision, _, err := r.Put(definition, r.Policy, true, b.now())
		must(t, err)
		b.Commit(b.now(), r.Decide(decision, b.now()))
		b.settle(d)
		failIf(t, b.Attempt("t1/m1") == "", "the model is in %v", b.sets("t1/m1"))
	})
}

func TestNothingIsParkedByAHoldThatWasReleasedMeanwhile(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		d := b.dispatcher(b.Store, dispatcher.Config{Owner: "a"})
		b.put("m1")
		b.hold("h1", "", time.Time{})
		once := true
		before := &interrupted{Store: b.Store, before: func() {
			if !once {
				return
			}
			once = false
			b.release("h1", 0)
			due, err := b.Store.ReadDue(t.Context(), store.DueRequest{Limit: 10, Owner: "a", Lease: time.Second})
			failIf(t, err != nil || len(due.Rechecks) != 1, "another dispatcher reads %+v, %v", due, err) // and finds that nobody waits for it
			if err := flow.Of(b.Store).NoteBlockerChecks(t.Context(), []flow.BlockerCheck{{Blocker: "hold:h1", Again: due.Now}}, due.Alone); err != nil {
				t.Error(err)
			}
		}}
		b.round(b.dispatcher(before, dispatcher.Config{Owner: "first"}))
		b.settle(d)
		failIf(t, b.Attempt("m1") == "" || len(b.Scores(b.Store.Keys.Blockers)) > 0,
			"the model is in %v, the blockers are %v", b.sets("m1"), b.Scores(b.Store.Keys.Blockers))
	})
}

func TestWhatWaitsForItsTurnBehindAHoldDoesNotCountTowardsTheGiveUpWindow(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.saveOne(`{"timeout":"1m","retries":["1m","1m","1m"],"give_up_after":"30m","on_exhausted":"give_up"}`, "")
		b.round(d)
		b.failWith(policy.Failure{Reason: "HTTP 500"}, "tbl_1")
		b.hold("h1", "", time.Time{})
		b.Clock.Turn(time.Minute)
		b.settle(d)
		b.release("h1", time.Hour)
		b.settle(d)
		hash := b.Model("tbl_1")
		at, _ := time.Parse(time.RFC3339, hash["refresh_at"])
		since, _ := time.Parse(time.RFC3339, hash["trying_since"])
		waits := at.Sub(b.now())
		failIf(t, waits <= 0 || !since.Equal(fixture.Start.Add(waits)), "it waits %s, and the window counts from %s", waits, since)
	})
}
