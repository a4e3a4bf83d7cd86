package worker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
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
		a := check.Await(t, b.began, "the attempt")
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

func TestSignsOfLifeAreAnnouncedAndToldAtMostSoOftenAndOnlyWhenTheHandlerGivesOne(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		config := quick()
		config.SignsEvery = 90 * time.Second
		p := run(t, r, config, b.handle)
		r.offer("m", "hangs")
		alive := check.Await(t, b.began, "an attempt")
		check.Await(t, b.began, "the other attempt")
		for range 1000 {
			alive.Alive()
		}
		r.toldOf(model.MessageStatus)
		b.result <- nil
		b.result <- nil
		r.must(p.stop())
		alive.Alive()
		signs := 0
		for _, m := range r.left() {
			failIf(t, m.Type == model.MessageStarted && m.SignsEvery != config.SignsEvery, "told %+v, want signs announced every 90 seconds", m)
			if m.Type == model.MessageStatus {
				signs++
				failIf(t, m.AttemptUID != alive.AttemptUID || m.Status != "" || m.Progress != nil, "told %+v", m)
			}
		}
		failIf(t, signs > 1, "%d signs were told within a minute and a half", signs)
	})
}

func TestAStatusIsToldWhileTheWorkGoesOn(t *testing.T) {
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	run(t, r, quick(), b.handle)
	r.offer("m")
	a := check.Await(t, b.began, "the attempt")
	a.Status("first", -1)
	m := r.toldOf(model.MessageStatus)
	failIf(t, m.Status != "first" || m.Progress != nil, "told %+v, want first without progress", m)
	a.Status("second", 50)
	m = r.toldOf(model.MessageStatus)
	failIf(t, m.Status != "second" || *m.Progress != 50, "told %+v, want second at 50", m)
	b.result <- nil
}

func TestStatusesThatCannotBePushedDoNotPileUp(t *testing.T) {
	o := newSender(nil, newTakenList(""), &Config{PushBatch: 10})
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
	}}, newTakenList(""), &Config{PushBatch: 1, FlushTimeout: check.Limit, Backoff: 1, MaxBackoff: 1, Log: Config{}.WithDefaults().Log})
	o.add(message{Type: model.MessageSuccess, UID: "first"})
	o.add(message{Type: model.MessageSuccess, UID: "second"})
	o.drain(t.Context(), t.Context())
	for i, uid := range []string{"first", "second", "later"} {
		stopIf(t, i >= len(pushed) || !strings.Contains(pushed[i], uid), "pushed %q, want first, second, later", pushed)
	}
}

func TestAnAttemptThatHasEndedSaysNothingMore(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		var said []string
		s := &status{every: time.Hour, send: func(m message) { said = append(said, m.Status) }}
		s.report(message{Status: "first"})
		s.report(message{Status: "last"})
		s.end(wanted)
		s.end(true)
		s.report(message{Status: "too late"})
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
	}}, newTakenList(""), &Config{PushBatch: 10, FlushTimeout: check.Limit, Log: Config{}.WithDefaults().Log})
	for _, owner := range []string{"old", "old", "new", "old"} {
		o.add(message{Type: model.MessageSuccess, owner: owner})
	}
	o.drain(t.Context(), t.Context())
	equal(t, []string{"old", "new", "old"}, owners)
}

// TestThePayloadComesBackAsItWasPut also notices when the dispatcher begins to send a field that is not reserved.
func TestThePayloadComesBackAsItWasPut(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for _, payload := range []string{`{}`, `{"a":{"b":[1,2.50,null]},"input_url":"http://x/?a=1&b=<2>"}`} {
		m := &model.Model{UID: "tbl_1", Payload: payload, Policy: policy.Default()}
		a, err := decodeAttempt(m.Start(now, "a1").Message, model.Wire{})
		must(t, err)
		failIf(t, string(a.Payload) != payload, "payload %s, want %s", a.Payload, payload)
		failIf(t, a.UID != "tbl_1" || a.AttemptUID != "a1" || a.AttemptNo != 1 || !a.DeadlineAt.Equal(now.Add(10*time.Minute)) || !a.PlannedAt.IsZero(),
			"attempt: %+v", a)
	}
}

