package worker

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

func TestAnAttemptIsToldAsStartedAndThenAsASuccess(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, _ *bench) {
		seen := make(chan *Attempt, 1)
		run(t, r, quick(), func(_ context.Context, attempt *Attempt) error {
			seen <- attempt
			if attempt.UID == "same" {
				attempt.Unchanged()
			}
			return nil
		})
		r.offer("m")
		a := check.Await(t, seen, "the attempt")
		failIf(t, a.UID != "m" || a.AttemptUID != "m-1" || a.AttemptNo != 2 || a.DeadlineAt.IsZero() || string(a.Payload) != `{"input_url":"http://x/"}`,
			"the handler got %+v with payload %s", a, a.Payload)
		want := []model.Message{
			{Type: model.MessageStarted, UID: "m", AttemptUID: "m-1", Worker: "w1"},
			{Type: model.MessageSuccess, UID: "m", AttemptUID: "m-1"},
		}
		equal(t, want, []model.Message{r.told(), r.told()}, whole)
		r.offer("same")
		m := r.toldOf(model.MessageSuccess)
		failIf(t, m.Changed == nil || *m.Changed, "changed: %v, want false", m.Changed)
	})
}

func TestAnEntryThatComesWhileThePoolWaitsIsTaken(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		r.block = true
		run(t, r, quick(), b.handle)
		for _, uid := range []string{"a", "b", "c"} {
			r.offer(uid)
			check.Await(t, b.began, "the attempt of "+uid)
			b.result <- nil
			m := r.toldOf(model.MessageSuccess)
			failIf(t, m.UID != uid, "success of %s, want %s", m.UID, uid)
		}
	})
}

func TestAPanicIsAFailureAndThePoolLivesOn(t *testing.T) {
	for name, leave := range map[string]func(){
		"panic":  func() { panic("boom") },
		"nil":    func() { var a *Attempt; _ = a.UID },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, testkit.Miniredis(t))
			config := quick()
			config.Concurrency = 1
			run(t, r, config, func(_ context.Context, attempt *Attempt) error {
				if attempt.UID == "bad" {
					leave()
				}
				return nil
			})
			r.offer("bad", "good")
			m := r.toldOf(model.MessageFailure)
			failIf(t, m.UID != "bad" || m.ErrorType != "panic" || m.Reason == "", "failure: %+v, want error_type panic and a reason", m)
			m = r.toldOf(model.MessageSuccess)
			failIf(t, m.UID != "good", "success: %+v, want that of good", m)
		})
	}
}

func TestAnEntryThatCannotBeReadIsDroppedAlone(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, _ *bench) {
		r.queue("", "{", "null", "[]", `{"big_table_uid":"m"}`, `{"refresh_attempt_uid":"a"}`, `{"big_table_uid":7,"refresh_attempt_uid":"a"}`)
		r.offer("m")
		p := run(t, r, quick(), func(context.Context, *Attempt) error { return nil })
		m := r.toldOf(model.MessageSuccess)
		failIf(t, m.UID != "m", "success: %+v, want that of m", m)
		r.must(p.stop())
		s := p.Stats()
		failIf(t, s.Unreadable != 7 || s.Taken != 8 || s.Succeeded != 1, "counters: %+v, want 8 taken, 7 unreadable, 1 succeeded", s)
	})
}

func TestNoMoreIsTakenThanThereAreFreeSlots(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		r.offer("a", "b", "c", "d", "e")
		config := quick()
		config.Concurrency = 2
		run(t, r, config, b.handle)
		for in := 2; in <= 5; in++ {
			if in == 2 {
				check.Await(t, b.began, "the first attempt")
			}
			check.Await(t, b.began, "the next attempt")
			left := r.redis.LLen(t.Context(), r.Keys.Input).Val()
			stopIf(t, left != int64(5-in), "%d entries left in the list while %d were begun, want %d", left, in, 5-in)
			b.result <- nil
			r.toldOf(model.MessageSuccess)
		}
		b.result <- nil
	})
}

func TestWhatWasSupersededInLineIsNotWorkedOnAndWhatIsPastItsDeadlineIsHandedBack(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		r.offer("old")
		r.set("old", "attempt_uid", "newer")
		r.offerUntil("late", 0)
		r.offer("m")
		config := quick()
		config.FenceEvery = time.Minute // so long a look in line may last; one that fails lets the work begin
		p := run(t, r, config, b.handle)
		a := check.Await(t, b.began, "the attempt")
		failIf(t, a.UID != "m", "worked on %s", a.UID)
		m := r.toldOf(model.MessageInterrupted)
		failIf(t, m.UID != "late", "told %+v, want that late is interrupted", m)
		b.result <- nil
		r.toldOf(model.MessageSuccess)
		r.must(p.stop())
		s := p.Stats()
		failIf(t, s.Stale != 1, "counters: %+v, want 1 stale", s)
	})
}

