package dispatcher_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestOneBadModelDoesNotStopTheOthers(t *testing.T) {
	cases := map[string]func(b *bundle){
		"a uid without a model": func(b *bundle) {
			b.Redis.ZAdd(context.Background(), b.Store.Keys.Due, zscore("bad", fixture.Start))
		},
		"a key of another type": func(b *bundle) {
			b.spoil("bad")
			b.Redis.Set(context.Background(), b.Store.Keys.Model("bad"), "text", 0)
		},
		"a key of another type that runs": func(b *bundle) {
			b.Redis.ZAdd(context.Background(), b.Store.Keys.Running, zscore("bad", fixture.Start))
			b.Redis.Set(context.Background(), b.Store.Keys.Model("bad"), "text", 0)
		},
		"a key of another type that waits and runs": func(b *bundle) {
			b.spoil("bad")
			b.Redis.ZAdd(context.Background(), b.Store.Keys.Running, zscore("bad", fixture.Start))
			b.Redis.Set(context.Background(), b.Store.Keys.Model("bad"), "text", 0)
		},
		"a uid without a model that runs": func(b *bundle) {
			b.Redis.ZAdd(context.Background(), b.Store.Keys.Running, zscore("bad", fixture.Start))
		},
		"an idle model that runs": func(b *bundle) {
			b.put("bad")
			b.Redis.HSet(context.Background(), b.Store.Keys.Model("bad"), "refresh_disabled_until_update", "1")
			b.Redis.ZAdd(context.Background(), b.Store.Keys.Running, zscore("bad", fixture.Start))
		},
		"a score without a refresh": func(b *bundle) {
			b.put("bad")
			b.Redis.HDel(context.Background(), b.Store.Keys.Model("bad"), "refresh_at")
		},
		"a disabled model that waits": func(b *bundle) {
			b.put("bad")
			b.Redis.HSet(context.Background(), b.Store.Keys.Model("bad"), "refresh_disabled_until_update", "1")
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
				spoil(b)
				b.put("good")
				b.round(d)
				entry, ok := b.Take()
				failIf(t, !ok || entry.UID != "good", "want the good model started, got %v", entry)
				round := b.round(d)
				failIf(t, round.Sleep == 0, "want a dispatcher at rest after one round, got %+v", round)
				due, running := b.Scores(b.Store.Keys.Due), b.Scores(b.Store.Keys.Running)
				delete(running, "good")
				failIf(t, len(due)+len(running) != 0, "want the bad one out of both sets, got due %v and running %v", due, running)
			})
		})
	}
}

func (b *bundle) spoil(uid string) {
	b.Redis.ZAdd(context.Background(), b.Store.Keys.Due, zscore(uid, fixture.Start))
}

func TestAModelWithAnUnreadableTimeIsStartedInsteadOfLost(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		b.Redis.HSet(context.Background(), b.Store.Keys.Model("tbl_1"), "refresh_at", "soon")
		round := b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		failIf(t, round.Started != 1, "want it started, got %+v", round)
	})
}

// A fault of another field says nothing about the time, and a place in the due set that is wrong is no reason to start.
func TestAFaultyModelInAWrongPlaceOfTheDueSetIsNotStartedBeforeItsTime(t *testing.T) {
	for name, spoil := range map[string]func(b *bundle){
		"it is due later": func(b *bundle) {
			b.Redis.HSet(context.Background(), b.Store.Keys.Model("tbl_1"), "refresh_at", "2026-11-21T08:00:00.000Z")
		},
		"it has finished": func(b *bundle) {
			b.Redis.HDel(context.Background(), b.Store.Keys.Model("tbl_1"), "refresh_at")
		},
	} {
		for fault, add := range map[string]func(b *bundle){
			"no policy":     func(b *bundle) { b.Redis.Del(context.Background(), b.Store.Keys.Policies) },
			"another field": func(b *bundle) { b.Redis.HSet(context.Background(), b.Store.Keys.Model("tbl_1"), "attempt_no", "many") },
			"another time": func(b *bundle) {
				b.Redis.HSet(context.Background(), b.Store.Keys.Model("tbl_1"), "failing_since", "soon")
			},
			"a payload of another type": func(b *bundle) {
				b.Redis.Del(context.Background(), b.Store.Keys.Payload("tbl_1"))
				b.Redis.LPush(context.Background(), b.Store.Keys.Payload("tbl_1"), "x")
			},
		} {
			t.Run(name+", "+fault, func(t *testing.T) {
				both(t, func(t *testing.T, b *bundle) {
					b.put("tbl_1")
					spoil(b)
					add(b)
					round := b.round(b.dispatcher(b.Store, dispatcher.Config{}))
					failIf(t, round.Started != 0 || b.Attempt("tbl_1") != "" || b.Scores(b.Store.Keys.Due)["tbl_1"] == fixture.Start.UnixMilli(),
						"want it mended and not started, got %+v, %v, due %v", round, b.Model("tbl_1"), b.Scores(b.Store.Keys.Due))
				})
			})
		}
	}
}

