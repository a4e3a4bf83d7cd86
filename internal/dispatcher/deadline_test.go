package dispatcher_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func TestAPassedDeadlineIsAFailureByTimeout(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.put("tbl_1")
		b.round(d)
		b.Take()
		b.Clock.Turn(59999 * time.Millisecond)
		round := b.round(d)
		failIf(t, round.TimedOut != 0 || round.Sleep != time.Millisecond, "one millisecond early: want a sleep of 1ms, got %+v", round)
		b.Clock.Turn(time.Millisecond)
		round = b.round(d)
		failIf(t, round.TimedOut != 1, "want 1 timeout, got %+v", round)
		hash := b.Model("tbl_1")
		if hash["refresh_at"] != "2026-11-21T07:01:30.000Z" || hash["refresh_why"] != "retry 1 of 1 after 30s" || hash["attempt_no"] != "1" || hash["attempt_uid"] != "" {
			t.Errorf("want retry 1 of 1 at 07:01:30, got %v", hash)
		}
	})
}

func TestASilentWorkerIsFoundBeforeItsDeadlineAndOneThatAnnouncedNothingIsNot(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.saveOne(`{"timeout":"1h","silent_after":"2m","retries":["5m"]}`, "")
		b.round(d)
		b.Take()
		says := func(message model.Message) {
			b.decide(func(r *store.Record, now time.Time) model.Decision {
				message.AttemptUID = r.AttemptUID
				return decided(r.Handle(message, now))
			}, "tbl_1")
		}
		says(model.Message{Type: model.MessageStarted})
		b.Clock.Turn(5 * time.Minute)
		failIf(t, b.round(d).TimedOut != 0, "it has announced nothing")
		says(model.Message{Type: model.MessageStarted, SignsEvery: 30 * time.Second})
		b.Clock.Turn(time.Minute)
		says(model.Message{Type: model.MessageStatus})
		b.Clock.Turn(2*time.Minute - time.Millisecond)
		round := b.round(d)
		failIf(t, round.TimedOut != 0 || round.Sleep != time.Millisecond, "one millisecond early: want a sleep of 1ms, got %+v", round)
		b.Clock.Turn(time.Millisecond)
		round = b.round(d)
		hash, history := b.Model("tbl_1"), b.List(b.Store.Keys.History("tbl_1"))
		failIf(t, round.TimedOut != 1 || hash["attempt_uid"] != "" || !strings.Contains(history[0], `"reason":"silent for 2m","type":"silent"`),
			"want it to have failed as silent, got %+v, %v, %v", round, hash, history)
	})
}

func TestAScoreThatIsTooEarlyOrTooLateForASilentWorkerIsMended(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.saveOne(`{"timeout":"1h","silent_after":"2m","retries":["5m"]}`, "")
		b.round(d)
		b.Take()
		b.decide(func(r *store.Record, now time.Time) model.Decision {
			return decided(r.Handle(model.Message{Type: model.MessageStarted, AttemptUID: r.AttemptUID, SignsEvery: time.Second}, now))
		}, "tbl_1")
		running := b.Store.Keys.Running
		want := b.Redis.ZScore(t.Context(), running, "tbl_1").Val()
		must(t, b.Redis.ZAdd(t.Context(), running, redis.Z{Score: 1, Member: "tbl_1"}).Err())
		b.round(d)
		got := b.Redis.ZScore(t.Context(), running, "tbl_1").Val()
		failIf(t, got != want || b.Model("tbl_1")["attempt_uid"] == "", "want the score %v again, got %v", want, got)
	})
}

func TestAnAttemptThatNobodyTookIsWithdrawnAndNotCounted(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.put("tbl_1")
		b.round(d)
		const timeouts = 200
		for range timeouts {
			b.Clock.Turn(time.Minute)
			b.round(d) // withdrawn
			b.round(d) // started again
		}
		hash := b.Model("tbl_1")
		failIf(t, hash["attempt_no"] != "1" || hash["refresh_disabled_until_update"] != "" || hash["failing_since"] != "",
			"want the first attempt of a healthy model, got %v", hash)
		if stats := b.Stats(); stats["withdrawn"] != timeouts || stats["timeout"] != 0 || stats["retry"] != 0 {
			t.Errorf("want %d withdrawn and nothing counted, got %v", timeouts, stats)
		}
		entries := b.List(b.Store.Keys.Input)
		failIf(t, len(entries) != 1 || !strings.Contains(entries[0], hash["attempt_uid"]), "want one entry of the current attempt, got %v", entries)
	})
}

func TestAnAttemptTakenInTheLastMomentIsNotWithdrawn(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		b.Clock.Turn(time.Minute)
		d := b.dispatcher(&taking{b.Store, func() { b.Take() }}, dispatcher.Config{})
		round := b.round(d)
		failIf(t, round.Taken != 1 || round.TimedOut+round.Withdrawn != 0, "want 1 taken, got %+v", round)
	})
}

