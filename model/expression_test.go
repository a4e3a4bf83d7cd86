package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

func TestAnErrorOfThePolicyNeverLosesAModel(t *testing.T) {
	const bad = `"policy":{"timeout":"1m","retries":{"expr":"[1, 2][k]"}}`
	s := tell(t, bad, "00:00 wake | 00:00:30 failure")
	s.expect("#1, next 00:00:32: retry 1 +2s, none planned")
	s.then("00:00:32 wake | 00:00:40 failure")
	s.expect("#2, next 00:05:40: retry 2 +5m: policy_error, none planned")
	if want := "index out of range: 2 (array length is 2) (1:7)"; s.decision.PolicyError != want || s.decision.Final || s.decision.Exhausted {
		t.Errorf("policy error %q of %+v", s.decision.PolicyError, s.decision)
	}
	now := clock("00:05:40")
	for range 1000 {
		s.do(now, "wake", "")
		s.do(now.Add(time.Second), "failure", "")
		if s.decision.PolicyError == "" || s.m.Disabled || !s.m.RefreshAt.Equal(now.Add(5*time.Minute+time.Second)) {
			t.Fatalf("after %d failures: %s", s.m.AttemptNo, s)
		}
		now = s.m.RefreshAt
	}
	s.expect(fmt.Sprintf("#1002, next %s: retry 1002 +5m: policy_error, none planned", clockText(now)))
}

func TestAnErrorOfThePolicyIsJoinedWithTheSchedule(t *testing.T) {
	const bad = `"policy":{"timeout":"1m","retries":{"expr":"k % 0"},"give_up_after":"1d"}`
	runStories(t, []storyTest{
		{atSixteen + bad, "15:00 run | 15:00 wake | 15:30 failure", "#1, next 15:35: retry 1 +5m: policy_error, before planned"},
		{atSixteen + bad, "15:00 run | 15:00 wake | 15:58 failure", "#1, next 16:00: retry 1 +5m: policy_error, planned first: after"},
		{atSixteen + bad, "15:00 run | 15:00 wake | 15:00+1 failure", "#1 disabled (Cannot refresh after 1 attempt): final: no success for 1d"},
		{bad, "00:00 wake | 23:58 failure", "#1, next 00:00+1: gives up then: no success for 1d"},
	})
}

// A worker's reason has any length. An expression sees as much of it as the history keeps, which bounds the work.
func TestAnExpressionSeesNoMoreOfAReasonThanTheHistoryKeeps(t *testing.T) {
	p := policyOf(t, `{"retries":{"expr":"len(reason) * 1000 + len(error_type)"}}`)
	long := strings.Repeat("a", 1_000_000)
	if got, want := failOnce(p, "a1", policy.Failure{Reason: long, ErrorType: long}), 498_498*time.Second; got != want {
		t.Errorf("found %v, want %v", got, want) // 497 letters and the dots
	}
}