func TestAnEntryWithoutUidsIsRefusedWithAReason(t *testing.T) {
	for entry, want := range map[string]string{
		``: "entry: expected a JSON object",
		`{"big_table_uid":"m","refresh_attempt_uid":"a"} x`:                    "entry: expected a JSON object",
		`{"refresh_attempt_uid":"a"}`:                                          "big_table_uid: expected",
		`{"big_table_uid":"m","refresh_attempt_uid":""}`:                       "refresh_attempt_uid: expected",
		`{"big_table_uid":["m"],"refresh_attempt_uid":"a"}`:                    "big_table_uid: expected",
		`{"big_table_uid":"m","refresh_attempt_uid":"a","deadline_at":"soon"}`: "deadline_at: expected an RFC 3339 time",
		`{"big_table_uid":"m","refresh_attempt_uid":"a","attempt_no":"two"}`:   "attempt_no: expected",
	} {
		_, err := decodeAttempt(entry, model.Wire{})
		failIf(t, err == nil || !strings.HasPrefix(err.Error(), want), "%s: got %v, want %s…", entry, err, want)
	}
}

func FuzzDecodeAttempt(f *testing.F) {
	f.Add(`{"big_table_uid":"m","refresh_attempt_uid":"a","deadline_at":"2026-11-21T07:00:00Z","x":1}`)
	f.Fuzz(func(t *testing.T, entry string) {
		a, err := decodeAttempt(entry, model.Wire{})
		failIf(t, err == nil && (a.UID == "" || a.AttemptUID == "" || len(a.Payload) < 2 || a.Raw != entry), "accepted %q as %+v", entry, a)
	})
}

func TestTheDefaultsAreThoseOfTheDocumentationAndFitWhatIsSet(t *testing.T) {
	c := Config{Name: "w"}.WithDefaults()
	c.Log = nil
	equal(t, Config{
		Concurrency: 4, Name: "w", FenceEvery: time.Second, Lease: 5 * time.Second, Heartbeat: time.Second, StatusEvery: 250 * time.Millisecond, PushBatch: 500,
		Grace: 10 * time.Second, Linger: 5 * time.Second, FlushTimeout: 3 * time.Second, Backoff: 50 * time.Millisecond, MaxBackoff: time.Second,
	}, c)
	for _, c := range []Config{{}, {Backoff: time.Minute}, {MaxBackoff: time.Millisecond}, {Grace: -time.Hour}, {Heartbeat: time.Minute}, {Lease: time.Second}} {
		err := c.WithDefaults().Validate()
		failIf(t, err != nil, "%+v: %v", c, err)
	}
}

func TestAConfigOutOfRangeIsRefusedByName(t *testing.T) {
	for want, c := range map[string]Config{
		"concurrency: expected 1 to 10000, found -1":        {Concurrency: -1},
		"push batch: expected 1 to 10000, found 20000":      {PushBatch: 20000},
		"fence every: expected 10ms to 1m0s, found 1ms":     {FenceEvery: time.Millisecond},
		"heartbeat: expected 10ms to 1m0s, found 1ms":       {Heartbeat: time.Millisecond},
		"heartbeat: expected 10ms to 1m0s, found 5ms":       {Lease: 20 * time.Millisecond},
		"lease: expected 4s to 1h0m0s, found 3s":            {Lease: 3 * time.Second, Heartbeat: time.Second},
		"status every: expected 10ms to 1m0s, found -1s":    {StatusEvery: -time.Second},
		"grace: expected 0s to 1h0m0s, found 2h0m0s":        {Grace: 2 * time.Hour},
		"linger: expected 1ms to 1h0m0s, found 2h0m0s":      {Linger: 2 * time.Hour},
		"flush timeout: expected 1ms to 1h0m0s, found -1ns": {FlushTimeout: -1},
		"max backoff: expected 1ms to 1m0s, found 2m0s":     {MaxBackoff: 2 * time.Minute},
		"backoff: expected 1ms to 1s, found 2s":             {Backoff: 2 * time.Second, MaxBackoff: time.Second},
	} {
		err := c.WithDefaults().Validate()
		failIf(t, err == nil || !strings.Contains(err.Error(), want), "got %v, want %s", err, want)
	}
}