func TestAnAttemptOfADeadWorkerTimesOutAtItsDeadline(t *testing.T) {
	never := func(*bundle) {}
	inTime := func(b *bundle) {
		b.Clock.Turn(workerLease)
		must(b.t, check.Only(b.Store.RequeueExpired(b.t.Context(), b.now(), b.now(), workerLease)))
	}
	tooLate := func(b *bundle) {
		b.Clock.Turn(time.Hour)
		inTime(b)
	}
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		for name, test := range map[string]struct {
			begun                 bool
			requeue               func(*bundle)
			wantTimeout, wantBack int
		}{
			"nobody looked":                      {true, never, 1, 0},
			"nobody looked, not begun":           {false, never, 1, 0},
			"requeued in time":                   {true, inTime, 0, 1}, // there nobody has begun it
			"requeued in time, never begun":      {false, inTime, 0, 1},
			"requeued too late":                  {true, tooLate, 1, 0},
			"requeued too late, not yet applied": {false, tooLate, 1, 0},
		} {
			t.Run(name, func(t *testing.T) {
				server.Flush(t)
				b := setup(t, server)
				d := b.takenByADeadWorker()
				if test.begun {
					b.decide(func(r *store.Record, now time.Time) model.Decision { return decided(r.Begin(now, "dead")) }, "tbl_1")
				}
				test.requeue(b)
				b.Clock.Turn(time.Hour)
				if round := b.round(d); round.TimedOut != test.wantTimeout || round.Withdrawn != test.wantBack {
					t.Errorf("want %d timeouts and %d withdrawn, got %+v", test.wantTimeout, test.wantBack, round)
				}
				left := b.List(b.Store.Keys.Input)
				failIf(t, len(left) > 0, "want its entry gone, got %v", left)
			})
		}
	})
}

// takenByADeadWorker starts an attempt that a worker takes and does nothing with.
func (b *bundle) takenByADeadWorker() *dispatcher.Dispatcher {
	b.t.Helper()
	b.put("tbl_1")
	d := b.dispatcher(b.Store, dispatcher.Config{})
	b.round(d)
	b.takeAs("dead")
	return d
}

// taking is a store in which a worker takes everything between the look at a model and the decision about it.
type taking struct {
	dispatcher.Store
	take func()
}

func (s *taking) Load(ctx context.Context, uids []string) (map[string]*store.Record, error) {
	records, err := s.Store.Load(ctx, uids)
	s.take()
	return records, err
}

// The set may be behind the hash when a person has moved a deadline by hand.
func TestADeadlineThatWasMovedByHandIsKept(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.put("tbl_1")
		b.round(d)
		b.Redis.HSet(t.Context(), b.Store.Keys.Model("tbl_1"), "deadline_at", "2026-11-21T07:05:00.000Z")
		b.Clock.Turn(time.Minute)
		round := b.round(d)
		failIf(t, round.Withdrawn+round.TimedOut != 0, "want the attempt left alone, got %+v", round)
		b.Clock.Turn(4 * time.Minute)
		round = b.round(d)
		failIf(t, round.Withdrawn != 1, "want it withdrawn at the new deadline, got %+v", round)
	})
}

// changing is a store whose circuit of the queue changes from one measurement to the next, as a test sets it.
type changing struct {
	fixture.Part
	changes []flow.CircuitChange
}

func (s *changing) MeasureCircuit(context.Context, time.Time) (flow.CircuitChange, error) {
	change := s.changes[0]
	s.changes = s.changes[1:]
	return change, nil
}

func TestTheCircuitOfTheQueueIsMeasuredOnceASecondAndItsChangesAreTold(t *testing.T) {
	b := setup(t, testkit.Miniredis(t))
	var text bytes.Buffer
	log := zerolog.New(&text)
	store := &changing{fixture.Whole(b.Store), []flow.CircuitChange{flow.CircuitUnchanged, flow.CircuitOpened, flow.CircuitClosed}}
	d := b.dispatcher(store, dispatcher.Config{Log: &log})
	for _, want := range []string{"", "error the circuit of the queue is open: too", "info the circuit of the queue is closed: attempts"} {
		for range 2 { // the second is within the second
			b.round(d)
		}
		level, words, _ := strings.Cut(want, " ")
		got := text.String()
		failIf(t, !strings.Contains(got, words) || !strings.Contains(got, level) || want == "" && got != "", "want %q told, got %q", want, got)
		text.Reset()
		b.Clock.Turn(time.Second)
	}
	failIf(t, len(store.changes) != 0, "want three measurements, %d are left", len(store.changes))
}

// emptyAtFirst is a store in which the input list was empty when the round began: the attempt that is there now, and has
// expired already, was started since by a dispatcher that had paused between its decision and the write.
type emptyAtFirst struct{ *store.Store }

func (s emptyAtFirst) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	due, err := s.Store.ReadDue(ctx, asked)
	due.Queued = 0
	return due, err
}

func TestAnAttemptQueuedAndExpiredWithinARoundIsWithdrawn(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		b.Clock.Turn(time.Minute)
		round := b.round(b.dispatcher(emptyAtFirst{b.Store}, dispatcher.Config{}))
		failIf(t, round.TimedOut != 0 || round.Withdrawn != 1, "want 1 withdrawn, got %+v", round)
	})
}

