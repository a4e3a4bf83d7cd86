package dispatcher_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// saveOne saves the model tbl_1 under a policy, with a rule or none. The clock shows seven.
func (b *bundle) saveOne(policy, rule string) {
	b.t.Helper()
	b.save(b.parse(policy), model.Definition{Payload: "{}", Rule: rule}, "tbl_1")
}

func (b *bundle) parse(text string) policy.Policy {
	b.t.Helper()
	var value any
	must(b.t, json.Unmarshal([]byte(text), &value))
	policy, err := policy.Parse(value)
	must(b.t, err)
	policy.Name = "p"
	return policy
}

// at is a time of day on the day of the story.
func at(t testing.TB, clock string) time.Time {
	t.Helper()
	instant, err := time.Parse("2006-01-02T15:04:05.999", "2026-11-21T"+clock)
	must(t, err)
	return instant
}

// rest is how long a dispatcher may sleep: until the next score, and no longer than a tick, or a quarter of one while attempts are queued.
func (b *bundle) rest(started int) time.Duration {
	b.t.Helper()
	rest := dispatcher.Config{}.WithDefaults().Tick
	if started > 0 {
		rest /= 4
	}
	for _, key := range []string{b.Store.Keys.Due, b.Store.Keys.Running} {
		for _, score := range b.Scores(key) {
			rest = min(rest, max(0, time.UnixMilli(score).Sub(b.now())))
		}
	}
	return rest
}

// expect compares the counts of a round, and some fields of the model, written "name value". A round is followed by another when
// something is due again. Entries that were in the input list before it are still there, unless they were withdrawn.
func (b *bundle) expect(want dispatcher.Round, got dispatcher.Round, fields ...string) {
	b.t.Helper()
	if want.Sleep == 0 {
		want.Sleep = b.rest(want.Started)
	}
	want.Queued = len(b.List(b.Store.Keys.Input)) - want.Started + want.Withdrawn
	equal(b.t, want, got)
	hash := b.Model("tbl_1")
	for _, field := range fields {
		name, value, _ := strings.Cut(field, " ")
		failIf(b.t, hash[name] != value, "%s: want %q, got %q", name, value, hash[name])
	}
}

func (b *bundle) last(stream string) map[string]any {
	b.t.Helper()
	entries, err := b.Redis.XRevRangeN(b.t.Context(), stream, "+", "-", 1).Result()
	stopIf(b.t, err != nil || len(entries) == 0, "want an entry in %s, got none (%v)", stream, err)
	return store.EntryFields(entries[0].Values)
}

func TestAModelWhoseGiveUpWindowEndsWhileItWaitsIsDisabledAtThatTimeWithoutAnAttempt(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.saveOne(`{"timeout":"1m","retries":["2h"],"give_up_after":"1h","on_exhausted":"give_up"}`, "")
		b.expect(dispatcher.Round{Started: 1}, b.round(d))
		b.Take()
		b.Clock.Turn(30 * time.Second)
		b.failWith(policy.Failure{Reason: "HTTP 500"}, "tbl_1")
		b.expect(dispatcher.Round{}, b.round(d), "refresh_at 2026-11-21T08:00:00.000Z", "refresh_why gives up then: no success for 1h")

		b.Clock.Set(at(t, "07:59:59.999"))
		round := b.round(d)
		b.expect(dispatcher.Round{}, round, "refresh_disabled_until_update ")
		failIf(t, round.Sleep != time.Millisecond, "want to wake in 1ms, got %s", round.Sleep)
		b.Clock.Set(at(t, "08:00:00"))
		b.expect(dispatcher.Round{GaveUp: 1}, b.round(d), "refresh_disabled_until_update 1", "refresh_at ", "attempt_uid ", "attempt_no 1",
			"refresh_why disabled, no success for 1h", "final_failure_at 2026-11-21T08:00:00.000Z")
		b.expect(dispatcher.Round{}, b.round(d))

		_, queued := b.Take()
		failIf(t, queued || b.Stats()["start"] != 1, "want no attempt at the end, got %v", b.Stats())
		reason := "Cannot refresh after 1 attempt: no success for 1h"
		journal := map[string]any{"uid": "tbl_1", "event": "give_up", "at": "2026-11-21T08:00:00.000Z", "final": "1",
			"refresh_at": "", "refresh_why": "disabled, no success for 1h", "final_failure_at": "2026-11-21T08:00:00.000Z",
			"refresh_for": "", "refresh_disabled_at": "2026-11-21T08:00:00.000Z", "refresh_disabled_by": "policy", "refresh_disabled_until_update": "1", "refresh_disabled_user_friendly_reason": reason}
		told := b.last(b.Store.Keys.Journal)
		delete(told, "rev")
		equal(t, journal, told)
		notice := map[string]any{"uid": "tbl_1", "event": "disabled", "at": "2026-11-21T08:00:00.000Z", "attempt_no": "1",
			"refresh_why": "disabled, no success for 1h", "reason": reason}
		equal(t, notice, b.last(b.Store.Keys.Outbox))
	})
}

