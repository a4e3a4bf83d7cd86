package model

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

func withOpenCircuit(t *testing.T, definition, steps string) *story {
	t.Helper()
	s := tell(t, definition, "")
	s.m.QueueCircuit = QueueCircuit{On: true, Open: true}
	return s.then(steps)
}

func TestAnOpenCircuitOfTheQueueDisablesNobody(t *testing.T) {
	exhausted := banner + `,"refresh":"now"`
	for _, definition := range []string{
		exhausted, // after the last retry
		`"policy":{"timeout":"1m","retries":[0],"never_retry":["Gone"]}`,     // by its class
		`"policy":{"timeout":"1m","give_up_after":"1s","retries":[0,0,0,0]}`, // by its window
	} {
		s := withOpenCircuit(t, definition, "")
		now := monday
		for range 20 {
			now = now.Add(time.Hour)
			s.do(now, "start", "")
			s.do(now.Add(30*time.Second), "failure", `"error_type":"Gone"`)
			stopIf(t, s.decision.Final || s.m.Disabled || s.decision.Notice != policy.NoticeNone, "%s: disabled while it is open: %s", definition, s)
			wait := s.m.RefreshAt.Sub(now.Add(30 * time.Second))
			stopIf(t, wait < heldDelay/2 || wait > heldDelay*3/2, "%s: tried again after %s, want about %s", definition, wait, heldDelay)
		}
	}
}

func TestTheFirstFailureAfterTheCircuitOfTheQueueHasClosedIsFinal(t *testing.T) {
	s := withOpenCircuit(t, banner, "00:00 start | 00:00:10 failure | 00:10 start | 00:10:10 failure | 00:20 start | 00:20:10 failure | 00:40 start | 00:40:10 failure")
	stopIf(t, s.decision.Final || !s.decision.Held || !s.decision.Exhausted || s.m.AttemptNo != 3,
		"want the fourth failure held and not counted, got %s", s)
	s.m.QueueCircuit.Open = false
	s.then("01:00 start | 01:00:10 failure")
	s.expect("#4 disabled (Cannot refresh after 4 attempts): disabled after 4 failures, no retry left")
}

func TestAnOpenCircuitOfTheQueueMakesRetriesRarer(t *testing.T) {
	s := withOpenCircuit(t, banner, "00:00 start | 00:00:10 failure")
	s.expect("#1, next 00:05:10: retry 1 of 3 after 5m")
	tell(t, banner, "00:00 start | 00:00:10 failure").expect("#1, next 00:00:10: retry 1 of 3 at once")
}

func TestACircuitOfTheQueueIsRefusedOutOfRange(t *testing.T) {
	for want, circuit := range map[string]QueueCircuit{
		"share: expected 5% to 100%, found 0":             {Window: time.Minute, Min: 1},
		"share: expected 5% to 100%, found 1.5":           {Share: 1.5, Window: time.Minute, Min: 1},
		"window: expected 10s to 1d, found 1s":            {Share: 1, Window: time.Second, Min: 1},
		"min: expected 1 to 1000000 attempts, found 0":    {Share: 1, Window: time.Minute},
		"min: expected 1 to 1000000 attempts, found -100": {Share: 1, Window: time.Minute, Min: -100},
	} {
		err := circuit.Validate()
		failIf(t, err == nil || err.Error() != want, "got %v, want %s", err, want)
	}
	err := DefaultQueueCircuit().Validate()
	failIf(t, err != nil, "the default: %v", err)
}

func TestAFailureThatTheCircuitOfTheQueueHoldsBackWaitsAsLongAsItsWorkerAskedAndForItsRetryWindow(t *testing.T) {
	const windowed = `"policy":{"timeout":"1m","retries":[],"on_exhausted":"give_up","retry_window":"FREQ=DAILY;BYHOUR=9"}`
	for _, test := range []struct {
		definition, failure string
		want                time.Time
	}{
		{banner, `"retryable":false,"retry_after":7200`, clock("02:01")}, {windowed, "", clock("09:00")},
	} {
		s := withOpenCircuit(t, test.definition, "00:00 start")
		s.do(clock("00:01"), "failure", test.failure)
		failIf(t, !s.decision.Held || !s.m.RefreshAt.Equal(test.want), "want it held until %s, got %s", test.want, s)
	}
}

func TestHeldFailuresDoNotComeBackTogether(t *testing.T) {
	seen := map[time.Time]bool{}
	for _, uid := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		m := Model{Policy: policy.Policy{Timeout: time.Minute, OnExhausted: policy.GiveUp}, QueueCircuit: QueueCircuit{Open: true}}
		s := State{AttemptNo: 1, AttemptUID: uid}
		seen[m.afterFailure(&s, policy.Failure{}, monday).at] = true
	}
	failIf(t, len(seen) < 7, "8 models come back at %d times", len(seen))
}

func TestAnOpenCircuitOfTheQueueLetsNoGiveUpWindowEnd(t *testing.T) {
	s := tell(t, atSixAnd16+`"policy":{"timeout":"1h","retries":[],"give_up_after":"8h"}`, "06:00 start | 06:10 failure")
	s.expect("#0, next 14:00: gives up then: no success for 8h")
	s.m.QueueCircuit = QueueCircuit{On: true, Open: true}
	decision := s.m.StartOrSkip(clock("14:00"), "a2")
	failIf(t, decision.Event != EventStart, "want a start while it is open, got %s", decision.Event)
	s.m.QueueCircuit.Open = false
	decision = s.m.StartOrSkip(clock("14:00"), "a2")
	failIf(t, decision.Event != EventGiveUp, "want the end of the window when it is closed, got %s", decision.Event)
}

func TestAFailureThatTheCircuitOfTheQueueHoldsBackWaitsAsLongAsItsWorkerAsked(t *testing.T) {
	s := withOpenCircuit(t, banner, "")
	s.do(monday, "start", "")
	s.do(monday.Add(time.Minute), "failure", `"retryable":false,"retry_after":7200`)
	want := monday.Add(time.Minute + 2*time.Hour)
	failIf(t, !s.decision.Held || !s.m.RefreshAt.Equal(want) || !s.m.NotBefore.Equal(want), "want it held until %s, got %s", want, s)
}

func TestAFailureThatTheCircuitOfTheQueueHoldsBackComesInsideItsRetryWindow(t *testing.T) {
	s := withOpenCircuit(t, `"policy":{"timeout":"1m","retries":[],"on_exhausted":"give_up","retry_window":"FREQ=DAILY;BYHOUR=9"}`, "")
	s.do(monday, "start", "")
	s.do(monday.Add(time.Minute), "failure", "")
	want := monday.Add(9 * time.Hour)
	failIf(t, !s.decision.Held || !s.m.RefreshAt.Equal(want), "want it held until %s, got %s", want, s)
}
