package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// How many retries there were, how many of them succeeded, and how many cycles needed one.
func TestRetriesAreCounted(t *testing.T) {
	const job = `"policy":{"timeout":"10m","retries":[0,0,0]}`
	for steps, want := range map[string][3]int{
		"00:00 wake | 00:01 success":                                                                                                    {0, 0, 0},
		"00:00 wake | 00:01 failure":                                                                                                    {0, 0, 0},
		"00:00 wake | 00:01 failure | 00:01 wake | 00:02 success":                                                                       {1, 1, 1},
		"00:00 wake | 00:01 failure | 00:01 wake | 00:02 failure | 00:02 wake | 00:03 success":                                          {2, 1, 1},
		"00:00 wake | 00:01 failure | 00:01 wake | 00:11 timeout | 00:11 wake | 00:12 failure | 00:12 wake":                             {2, 0, 1},
		"00:00 wake | 00:01 failure | 00:01 wake | 00:02 interrupted | 00:02 wake | 00:03 success":                                      {1, 1, 1},
		"00:00 wake | 00:01 failure | 00:01 wake | 00:11 withdraw | 00:11 wake":                                                         {0, 0, 0},
		"00:00 wake | 00:01 failure | 00:01 wake | 00:02 success | 01:00 run | 01:00 wake | 01:01 failure | 01:01 wake | 01:02 success": {2, 2, 2},
	} {
		m := tell(t, job, steps).m
		got := [3]int{m.TotalRetries, m.SuccessfulRetries, m.RetriedCycles}
		failIf(t, got != want, "%s: retries, successful ones, cycles: %v, want %v", steps, got, want)
	}
}

func TestThreeRetriesAreFourRuns(t *testing.T) {
	const job = `"policy":{"maxRetries":3,"jitterEnabled":false}`
	runStories(t, []storyTest{
		{job, "00:00 wake | 00:01 failure", "#1, next 00:02: retry 1 of 3 after 1m"},
		{job, "00:00 wake | 00:01 failure | 00:02 wake | 00:03 failure", "#2, next 00:05: retry 2 of 3 after 2m"},
		{job, "00:00 wake | 00:01 failure | 00:02 wake | 00:03 failure | 00:05 wake | 00:06 failure", "#3, next 00:10: retry 3 of 3 after 4m"},
		{job, "00:00 wake | 00:01 failure | 00:02 wake | 00:03 failure | 00:05 wake | 00:06 failure | 00:10 wake | 00:11 failure",
			"#4 disabled (Cannot refresh after 4 attempts): disabled after 4 failures, no retry left"},
		{job, `00:00 wake | 00:01 failure "error_type":"NotFoundError"`, "#1 disabled (Cannot refresh after 1 attempt): disabled, never retry NotFoundError"},
	})
}

// Unlimited retries: the count is never said to end; the schedule goes before them all the same.
func TestUnlimitedRetriesGoOnForEver(t *testing.T) {
	s := tell(t, `"policy":{"retries":"1m"}`, "")
	now := monday
	for k := 1; k <= 2000; k++ {
		s.do(now, "wake", "")
		s.do(now, "failure", "")
		stopIf(t, s.m.Disabled || s.m.AttemptNo != k, "after %d failures: %s", k, s)
		now = s.m.RefreshAt
	}
	want := "retry 2000 after 1m"
	failIf(t, s.m.Why != want, "why %q, want %q", s.m.Why, want)
	tell(t, atSixAnd16+`"policy":{"retries":"1h"}`, "15:30 run | 15:30 wake | 15:31 failure").
		expect("#1, next 16:00: retry 1 waits for planned, which comes first")
}

// Beyond the highest age the model is not dropped in silence: its owner reads why it ended.
func TestBeyondTheLastRowAModelIsExhausted(t *testing.T) {
	const table = `"policy":{"timeout":"1h","retries":{"by_age":[{"up_to":"1h","delay":"10m"},{"up_to":"2h","delay":"next"}]},"on_exhausted":"give_up"}`
	const hourly = `"rrule":"FREQ=HOURLY","dtstart":"2026-01-05",`
	runStories(t, []storyTest{
		// The age counts from the first start of a model that never succeeded
		{table, "00:00 wake | 00:30 failure", "#1, next 00:40: retry 1 after 10m"},
		{table, "00:00 wake | 01:00 failure", "#1, next 01:10: retry 1 after 10m"},
		{table, "00:00 wake | 01:00:00.001 failure", "#1 disabled (Cannot refresh after 1 attempt): disabled, nothing planned to wait for"},
		{hourly + table, "01:00 wake | 02:30 failure", "#1, next 03:00: retry 1 waits for planned"},
		{hourly + table, "01:00 wake | 03:00:00.001 failure", "#1 disabled (Cannot refresh after 1 attempt): disabled after 1 failure, no retry left"},

		// … and then from the last success
		{table, "00:00 wake | 00:30 success | 05:00 run | 05:00 wake | 05:01 failure", "#1 disabled (Cannot refresh after 1 attempt): disabled after 1 failure, no retry left"},
		{table, "00:00 wake | 00:30 success | 01:00 run | 01:00 wake | 01:30 failure", "#1, next 01:40: retry 1 after 10m"},
	})
	goOn := strings.Replace(table, "give_up", "next_planned", 1)
	tell(t, hourly+goOn, "01:00 wake | 03:00:00.001 failure").expect("#0, next 04:00: waits for planned after 1 failure")
}

