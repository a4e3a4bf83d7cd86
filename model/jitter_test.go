package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// failOnce lets the first attempt of a one-shot fail at once, under a uid, and returns the delay of the retry.
func failOnce(policy policy.Policy, uid string, failure policy.Failure) time.Duration {
	m := Model{UID: "tbl_1", Policy: policy}
	m.State = m.Start(monday, uid).Next
	m.State = m.Fail(failure, monday).Next
	return m.RefreshAt.Sub(monday)
}

// 100 jobs that fail together are retried between T+48 s and T+72 s, and really over all of it.
func TestAHerdIsSpread(t *testing.T) {
	p := policyOf(t, `{"retries":{"strategy":"fixed","base":"60s"}}`)
	for _, herd := range []struct{ jobs, least, most int }{{100, 0, 14}, {24_000, 850, 1150}} {
		var hits [24]int
		for i := range herd.jobs {
			delay := failOnce(p, fmt.Sprintf("attempt-%d", i), policy.Failure{})
			if delay < 48*time.Second || delay > 72*time.Second {
				t.Fatalf("job %d is retried after %v", i, delay)
			}
			hits[min(int(delay/time.Second)-48, 23)]++
		}
		empty := 0
		for _, n := range hits {
			if n < herd.least || n > herd.most {
				t.Errorf("%d jobs fall unevenly into the seconds from T+48: %v", herd.jobs, hits)
				break
			}
			if n == 0 {
				empty++
			}
		}
		if empty > 3 {
			t.Errorf("%d jobs leave %d of 24 seconds empty: %v", herd.jobs, empty, hits)
		}
	}
}

func TestJitterIsDerivedFromTheAttempt(t *testing.T) {
	p := policyOf(t, `{"retries":["1h"],"jitter":0.2}`)
	seen := map[time.Duration]bool{}
	for i := range 100 {
		uid := fmt.Sprintf("a%d", i)
		delay := failOnce(p, uid, policy.Failure{})
		if again := failOnce(p, uid, policy.Failure{Reason: "another time"}); again != delay {
			t.Fatalf("attempt %s is retried after %v and after %v", uid, delay, again)
		}
		seen[delay] = true
	}
	if len(seen) < 99 {
		t.Errorf("100 attempts have %d different delays", len(seen))
	}
}

func TestJitterOfZeroIsZero(t *testing.T) {
	for _, retries := range []string{`[0]`, `{"expr":"0"}`, `{"by_age":["1d: 0"]}`} {
		if delay := failOnce(policyOf(t, `{"retries":`+retries+`,"jitter":1}`), "a1", policy.Failure{}); delay != 0 {
			t.Errorf("%s: %v", retries, delay)
		}
	}
	if delay := failOnce(policyOf(t, `{"retries":["1h"],"jitter":0}`), "a1", policy.Failure{}); delay != time.Hour {
		t.Errorf("without jitter: %v", delay)
	}
}

// The cap bounds the delay of the formula, jitter varies it, and the cap bounds it again.
func TestACapHoldsBeforeAndAfterJitter(t *testing.T) {
	capped := policyOf(t, `{"retries":{"strategy":"exponential","base":"50m","cap":"1h"},"jitter":0.2}`)
	above, atCap := 0, 0
	for i := range 1000 {
		m := Model{UID: "tbl_1", Policy: capped}
		m.AttemptNo = 6 // the formula says 53 hours: varied without the first cap it would always be at the cap
		m.State = m.Start(monday, fmt.Sprintf("a%d", i)).Next
		switch delay := m.Fail(policy.Failure{}, monday).Next.RefreshAt.Sub(monday); {
		case delay < 48*time.Minute || delay > time.Hour:
			t.Fatalf("attempt %d is retried after %v", i, delay)
		case delay == time.Hour:
			atCap++
		default:
			above++
		}
	}
	if atCap < 400 || above < 400 {
		t.Errorf("%d of 1000 are at the cap, %d below it", atCap, above)
	}
}

func TestAVariedDelayIsToldAsAboutItself(t *testing.T) {
	s := tell(t, `"policy":{"retries":["1h"],"jitter":0.1}`, "00:00 wake | 00:05 failure")
	if !strings.HasPrefix(s.m.Why, "retry 1/1 ~") || !strings.HasSuffix(s.m.Why, ", none planned") {
		t.Errorf("why %q", s.m.Why)
	}
	ended, after := s.decision.Ended, s.m.RefreshAt.Sub(clock("00:05"))
	if ended.Delay != time.Hour || ended.Jitter == 0 || ended.Delay+ended.Jitter != after || !ended.RetryAt.Equal(s.m.RefreshAt) {
		t.Errorf("the history says %+v, but the retry is after %v", ended, after)
	}
}

// Alignment comes after jitter: a retry that jitter pushes over the border waits for planned.
func TestAlignmentJudgesTheJitteredRetry(t *testing.T) {
	before, planned := 0, 0
	for i := range 200 {
		s := tell(t, atSixteen+`"policy":{"timeout":"1h","retries":["1h"],"jitter":0.2}`, "13:50 run")
		s.starts = i
		s.then("13:50 wake | 14:00 failure")
		switch retryAt := s.decision.Ended.RetryAt; {
		case !retryAt.After(clock("15:00")) && s.m.RefreshAt.Before(clock("16:00")):
			before++
		case retryAt.After(clock("15:00")) && s.m.RefreshAt.Equal(clock("16:00")):
			planned++
		default:
			t.Fatalf("retry alone at %s: %s", retryAt, s)
		}
	}
	if before < 60 || planned < 60 {
		t.Errorf("%d before planned, %d when planned", before, planned)
	}
}