func TestWithoutAnyDeadlineWorkIsNotEnded(t *testing.T) {
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	r.set("m", "attempt_uid", "m-1")
	r.queue(`{"big_table_uid":"m","refresh_attempt_uid":"m-1"}`)
	checks := make(chan struct{}, 1000)
	run(t, counting(r, checks), quick(), b.handle)
	check.Await(t, b.began, "the attempt")
	for range 5 {
		check.Await(t, checks, "a look at the fences")
	}
	b.result <- nil
	r.toldOf(model.MessageSuccess)
}

func TestHoweverOftenPoolsStopEveryAttemptIsToldOnce(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, _ *bench) {
		config := quick()
		config.Grace = -1
		var uids []string
		for i := range long.Or(60, 200) {
			uid := "m" + string(rune('0'+i/100)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10))
			uids = append(uids, uid)
			r.offer(uid)
		}
		for range long.Or(12, 40) {
			began := make(chan struct{}, 300)
			p := run(t, r, config, func(ctx context.Context, attempt *Attempt) error {
				began <- struct{}{}
				attempt.Status("busy", -1)
				if len(attempt.UID)%2 == 1 {
					return errors.New("odd")
				}
				return ctx.Err()
			})
			if r.redis.LLen(t.Context(), r.Keys.Input).Val() > 0 {
				check.Await(t, began, "an attempt")
			}
			r.must(p.stop())
		}
		var told []string
		for _, m := range r.left() {
			if m.Type != model.MessageStarted && m.Type != model.MessageStatus {
				told = append(told, m.UID)
			}
		}
		slices.Sort(told)
		left := r.redis.LLen(t.Context(), r.Keys.Input).Val()
		got, want := int64(len(told))+left, int64(len(uids))
		failIf(t, got != want || len(slices.Compact(told)) != len(told), "%d told and %d left of %d", len(told), left, want)
	})
}

func TestAPoolMayRunTwiceAtTheSameTimeAndAgain(t *testing.T) {
	r := newFixture(t, testkit.Miniredis(t))
	pool, err := New(r, func(context.Context, *Attempt) error { return nil }, quick())
	r.must(err)
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- pool.Run(ctx) }()
		go func() { ended <- pool.Run(ctx) }()
		r.offer("a", "b")
		r.toldOf(model.MessageSuccess)
		r.toldOf(model.MessageSuccess)
		cancel()
		r.must(errors.Join(check.Await(t, ended, "the end of Run"), check.Await(t, ended, "the end of the other Run")))
	}
}

func TestAPoolIsRefusedWithoutQueueOrHandler(t *testing.T) {
	for _, queues := range [][]Queue{nil, {}, {nil}} {
		_, err := NewForParts(queues, func(context.Context, *Attempt) error { return nil }, Config{})
		failIf(t, err == nil, "%v: want a refusal", queues)
	}
	_, err := New(&faulty{}, nil, Config{})
	failIf(t, err == nil, "no handler: expected an error")
}

func TestTheLogOfAPoolHasNoSecretOfItsWork(t *testing.T) {
	r, lines := newFixture(t, testkit.Miniredis(t)), make(check.Lines, 100)
	log, config := zerolog.New(lines), quick()
	config.Log = &log
	p := run(t, r, config, func(context.Context, *Attempt) error { return errors.New("mysql://root:hunter2@db refused") })
	r.offer("m")
	r.toldOf(model.MessageFailure)
	r.must(p.stop())
	for line := ""; !strings.Contains(line, "attempt ended"); {
		line = check.Await(t, lines, "the end of the attempt in the log")
		failIf(t, strings.Contains(line, "hunter2"), "expected no secret, found %s", line)
	}
}

func TestWhatOwnersAreNotToldStandsInTheLog(t *testing.T) {
	r, lines := newFixture(t, testkit.Miniredis(t)), make(check.Lines, 100)
	log, config := zerolog.New(lines).Level(zerolog.InfoLevel), quick()
	config.Log = &log
	p := run(t, r, config, func(context.Context, *Attempt) error {
		return Reason(errors.New("lookup db.internal: no such host"), "the host cannot be reached")
	})
	r.offer("m")
	m := r.toldOf(model.MessageFailure)
	r.must(p.stop())
	line := check.Await(t, lines, "a line of the log")
	failIf(t, m.Reason != "the host cannot be reached" || !strings.Contains(line, "lookup db.internal: no such host") || !strings.Contains(line, `"uid":"m"`),
		"told %s, logged %s", m.Reason, line)
}