func TestAnErrorOfThePolicyNeverLosesAModel(t *testing.T) {
	const bad = `"policy":{"timeout":"1m","retries":{"expr":"[1, 2][k]"}}`
	s := tell(t, bad, "00:00 wake | 00:00:30 failure")
	s.expect("#1, next 00:00:32: retry 1 after 2s")
	s.then("00:00:32 wake | 00:00:40 failure")
	s.expect("#2, next 00:05:40: retry 2 after 5m, policy_error")
	want := "index out of range: 2 (array length is 2) (1:7)"
	failIf(t, s.decision.PolicyError != want || s.decision.Final || s.decision.Exhausted, "policy error %q of %+v", s.decision.PolicyError, s.decision)
	now := clock("00:05:40")
	for range 1000 {
		s.do(now, "wake", "")
		s.do(now.Add(time.Second), "failure", "")
		stopIf(t, s.decision.PolicyError == "" || s.m.Disabled || !s.m.RefreshAt.Equal(now.Add(5*time.Minute+time.Second)),
			"after %d failures: %s", s.m.AttemptNo, s)
		now = s.m.RefreshAt
	}
	s.expect(fmt.Sprintf("#1002, next %s: retry 1002 after 5m, policy_error", clockText(now)))
}

// A worker's reason has any length. An expression sees as much of it as the history keeps, which bounds the work.
func TestAnExpressionSeesNoMoreOfAReasonThanTheHistoryKeeps(t *testing.T) {
	p := policyOf(t, `{"retries":{"expr":"len(reason) * 1000 + len(error_type)"}}`)
	long := strings.Repeat("a", 1_000_000)
	if got, want := failOnce(p, "a1", policy.Failure{Reason: long, ErrorType: long}), 498_498*time.Second; got != want {
		t.Errorf("found %v, want %v", got, want) // 497 letters and the dots
	}
}

func TestPostponedAndInterruptedAttemptsAreNotCounted(t *testing.T) {
	runStories(t, []storyTest{
		{daily, `06:00 start | 06:10 postponed "retry_after":600`, "#0 deferred 1, next 06:20: postponed by the worker: again after 10m"},
		{daily, `06:00 start | 06:10 postponed "retry_after":0`, "#0 deferred 1, next 06:10: postponed by the worker: again at once"},
		{daily, `06:00 start | 06:10 postponed "retry_after":"2026-01-05T09:00:00+01:00"`, "#0 deferred 1, next 08:00: postponed by the worker: again after 1h50m"},
		{daily, `06:00 start | 06:10 postponed "retry_after":"2026-01-05T05:00:00Z"`, "#0 deferred 1, next 06:10: postponed by the worker: again at once"},
		{daily, `06:00 start | 06:10 interrupted`, "#0 deferred 1, next 06:10: interrupted: again at once"},
		{daily, `06:00 start | 06:10 failure | 06:10 start | 06:11 interrupted`, "#1 deferred 1, next 06:11: interrupted: again at once"},
		{daily, `06:00 start | 06:10 interrupted | 06:10 start | 06:11 postponed "retry_after":60`, "#0 deferred 2, next 06:12: postponed by the worker: again after 1m"},

		// What ends the row
		{daily, `06:00 start | 06:10 interrupted | 06:10 start | 06:11 success`, "#0, next 16:00: planned"},
		{daily, `06:00 start | 06:10 interrupted | 06:10 start | 06:11 failure`, "#1, next 06:11: retry 1 of 6 at once, ends before planned"},
		{daily, `06:00 start | 06:10 interrupted | 06:11 put "payload":{"size":2}`, "#0, next 06:10: saved while due"},

		// What does not: nobody took it
		{daily, `06:00 start | 06:10 interrupted | 06:10 start | 07:10 withdraw`, "#0 deferred 1, next 07:10: withdrawn: no worker took it"},
	})
}

