package worker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

func TestEveryErrorIsToldAsThePollerUnderstandsIt(t *testing.T) {
	yes, no := true, false
	boom := errors.New("boom")
	at := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	failure := func(f policy.Failure) model.Message { return model.Message{Type: model.MessageFailure, Failure: f} }
	postponed := func(d time.Duration) model.Message {
		return model.Message{Type: model.MessagePostponed, Failure: policy.Failure{RetryAfter: d}}
	}
	retryAt := failure(policy.Failure{Reason: "boom"})
	retryAt.RetryAt = at
	for name, c := range map[string]struct {
		err  error
		want model.Message
	}{
		"nil":                {nil, model.Message{Type: model.MessageSuccess}},
		"wrapped nil":        {NotRetryable(Retryable(RetryAfter(RetryAt(ErrorType(UserFriendly(nil, "x"), "x"), at), 1))), model.Message{Type: model.MessageSuccess}},
		"plain":              {boom, failure(policy.Failure{Reason: "boom"})},
		"not retryable":      {NotRetryable(boom), failure(policy.Failure{Reason: "boom", Retryable: &no})},
		"outer one wins":     {Retryable(NotRetryable(boom)), failure(policy.Failure{Reason: "boom", Retryable: &yes})},
		"retry after":        {RetryAfter(boom, 1500*time.Millisecond), failure(policy.Failure{Reason: "boom", RetryAfter: 1500 * time.Millisecond})},
		"retry after never":  {RetryAfter(boom, 1<<62), failure(policy.Failure{Reason: "boom", RetryAfter: 365 * 24 * time.Hour})},
		"retry after before": {RetryAfter(boom, -1), failure(policy.Failure{Reason: "boom"})},
		"retry at":           {RetryAt(boom, at), retryAt},
		"postpone":           {Postpone(time.Minute), postponed(time.Minute)},
		"postpone at once":   {Postpone(0), postponed(0)},
		"postpone wins":      {NotRetryable(fmt.Errorf("not now: %w", Postpone(time.Second))), postponed(time.Second)},
		"all":                {ErrorType(UserFriendly(RetryAfter(NotRetryable(fmt.Errorf("read: %w", boom)), time.Second), "It broke."), "Broken"), failure(policy.Failure{Reason: "read: boom", ErrorType: "Broken", UserFriendlyReason: "It broke.", Retryable: &no, RetryAfter: time.Second})},
		"inside a wrap":      {fmt.Errorf("outer: %w", NotRetryable(boom)), failure(policy.Failure{Reason: "outer: boom", Retryable: &no})},
		"joined":             {errors.Join(boom, ErrorType(errors.New("two"), "Two")), failure(policy.Failure{Reason: "boom\ntwo", ErrorType: "Two"})},
		"not text":           {errors.New("\xff\x00\""), failure(policy.Failure{Reason: "\ufffd\x00\""})},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Attempt{UID: "m", AttemptUID: "a1"}
			got, err := model.Wire{}.DecodeMessage([]byte(a.outcome(c.err).encode(model.Wire{})))
			must(t, err)
			c.want.UID, c.want.AttemptUID = "m", "a1"
			equal(t, c.want, got, whole)
		})
	}
}

func TestTheCauseOfAnErrorCanStillBeFound(t *testing.T) {
	boom := errors.New("boom")
	err := NotRetryable(RetryAfter(ErrorType(UserFriendly(boom, "x"), "x"), 1))
	failIf(t, !errors.Is(err, boom) || err.Error() != "boom", "got %q, which is not boom", err)
}

func TestLongTextsAreCutWithoutBreakingACharacter(t *testing.T) {
	a := &Attempt{UID: "m", AttemptUID: "a1"}
	got, err := model.Wire{}.DecodeMessage([]byte(a.outcome(errors.New(strings.Repeat("é", 5000))).encode(model.Wire{})))
	failIf(t, err != nil || len(got.Reason) > MaxText || !strings.HasSuffix(got.Reason, "é…"), "%d bytes, err %v", len(got.Reason), err)
}