// A worker takes an attempt, its model is saved anew meanwhile, and the worker returns the entry as it was: nobody began it, so nothing failed.
func TestAnAttemptThatWasReturnedAfterAnUpdateIsWithdrawn(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.put("tbl_1")
		b.round(d)
		entry := b.Redis.LPop(t.Context(), b.Store.Keys.Input).Val()
		b.decide(func(r *store.Record, now time.Time) model.Decision {
			r.Taken = true
			definition := model.Definition{UID: r.UID, Payload: `{"input_url":"http://new"}`, PolicyName: r.PolicyName}
			decision, _, err := r.Put(definition, r.Policy, true, now)
			must(t, err)
			return decision
		}, "tbl_1")
		b.Redis.RPush(t.Context(), b.Store.Keys.Input, entry)
		b.Clock.Turn(time.Minute)
		round := b.round(d)
		failIf(t, round.TimedOut != 0 || round.Withdrawn != 1, "want 1 withdrawn, got %+v", round)
		entries := b.List(b.Store.Keys.Input)
		failIf(t, len(entries) != 0, "want the entry taken back, got %q", entries)
	})
}

// jumps back, each from the same instant.
var jumps = []time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour}

func TestWhileTheClockIsBehindNothingIsStartedBeforeItsTime(t *testing.T) {
	for _, back := range jumps {
		t.Run(back.String(), func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
				b.saveOne(`{"timeout":"1m"}`, "FREQ=HOURLY")
				b.expect(dispatcher.Round{}, b.round(d), "refresh_at 2026-11-21T08:00:00.000Z")
				for _, clock := range []time.Time{at(t, "08:00:00").Add(-back), at(t, "07:59:59.999")} {
					b.Clock.Set(clock)
					b.expect(dispatcher.Round{}, b.round(d), "attempt_uid ", "refresh_at 2026-11-21T08:00:00.000Z")
				}
				b.Clock.Set(at(t, "08:00:00"))
				b.expect(dispatcher.Round{Started: 1}, b.round(d), "attempt_no 1")
			})
		})
	}
}

func TestWhileTheClockIsBehindADeadlineIsFurtherAwayAndAResultCounts(t *testing.T) {
	for _, back := range jumps {
		t.Run(back.String(), func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
				b.saveOne(`{"timeout":"1m","retries":["5m"]}`, "FREQ=HOURLY")
				b.Clock.Set(at(t, "08:00:00"))
				b.expect(dispatcher.Round{Started: 1}, b.round(d), "deadline_at 2026-11-21T08:01:00.000Z")
				b.Take()
				b.Clock.Turn(-back)
				b.expect(dispatcher.Round{}, b.round(d), "attempt_uid attempt-1", "deadline_at 2026-11-21T08:01:00.000Z")
				b.decide(func(r *store.Record, now time.Time) model.Decision { return r.Succeed(now, nil) }, "tbl_1")
				// The occurrence that was just refreshed lies ahead again, and is refreshed once more.
				b.expect(dispatcher.Round{}, b.round(d), "attempt_uid ", "refresh_at 2026-11-21T08:00:00.000Z")
				b.Clock.Set(at(t, "08:00:00"))
				b.expect(dispatcher.Round{Started: 1}, b.round(d), "attempt_no 1")
				b.Clock.Set(at(t, "08:01:00"))
				b.Take()
				b.expect(dispatcher.Round{TimedOut: 1}, b.round(d))
			})
		})
	}
}

// slow is a store on which something happens after the input list was looked through.
type slow struct {
	*store.Store
	after func()
}

func (s slow) Queued(ctx context.Context) (map[string]string, error) {
	queued, err := s.Store.Queued(ctx)
	s.after()
	return queued, err
}

func TestAnAttemptThatWasStartedAfterTheListWasLookedThroughIsNotLostThoughTheClockWasSetBack(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.saveOne(`{"timeout":"1m","retries":["0s"]}`, "FREQ=HOURLY")
		b.Clock.Set(at(t, "08:00:00"))
		other := b.dispatcher(b.Store, dispatcher.Config{})
		b.expect(dispatcher.Round{Started: 1}, b.round(other))
		b.Take()
		b.Clock.Set(at(t, "09:30:00"))
		d := b.dispatcher(slow{b.Store, func() {
			b.Clock.Set(at(t, "08:00:30"))
			b.failWith(policy.Failure{Reason: "HTTP 500"}, "tbl_1")
			b.expect(dispatcher.Round{Started: 1}, b.round(other), "attempt_uid attempt-2", "deadline_at 2026-11-21T08:01:30.000Z")
		}}, dispatcher.Config{})
		round := b.round(d)
		failIf(t, round.TimedOut != 0, "want no attempt timed out, got %+v", round)
		b.expect(dispatcher.Round{Queued: 1, Sleep: 250 * time.Millisecond}, b.round(d), "attempt_uid attempt-2")
	})
}