func TestTheEleventhDeferralInARowIsAFailure(t *testing.T) {
	tenTimes := "06:00 start" + strings.Repeat(` | 06:00 interrupted | 06:00 start | 06:00 postponed "retry_after":0 | 06:00 start`, 5)
	runStories(t, []storyTest{
		{daily, tenTimes, "#1 a11 until 07:00 deferred 10, next 07:00: on timeout: retry 1 of 6 at once, ends before planned"},
		{daily, tenTimes + " | 06:05 interrupted", "#1, next 06:05: retry 1 of 6 at once, ends before planned"},
		{daily, tenTimes + " | 06:05 postponed \"retry_after\":0", "#1, next 06:05: retry 1 of 6 at once, ends before planned"},
		{daily, tenTimes + " | 06:05 postponed \"retry_after\":600", "#1, next 06:15: retry 1 of 6 after 10m, as the worker asked"},
		{daily, tenTimes + " | 06:05 interrupted | 06:05 start | 06:06 interrupted", "#1 deferred 1, next 06:06: interrupted: again at once"},
	})
	s := tell(t, daily, tenTimes+" | 06:05 interrupted")
	failIf(t, s.decision.Event != EventFailure || s.decision.Ended.Reason != "interrupted 11 times in a row; 10 are allowed",
		"the eleventh was told as %s: %+v", s.decision.Event, s.decision.Ended)
}

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
			stopIf(t, delay < 48*time.Second || delay > 72*time.Second, "job %d is retried after %v", i, delay)
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
		failIf(t, empty > 3, "%d jobs leave %d of 24 seconds empty: %v", herd.jobs, empty, hits)
	}
}

func TestJitterIsDerivedFromTheAttempt(t *testing.T) {
	p := policyOf(t, `{"retries":["1h"],"jitter":0.2}`)
	seen := map[time.Duration]bool{}
	for i := range 100 {
		uid := fmt.Sprintf("a%d", i)
		delay := failOnce(p, uid, policy.Failure{})
		again := failOnce(p, uid, policy.Failure{Reason: "another time"})
		stopIf(t, again != delay, "attempt %s is retried after %v and after %v", uid, delay, again)
		seen[delay] = true
	}
	failIf(t, len(seen) < 99, "100 attempts have %d different delays", len(seen))
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
	failIf(t, atCap < 400 || above < 400, "%d of 1000 are at the cap, %d below it", atCap, above)
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
	failIf(t, before < 60 || planned < 60, "%d before planned, %d when planned", before, planned)
}

func TestAnErrorOfThePolicyIsJoinedWithTheSchedule(t *testing.T) {
	const bad = `"policy":{"timeout":"1m","retries":{"expr":"k % 0"},"give_up_after":"1d"}`
	runStories(t, []storyTest{
		{atSixteen + bad, "15:00 run | 15:00 wake | 15:30 failure", "#1, next 15:35: retry 1 after 5m, policy_error, ends before planned"},
		{atSixteen + bad, "15:00 run | 15:00 wake | 15:58 failure", "#1, next 16:00: retry 1 waits for planned, policy_error, which comes first"},
		{atSixteen + bad, "15:00 run | 15:00 wake | 15:00+1 failure", "#1 disabled (Cannot refresh after 1 attempt): disabled, no success for 1d"},
		{bad, "00:00 wake | 23:58 failure", "#1, next 00:00+1: gives up then: no success for 1d"},
	})
}

func TestJitterOfZeroIsZero(t *testing.T) {
	for _, retries := range []string{`[0]`, `{"expr":"0"}`, `{"by_age":["1d: 0"]}`} {
		delay := failOnce(policyOf(t, `{"retries":`+retries+`,"jitter":1}`), "a1", policy.Failure{})
		failIf(t, delay != 0, "%s: %v", retries, delay)
	}
	delay := failOnce(policyOf(t, `{"retries":["1h"],"jitter":0}`), "a1", policy.Failure{})
	failIf(t, delay != time.Hour, "without jitter: %v", delay)
}

func TestAVariedDelayIsToldAsAboutItself(t *testing.T) {
	s := tell(t, `"policy":{"retries":["1h"],"jitter":0.1}`, "00:00 wake | 00:05 failure")
	failIf(t, !strings.HasPrefix(s.m.Why, "retry 1 of 1 after about "), "why %q", s.m.Why)
	ended, after := s.decision.Ended, s.m.RefreshAt.Sub(clock("00:05"))
	failIf(t, ended.Delay != time.Hour || ended.Jitter == 0 || ended.Delay+ended.Jitter != after || !ended.RetryAt.Equal(s.m.RefreshAt),
		"the history says %+v, but the retry is after %v", ended, after)
}