func TestOfManyStatusesTheLastIsTold(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		config := quick()
		config.StatusEvery = time.Minute
		p := run(t, r, config, b.handle)
		r.offer("m")
		a := testkit.Await(t, b.began, "the attempt")
		a.Status("begun", 0)
		r.toldOf(model.MessageStatus)
		for i := range 1000 {
			a.Status(fmt.Sprintf("row %d", i), i/5)
		}
		b.result <- nil
		r.must(p.stop())
		a.Status("too late", 0)
		var said []string
		for _, m := range r.left() {
			if m.Type == model.MessageStatus {
				said = append(said, fmt.Sprintf("%s %d%%", m.Status, *m.Progress))
			}
		}
		equal(t, []string{"row 999 100%"}, said)
		all := kinds(r.left())
		failIf(t, all[len(all)-1] != model.MessageSuccess, "told %v, want the success last", all)
	})
}

func TestAStatusIsToldWhileTheWorkGoesOn(t *testing.T) {
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	run(t, r, quick(), b.handle)
	r.offer("m")
	a := testkit.Await(t, b.began, "the attempt")
	a.Status("first", -1)
	m := r.toldOf(model.MessageStatus)
	failIf(t, m.Status != "first" || m.Progress != nil, "told %+v, want first without progress", m)
	a.Status("second", 50)
	m = r.toldOf(model.MessageStatus)
	failIf(t, m.Status != "second" || *m.Progress != 50, "told %+v, want second at 50", m)
	b.result <- nil
}

func TestStatusesThatCannotBePushedDoNotPileUp(t *testing.T) {
	o := newSender(nil, newTakenList(), &Config{PushBatch: 10})
	for i := range 100 {
		o.add(message{Type: model.MessageStatus, AttemptUID: fmt.Sprint(i % 2), Status: fmt.Sprint(i)})
	}
	messages := o.take()
	failIf(t, len(messages) != 2 || messages[0].Status != "98" || messages[1].Status != "99", "waiting: %+v, want the last of each attempt", messages)
}

func TestAStatusOutsideAPoolGoesNowhere(*testing.T) {
	new(Attempt).Status("test of a handler", 1)
}

func TestARefusedPushKeepsTheSequence(t *testing.T) {
	var o *sender
	var pushed []string
	refusals := 1
	o = newSender(&faulty{Queue: nopQueue{}, push: func(_ string, answers []store.Answer) error {
		if refusals--; refusals >= 0 {
			o.add(message{Type: model.MessageSuccess, UID: "later"})
			return errBroken
		}
		for _, answer := range answers {
			pushed = append(pushed, answer.Message)
		}
		return nil
	}}, newTakenList(), &Config{PushBatch: 1, FlushTimeout: testkit.Limit, Backoff: 1, MaxBackoff: 1, Log: Config{}.WithDefaults().Log})
	o.add(message{Type: model.MessageSuccess, UID: "first"})
	o.add(message{Type: model.MessageSuccess, UID: "second"})
	o.drain(t.Context())
	for i, uid := range []string{"first", "second", "later"} {
		stopIf(t, i >= len(pushed) || !strings.Contains(pushed[i], uid), "pushed %q, want first, second, later", pushed)
	}
}

func TestAnAttemptThatHasEndedSaysNothingMore(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		var said []string
		s := &status{every: time.Hour, send: func(m message) { said = append(said, m.Status) }}
		s.say(message{Status: "first"})
		s.say(message{Status: "last"})
		s.end(wanted)
		s.end(true)
		s.say(message{Status: "too late"})
		s.tick()
		want := []string{"first"}
		if wanted {
			want = append(want, "last")
		}
		equal(t, want, said)
	}
}

func TestMessagesOfTwoNamesArePushedApart(t *testing.T) {
	var owners []string
	o := newSender(&faulty{Queue: nopQueue{}, push: func(owner string, _ []store.Answer) error {
		owners = append(owners, owner)
		return nil
	}}, newTakenList(), &Config{PushBatch: 10, FlushTimeout: testkit.Limit, Log: Config{}.WithDefaults().Log})
	for _, owner := range []string{"old", "old", "new", "old"} {
		o.add(message{Type: model.MessageSuccess, owner: owner})
	}
	o.drain(t.Context())
	equal(t, []string{"old", "new", "old"}, owners)
}