func TestAnAttemptThatIsNotBegunInTimeIsOfferedAgainAndNotCounted(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.saveOne(`{"timeout":"10m","queue_timeout":"1m","retries":["5m"]}`, "")
		for minute := range 3 {
			b.expect(dispatcher.Round{Started: 1}, b.round(d), "attempt_no 1", "deadline_at "+model.FormatTime(fixture.Start.Add(time.Duration(minute+1)*time.Minute)))
			_, taken := b.Take()
			stopIf(t, !taken, "want an attempt to take")
			b.Clock.Turn(time.Minute - time.Millisecond)
			b.expect(dispatcher.Round{}, b.round(d))
			b.Clock.Turn(time.Millisecond)
			b.expect(dispatcher.Round{NotBegun: 1}, b.round(d), "attempt_no ", "attempt_uid ", "failing_since ", "refresh_why not begun in time: again")
		}
		if stats := b.Stats(); stats["queue_timeout"] != 3 || stats["timeout"]+stats["failure"]+stats["total_retries"] != 0 {
			t.Errorf("want 3 not begun and no failure, got %v", stats)
		}
	})
}

func TestAnAttemptWithoutDeadlineIsReplacedByThePlannedRefresh(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.saveOne(`{"timeout":"none","retries":["5m"],"on_exhausted":"next_planned"}`, "FREQ=HOURLY")
		for _, hour := range []struct{ at, before, deadline, no string }{
			{"08:00:00", "08:59:59.999", "09:00", "1"}, {"09:00:00", "09:59:59.999", "10:00", "2"}, {"10:00:00", "10:59:59.999", "11:00", "1"},
		} {
			b.Clock.Set(at(t, hour.at))
			if hour.at != "08:00:00" {
				b.expect(dispatcher.Round{TimedOut: 1}, b.round(d), "attempt_uid ", "refresh_at "+model.FormatTime(at(t, hour.at)))
			}
			b.expect(dispatcher.Round{Started: 1}, b.round(d), "attempt_no "+hour.no, "deadline_at 2026-11-21T"+hour.deadline+":00.000Z")
			b.Take()
			b.Clock.Set(at(t, hour.before))
			b.expect(dispatcher.Round{}, b.round(d), "attempt_no "+hour.no)
		}
	})
}

func TestAMissedPlannedRefreshThatIsNotMadeUpForWaitsForTheNext(t *testing.T) {
	for name, test := range map[string]struct {
		misfire, now string
		skipped      bool
		next, why    string
	}{
		"in time":                 {`"misfire":"skip",`, "08:00:00", false, "", ""},
		"a minute late":           {`"misfire":"skip",`, "08:01:00", false, "", ""},
		"missed":                  {`"misfire":"skip",`, "08:01:00.001", true, "2026-11-21T09:00:00.000Z", "skipped, late by 1m: waits for planned"},
		"three missed":            {`"misfire":"skip",`, "10:30:00", true, "2026-11-21T11:00:00.000Z", "skipped, late by 2h30m: waits for planned"},
		"young enough":            {`"misfire":"run_if_younger_than 30m",`, "08:30:00", false, "", ""},
		"not young enough":        {`"misfire":"run_if_younger_than 30m",`, "08:30:00.001", true, "2026-11-21T09:00:00.000Z", "skipped, late by 30m: waits for planned"},
		"run once, however late":  {`"misfire":"run_once",`, "22:30:00", false, "", ""},
		"run once, as by default": {"", "22:30:00", false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
				b.saveOne(`{`+test.misfire+`"timeout":"1m"}`, "FREQ=HOURLY")
				b.expect(dispatcher.Round{}, b.round(d), "refresh_at 2026-11-21T08:00:00.000Z")
				b.Clock.Set(at(t, test.now))
				if !test.skipped {
					b.expect(dispatcher.Round{Started: 1}, b.round(d), "attempt_no 1")
					return
				}
				b.expect(dispatcher.Round{Skipped: 1}, b.round(d), "attempt_no ", "attempt_uid ", "refresh_at "+test.next, "refresh_why "+test.why)
				if stats := b.Stats(); stats["skipped"] != 1 || stats["start"] != 0 || len(b.List(b.Store.Keys.Input)) != 0 {
					t.Errorf("want one skipped and none started, got %v", stats)
				}
				next, err := time.Parse(time.RFC3339, test.next)
				must(t, err)
				b.Clock.Set(next)
				b.expect(dispatcher.Round{Started: 1}, b.round(d), "attempt_no 1")
			})
		})
	}
}