func TestAStartThatWaitsForAKeyToBeSetRightKeepsTheDispatcherNotBusyAndComesThen(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		var log bytes.Buffer
		logger := zerolog.New(&log)
		d := b.dispatcher(b.Store, dispatcher.Config{Log: &logger})
		b.fleet(fourAHost, "t1/a", "t2/b")
		key := b.Store.Keys.Limit("host=t1")
		b.Redis.Set(t.Context(), key, "text", 0)
		round, err := d.RunOnce(t.Context())
		failIf(t, err != nil || round.Started != 1 || round.Blocked != 1, "want one started and one blocked, got %+v, %v", round, err)
		round, err = d.RunOnce(t.Context())
		failIf(t, err != nil || round.Blocked != 1 || round.Sleep == 0, "want the dispatcher to rest, got %+v, %v", round, err)
		told := key + " holds a string, expected a zset"
		failIf(t, !strings.Contains(log.String(), told), "want %q told, got %s", told, log.String())
		b.Redis.Del(t.Context(), key)
		round, err = d.RunOnce(t.Context())
		failIf(t, err != nil || round.Started != 1, "want it started, got %+v, %v", round, err)
	})
}

// A round with a failed call says so; the next rounds do the rest, and nothing twice.
func TestARoundOfWhichACallFailsIsToldAndTheNextRoundsDoTheRest(t *testing.T) {
	const policy = `{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":1}]}`
	for n := 1; ; n++ {
		b := setup(t, testkit.Miniredis(t))
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.fleet(policy, append(uidsOf("t1", 3), uidsOf("t2", 2)...)...)
		b.hold("h1", "tenant=t2", time.Time{})
		b.settle(d) // one of t1 runs, its others wait for its place; t2 is held
		b.finish(b.runs()["t1"]...)
		b.release("h1", 0)
		b.fleet(policy, uidsOf("t3", 2)...)
		b.spoil("bad")
		b.Redis.Set(t.Context(), b.Store.Keys.Model("bad"), "text", 0)
		fault := new(testkit.Fault)
		b.Intercept(fault)
		fault.Arm(n)
		_, err := d.RunOnce(t.Context())
		struck := fault.Struck()
		fault.Arm(0)
		stopIf(t, struck != (err != nil), "call %d: failed: %v, told: %v", n, struck, err)
		ran := 1
		for range 10 { // if a dispatcher has not rechecked all blockers, it goes on some seconds later
			for b.settle(d); len(b.runs()) > 0; b.settle(d) {
				for host, uids := range b.runs() {
					stopIf(t, len(uids) > 1, "call %d: expected one attempt of %s at a time, found %v", n, host, uids)
					ran++
					b.finish(uids...)
				}
			}
			b.Clock.Turn(time.Second)
		}
		failIf(t, ran != 7, "call %d: expected each of 7 models to run once, found %d runs", n, ran)
		if !struck {
			failIf(t, n < 6, "expected more calls than %d", n)
			return
		}
	}
}

func TestAModelWithAMissingPolicyRunsUnderTheDefaultPolicy(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		b.Redis.Del(context.Background(), b.Store.Keys.Policies)
		b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		got := b.Model("tbl_1")["deadline_at"]
		failIf(t, got != "2026-11-21T07:10:00.000Z", "want the default timeout of ten minutes, got %q", got)
	})
}