func TestAMissedRetryRunsEvenWhereMissedPlannedRefreshesAreSkipped(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.saveOne(`{"timeout":"1m","retries":["5m"],"misfire":"skip"}`, "FREQ=HOURLY")
		b.Clock.Set(at(t, "08:00:00"))
		b.expect(dispatcher.Round{Started: 1}, b.round(d))
		b.Take()
		b.failWith(policy.Failure{Reason: "HTTP 500"}, "tbl_1")
		b.Clock.Set(at(t, "12:30:00"))
		b.expect(dispatcher.Round{Started: 1}, b.round(d), "attempt_no 2")
	})
}

func TestAnAttemptThatIsNeverBegunIsAFailureInTheEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.saveOne(`{"timeout":"10m","queue_timeout":"1m","retries":["5m"]}`, "")
		for range 11 {
			b.expect(dispatcher.Round{Started: 1}, b.round(d), "attempt_no 1")
			b.Take()
			b.Clock.Turn(time.Minute)
			b.expect(dispatcher.Round{NotBegun: 1}, b.round(d))
		}
		b.expect(dispatcher.Round{}, b.round(d), "attempt_no 1", "refresh_at 2026-11-21T07:16:00.000Z", "deferrals ")
		b.ExpectStats("want 10 not begun and one failure", map[string]int{"queue_timeout": 10, "failure": 1})
	})
}

func TestTheWordStartedInTimeMovesTheDeadline(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.saveOne(`{"timeout":"10m","queue_timeout":"1m","retries":["5m"]}`, "")
		b.expect(dispatcher.Round{Started: 1}, b.round(d), "deadline_at 2026-11-21T07:01:00.000Z")
		b.Take()
		b.Clock.Set(at(t, "07:00:30"))
		b.decide(func(r *store.Record, now time.Time) model.Decision { return decided(r.Begin(now, "w1")) }, "tbl_1")
		b.Clock.Set(at(t, "07:10:29.999"))
		b.expect(dispatcher.Round{}, b.round(d), "deadline_at 2026-11-21T07:10:30.000Z", "attempt_uid attempt-1")
		b.Clock.Set(at(t, "07:10:30"))
		b.expect(dispatcher.Round{TimedOut: 1}, b.round(d), "attempt_no 1", "refresh_at 2026-11-21T07:15:30.000Z")
	})
}

// promise is a policy under which models are late after an hour and stale after two.
const promise = `{"timeout":"10h","retries":["5h"],"on_exhausted":"give_up","fresh_within":"2h","warn_within":"1h"}`

// watch saves models that wait for nothing, under a policy.
func (b *bundle) watch(policy string, uids ...string) {
	b.t.Helper()
	b.save(b.parse(policy), model.Definition{Payload: "{}", Rule: "FREQ=YEARLY", Refresh: model.RefreshPlanned}, uids...)
}

// freshness has the index of a model and the fields of its hash.
func (b *bundle) freshness(uid string) string {
	b.t.Helper()
	text := b.Model(uid)["freshness"]
	for _, key := range []string{b.Store.Keys.StaleAt, b.Store.Keys.Late, b.Store.Keys.Stale} {
		if at, in := b.Scores(key)[uid]; in {
			text += fmt.Sprintf(" %s %s", key[len(b.Store.Keys.Queue)+1:], time.UnixMilli(at).Sub(fixture.Start))
		}
	}
	return text
}

func TestAModelGrowsOldWhateverItDoesAndEachStepIsToldOnce(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		d, other := b.dispatcher(b.Store, dispatcher.Config{Owner: "a"}), b.dispatcher(b.Store, dispatcher.Config{Owner: "b"})
		uids := []string{"idle", "running", "disabled", "parked"}
		b.watch(promise, uids...)
		b.decide(func(r *store.Record, now time.Time) model.Decision { return r.Start(now, "attempt-x") }, "running")
		b.decide(func(r *store.Record, now time.Time) model.Decision { return decided(r.Disable("no", "", now)) }, "disabled")
		b.decide(func(r *store.Record, now time.Time) model.Decision { return r.Park("hold:h1", model.Never, now) }, "parked")
		expect := func(want dispatcher.Round, freshness string) {
			t.Helper()
			rounds := []dispatcher.Round{b.round(d), b.round(other), b.round(d)}
			for i := range rounds {
				rounds[i].Queued, rounds[i].Sleep = 0, 0
			}
			equal(t, []dispatcher.Round{want, {}, {}}, rounds)
			for _, uid := range uids {
				got := b.freshness(uid)
				failIf(t, got != freshness, "%s: got %q, want %q", uid, got, freshness)
			}
		}
		b.Clock.Turn(time.Hour - time.Millisecond)
		expect(dispatcher.Round{}, "never stale_at 1h0m0s late "+model.Never.Sub(fixture.Start).String())
		b.Clock.Turn(time.Millisecond)
		expect(dispatcher.Round{Aged: 4}, "late stale_at 2h0m0s late 2h0m0s")
		b.Clock.Turn(time.Hour)
		expect(dispatcher.Round{Aged: 4}, "stale stale 2h0m0s")
		b.Clock.Turn(7 * time.Hour)
		expect(dispatcher.Round{}, "stale stale 2h0m0s")
		stats := b.Stats()
		failIf(t, stats["became_late"] != 4 || stats["became_stale"] != 4, "counted %v", stats)
		told := len(b.Redis.XRange(t.Context(), b.Store.Keys.Outbox, "-", "+").Val())
		failIf(t, told != 4, "the owners of four models were told %d times", told)
		b.decide(func(r *store.Record, now time.Time) model.Decision { return r.Succeed(now, new(false)) }, "running")
		got := b.freshness("running")
		failIf(t, got != "fresh stale_at 10h0m0s", "after a success without a change it is %q", got)
		_, late := b.Scores(b.Store.Keys.Stale)["idle"]
		failIf(t, !late, "the success of one made another fresh")
	})
}

func TestManyModelsGrowOldBatchByBatchAndNeedNoRoomInTheInputList(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		d := b.dispatcher(b.Store, dispatcher.Config{Batch: 7, MaxQueued: 1})
		var uids []string
		for i := range 20 {
			uids = append(uids, fmt.Sprintf("m%02d", i))
		}
		b.watch(promise, uids...)
		b.put("due", "later")
		b.round(d)
		b.Clock.Turn(59*time.Second + 59*time.Minute)
		b.round(d)
		b.Clock.Turn(time.Second)
		for aged := 0; aged < len(uids); {
			round := b.round(d)
			aged += round.Aged
			stopIf(t, round.Aged == 0 || round.Aged > 7, "want at most a batch, and some, got %+v", round)
		}
	})
}

func TestAModelThatStandsAmongThoseThatGrowOldByMistakeIsTakenOut(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.watch(promise, "watched")
		b.watch(`{"timeout":"1h"}`, "unwatched")
		for _, uid := range []string{"watched", "unwatched", "ghost"} {
			b.Redis.ZAdd(t.Context(), b.Store.Keys.StaleAt, redis.Z{Score: 1, Member: uid})
		}
		b.round(d)
		got := fmt.Sprint(b.Scores(b.Store.Keys.StaleAt))
		failIf(t, got != fmt.Sprintf("map[watched:%d]", fixture.Start.Add(time.Hour).UnixMilli()), "among those that grow old stand %s", got)
		failIf(t, b.Stats()["became_late"] != 0, "a wrong set has told something")
	})
}

func TestASleepingDispatcherWakesWhenAFreshnessChanges(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		d := b.dispatcher(b.Store, dispatcher.Config{Tick: time.Minute})
		b.watch(promise, "m1")
		b.Clock.Turn(time.Hour - 7*time.Second)
		round := b.round(d)
		failIf(t, round.Sleep != 7*time.Second, "it sleeps for %s, want 7s", round.Sleep)
	})
}

func TestARoundIsFollowedAtOnceWhereItMayHaveLeftSomethingOnly(t *testing.T) {
	const tick = time.Minute
	for name, test := range map[string]struct {
		prepare func(b *bundle)
		batch   int
		want    time.Duration
	}{
		"all started":         {func(b *bundle) { b.put("a", "b") }, 3, tick / 4},
		"a full page":         {func(b *bundle) { b.put("a", "b", "c") }, 3, 0},
		"one without a hash":  {func(b *bundle) { b.put("a"); b.spoil("ghost") }, 3, tick / 4},
		"one by mistake":      {func(b *bundle) { b.watch(promise, "later"); b.spoil("later") }, 3, 0},
		"a deadline soon":     {func(b *bundle) { b.saveOne(`{"timeout":"20ms","retries":["5m"]}`, "") }, 3, 20 * time.Millisecond},
		"a freshness soon":    {func(b *bundle) { b.saveOne(`{"timeout":"1h","retries":[],"fresh_within":"2s"}`, "") }, 3, 2 * time.Second},
		"a slot of a key":     {func(b *bundle) { b.fleet(fourAHost, uidsOf("t1", 5)...) }, 9, time.Second},
		"held, for how long?": {func(b *bundle) { b.put("a"); b.hold("h1", "uid=a", fixture.Start.Add(40*time.Millisecond)) }, 3, 40 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, _ *dispatcher.Dispatcher) {
				test.prepare(b)
				round := b.round(b.dispatcher(b.Store, dispatcher.Config{Batch: test.batch, Tick: tick}))
				failIf(t, round.Sleep != test.want, "want a sleep of %s, got %+v", test.want, round)
			})
		})
	}
}
