package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/policy"
)

// The first delay follows the first failure, and nothing is read behind the last one.
func TestFailureKIsFollowedByDelayK(t *testing.T) {
	const three = `"policy":{"timeout":"1m","retries":[0,"1m","5m"],"on_exhausted":"give_up"}`
	const first = "00:00 start | 00:00:10 failure"
	const second = first + " | 00:00:10 start | 00:00:20 failure"
	const third = second + " | 00:01:20 start | 00:01:30 failure"
	const fourth = third + " | 00:06:30 start | 00:06:40 failure"
	runStories(t, []storyTest{
		{three, first, "#1, next 00:00:10: retry 1 of 3 at once"},
		{three, second, "#2, next 00:01:20: retry 2 of 3 after 1m"},
		{three, third, "#3, next 00:06:30: retry 3 of 3 after 5m"},
		{three, fourth, "#4 disabled (Cannot refresh after 4 attempts): disabled after 4 failures, no retry left"},

		// An edge: the empty list
		{`"policy":{"retries":[],"on_exhausted":"give_up"}`, first, "#1 disabled (Cannot refresh after 1 attempt): disabled after 1 failure, no retry left"},
	})
}

func TestATimeoutIsAFailure(t *testing.T) {
	runStories(t, []storyTest{
		{daily, "06:00 start | 07:00 timeout", "#1, next 07:00: retry 1 of 6 at once, ends before planned"},
		{daily, "06:00 start | 07:00 timeout | 07:00 start | 08:00 timeout", "#2, next 08:01: retry 2 of 6 after 1m, ends before planned"},
		{daily, "14:30 run | 14:30 start | 15:30 timeout", "#1, next 16:00: retry 1 of 6 waits for planned, would overlap"},
	})
	s := tell(t, daily, "06:00 start | 07:00 timeout")
	failIf(t, s.decision.Event != EventTimeout || s.decision.Ended.Reason != "timeout" || s.decision.Ended.ErrorType != "timeout",
		"found %s %+v", s.decision.Event, s.decision.Ended)
}

// An attempt is half open: [retry_at, retry_at + timeout).
func TestARetryRunsOnlyIfItEndsBeforeThePlannedRefreshBegins(t *testing.T) {
	const policy = `"policy":{"timeout":"1h","retries":["10m"],"on_exhausted":"give_up"}`
	const delayed = atSixAnd16 + policy
	runStories(t, []storyTest{
		// Around the end of the retry, with a delay of 10 minutes and an hour to run
		{delayed, "14:00 run | 14:00 start | 14:49:59.999 failure", "#1, next 14:59:59.999: retry 1 of 1 after 10m, ends before planned"},
		{delayed, "14:00 run | 14:00 start | 14:50 failure", "#1, next 15:00: retry 1 of 1 after 10m, ends before planned"}, // ends at 16:00 exactly
		{delayed, "14:00 run | 14:00 start | 14:50:00.001 failure", "#1, next 16:00: retry 1 of 1 waits for planned, would overlap"},

		// Around the start of the retry
		{delayed, "15:00 run | 15:00 start | 15:50 failure", "#1, next 16:00: retry 1 of 1 waits for planned, at the same time"},
		{delayed, "15:00 run | 15:00 start | 15:50:00.001 failure", "#1, next 16:00: retry 1 of 1 waits for planned, which comes first"},

		// The planned refresh passed while the attempt ran: the next one counts
		{delayed, "15:30 run | 15:30 start | 16:00 failure", "#1, next 16:10: retry 1 of 1 after 10m, ends before planned"},

		// Daily at 14:00, limit 2 h, retry due at 13:30: it waits, and 14:00 is the retry
		{`"rrule":"FREQ=DAILY;BYHOUR=14","dtstart":"2026-01-01","policy":{"timeout":"2h","retries":["30m","30m"]}`,
			"12:00 run | 12:00 start | 13:00 failure", "#1, next 14:00: retry 1 of 2 waits for planned, would overlap"},
		{`"rrule":"FREQ=DAILY;BYHOUR=14","dtstart":"2026-01-01","policy":{"timeout":"2h","retries":["30m","30m"]}`,
			"12:00 run | 12:00 start | 13:00 failure | 14:00 start", "#2 a2 until 16:00, next 16:30: on timeout: retry 2 of 2 after 30m, ends before planned"},

		// With a timeout as long as the interval every retry waits for planned
		{`"rrule":"FREQ=HOURLY","dtstart":"2026-01-05","policy":{"timeout":"1h","retries":[0]}`,
			"01:00 start | 01:00:01 failure", "#1, next 02:00: retry 1 of 1 waits for planned, would overlap"},

		// None planned: the retry runs after its delay
		{policy, "00:00 start | 00:01 failure", "#1, next 00:11: retry 1 of 1 after 10m"},
		{lastDay, "16:00 start | 16:10 failure", "#1, next 16:10: retry 1 of 6 at once"},
	})
}

func TestExhaustionFollowsThePolicy(t *testing.T) {
	const giveUp = `"policy":{"timeout":"1h","retries":[0],"on_exhausted":"give_up"}`
	runStories(t, []storyTest{
		{atSixAnd16 + giveUp, "06:00 start | 06:10 failure | 06:10 start | 06:20 failure", "#2 disabled (Cannot refresh after 2 attempts): disabled after 2 failures, no retry left"},
		{giveUp, "00:00 start | 00:10 failure | 00:10 start | 01:10 timeout", "#2 disabled (Cannot refresh after 2 attempts: timeout): disabled after 2 failures, no retry left"},

		// The reset happens with the last failure, a lost result or not, so the planned refresh is attempt 1
		{atSixAnd16 + oneThenGo, "06:00 start | 06:10 failure | 06:10 start | 06:20 failure", "#0, next 16:00: waits for planned after 2 failures"},
		{atSixAnd16 + oneThenGo, "06:00 start | 07:00 timeout | 07:00 start | 08:00 timeout | 16:00 start", "#1 a3 until 17:00, next 17:00: on timeout: retry 1 of 1 at once, ends before planned"},

		// The default fills in unnamed fields: three retries, then the next planned refresh
		{atSixAnd16 + `"policy":{"timeout":"1m"}`, "06:00 start | 06:01 failure", "#1, next 06:01: retry 1 of 3 at once, ends before planned"},
		{atSixAnd16 + `"policy":{"retries":[0]}`, "06:00 start | 06:10 failure | 06:10 start | 06:20 failure", "#0, next 16:00: waits for planned after 2 failures"},

		// None planned: waiting for it would be for ever
		{oneThenGo, "00:00 start | 00:10 failure | 00:10 start | 00:20 failure", "#2 disabled (Cannot refresh after 2 attempts): disabled after 2 failures, nothing planned"},

		// One failure does not disable a recurring model without retries, unless its policy says so
		{atSixAnd16 + `"policy":{"retries":[]}`, "06:00 start | 06:01 failure", "#0, next 16:00: waits for planned after 1 failure"},
		{atSixAnd16 + `"policy":{"retries":"none","on_exhausted":"give_up"}`, "06:00 start | 06:01 failure", "#1 disabled (Cannot refresh after 1 attempt): disabled after 1 failure, no retry left"},
	})
}

func TestAFailureThatIsNotRetryableIsFinal(t *testing.T) {
	runStories(t, []storyTest{
		{daily, `06:00 start | 06:10 failure "retryable":false`, "#1 disabled (Cannot refresh after 1 attempt): disabled, not retryable"},
		{daily, `06:00 start | 06:10 failure "retryable":true`, "#1, next 06:10: retry 1 of 6 at once, ends before planned"},
		{daily, `06:00 start | 06:10 failure "retryable":false,"retry_after":60`, "#1 disabled (Cannot refresh after 1 attempt): disabled, not retryable"},
	})
}

func TestAWorkersRetryAfterIsTheLeastDelay(t *testing.T) {
	const minute = atSixAnd16 + `"policy":{"timeout":"1h","retries":["1m","1m"],"on_exhausted":"give_up"}`
	runStories(t, []storyTest{
		// Against a delay of one minute
		{minute, `06:00 start | 06:10 failure "retry_after":59`, "#1, next 06:11: retry 1 of 2 after 1m, ends before planned"},
		{minute, `06:00 start | 06:10 failure "retry_after":60`, "#1, next 06:11: retry 1 of 2 after 1m, ends before planned"},
		{minute, `06:00 start | 06:10 failure "retry_after":61`, "#1, next 06:11:01: retry 1 of 2 after 1m1s, as the worker asked"},
		{minute, `06:00 start | 06:10 failure "retry_after":90.5`, "#1, next 06:11:30.5: retry 1 of 2 after 1m30s, as the worker asked"},

		// An instant, as Retry-After may name one
		{minute, `06:00 start | 06:10 failure "retry_after":"2026-01-05T06:30:00Z"`, "#1, next 06:30: retry 1 of 2 after 20m, as the worker asked"},
		{minute, `06:00 start | 06:10 failure "retry_after":"2026-01-05T06:00:00Z"`, "#1, next 06:11: retry 1 of 2 after 1m, ends before planned"},

		// The schedule is asked with the longer delay
		{minute, `14:00 run | 14:00 start | 14:30 failure "retry_after":"30m"`, "#1, next 15:00: retry 1 of 2 after 30m, as the worker asked"},
		{minute, `14:00 run | 14:00 start | 14:30 failure "retry_after":"31m"`, "#1, next 16:00: retry 1 of 2 waits for planned, would overlap"},

		// Far away, and after the last retry
		{banner, `00:00 start | 00:00:01 failure "retry_after":31536000`, "#1, next 00:00:01+365: retry 1 of 3 after 365d, as the worker asked"},
		{minute, `06:00 start | 06:10 failure | 06:11 start | 06:12 failure | 06:13 start | 06:14 failure "retry_after":3600`, "#3 disabled (Cannot refresh after 3 attempts): disabled after 3 failures, no retry left"},
	})
}

// Whatever starts next by itself waits for what the worker has asked for: a planned refresh moves there. Only a hand goes below.
func TestWhoAskedForTwoHoursGetsTwoHours(t *testing.T) {
	hourly := func(policy string) string {
		return `"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"timeout":"10m",` + policy + `}`
	}
	runStories(t, []storyTest{
		{hourly(`"retries":["1m"]`), `06:00 start | 06:05 failure "retry_after":7200`, "#1, next 08:05: retry 1 of 1 waits for planned, delayed by the worker"},
		{hourly(`"retries":["1m"]`), `06:00 start | 06:05 failure "retry_after":"110m"`, "#1, next 07:55: retry 1 of 1 waits for planned, delayed by the worker"},
		{hourly(`"retries":["1m"],"alignment":"until_success"`), `06:00 start | 06:05 failure "retry_after":7200`, "#1, next 08:05: retry 1 of 1 after 2h, as the worker asked"},
		{hourly(`"retries":["1m"],"alignment":"between_planned"`), `06:00 start | 06:05 failure "retry_after":"110m"`, "#0, next 07:55: retry 1 of 1 waits for planned, delayed by the worker"},
		{hourly(`"retries":["3h"],"alignment":"whichever_first"`), `06:00 start | 06:05 failure "retry_after":7200`, "#1, next 08:05: retry 1 of 1 waits for planned, delayed by the worker"},

		// After the last retry, and without one
		{hourly(`"retries":[],"on_exhausted":"next_planned"`), `06:00 start | 06:05 failure "retry_after":7200`, "#0, next 08:05: waits for planned after 1 failure, delayed by the worker"},
		{hourly(`"retries":[],"on_exhausted":"next_planned"`), `06:00 start | 06:05 failure "retry_after":60`, "#0, next 07:00: waits for planned after 1 failure"},
		{hourly(`"retries":["next"]`), `06:00 start | 06:05 failure "retry_after":7200`, "#1, next 08:05: retry 1 of 1 waits for planned, delayed by the worker"},

		// A save is no hand that wants it now
		{hourly(`"retries":["1m"]`), `06:00 start | 06:05 failure "retry_after":7200 | 06:10 put "dtstart":"2026-01-02T00:01:00"`, "#0, next 08:05: planned, delayed by the worker"},
		{hourly(`"retries":["1m"]`), `06:00 start | 06:05 postponed "retry_after":7200 | 06:10 put "dtstart":"2026-01-02T00:01:00"`, "#0, next 08:05: planned, delayed by the worker"},
		{hourly(`"retries":["1m"]`), `06:00 start | 06:05 failure "retry_after":7200 | 06:10 put "refresh":"now"`, "#1, next 06:10: saved: refresh now"},
		{hourly(`"retries":["1m"]`), `06:00 start | 06:05 failure "retry_after":7200 | 06:10 run`, "#1, next 06:10: run by hand"},
		{hourly(`"retries":["1m"]`), `06:00 start | 06:05 failure "retry_after":7200 | 06:10 disable | 06:20 enable`, "#0, next 07:00: planned"},

		// It is over with the next start
		{hourly(`"retries":["1m"]`), `06:00 start | 06:05 failure "retry_after":7200 | 08:05 start | 08:10 success`, "#0, next 09:00: planned"},
	})
}

// A planned refresh that a worker has moved is a planned refresh still: no later retry, window or occurrence takes its place because it moved.
func TestAPlannedRefreshIsNeverDroppedBecauseAWorkerHasMovedIt(t *testing.T) {
	daily := func(policy string) string {
		return `"rrule":"FREQ=DAILY;BYHOUR=6","dtstart":"2026-01-01","policy":{"timeout":"10m","on_exhausted":"next_planned",` + policy + `}`
	}
	const failed = `05:58 run | 05:58 start | 05:59:30 failure "retry_after":60`
	runStories(t, []storyTest{
		{daily(`"retries":["6h"]`), failed, "#1, next 06:00:30: retry 1 of 1 waits for planned, delayed by the worker"},
		{daily(`"retries":["10s"],"retry_window":"FREQ=DAILY;BYHOUR=22"`), failed, "#1, next 06:00:30: retry 1 of 1 waits for planned, delayed by the worker"},
		{daily(`"retries":["10s"],"alignment":"planned_only"`), failed, "#1, next 06:00:30: retry 1 of 1 waits for planned, delayed by the worker"},
		{daily(`"retries":["6h"],"alignment":"between_planned"`), failed, "#0, next 06:00:30: retry 1 of 1 waits for planned, delayed by the worker"},
		{daily(`"retries":["6h"],"alignment":{"expr":"planned_at"}`), failed, "#1, next 06:00:30: retry 1 of 1 waits for planned, delayed by the worker"},
		{daily(`"retries":["next"]`), failed, "#1, next 06:00:30: retry 1 of 1 waits for planned, delayed by the worker"},
		{daily(`"retries":[]`), failed, "#0, next 06:00:30: waits for planned after 1 failure, delayed by the worker"},

		// Where the alignment lets the retry win, it takes the place of the planned refresh, moved or not
		{daily(`"retries":["6h"],"alignment":"until_success"`), failed, "#1, next 11:59:30: retry 1 of 1 after 6h, in place of planned"},

		// The next one comes as ever
		{daily(`"retries":["6h"]`), failed + " | 06:00:30 start | 06:05 success", "#0, next 06:00+1: planned"},

		// What would come too late ends with the give-up window; what comes before that is tried
		{daily(`"retries":["6h"],"give_up_after":"2m"`), failed, "#1, next 06:00: gives up then: no success for 2m"},

		// What was missed is skipped, in line too
		{daily(`"retries":["6h"],"misfire":"skip"`), failed + " | 06:01:30 wake", "#2 a2 until 06:11:30, next 06:00+1: on timeout: waits for planned after 2 failures"},
		{daily(`"retries":["6h"],"misfire":"skip"`), failed + " | 06:01:31 wake", "#1, next 06:00+1: skipped, late by 1m1s: waits for planned"},
		{daily(`"retries":["6h"],"misfire":"skip"`), failed + " | 06:00:30 wake | 06:10:30 withdraw | 06:10:30 wake", "#1, next 06:00+1: skipped, late by 10m: waits for planned"},
		{daily(`"retries":["6h"],"alignment":"until_success","misfire":"skip"`), failed + " | 13:00 wake", "#2 a2 until 13:10, next 06:00+1: on timeout: waits for planned after 2 failures"},
	})
}

// The owner wants the worker's own reason, not one that is the same for all.
func TestTheOwnerReadsTheWorkersReasonOrAPlainSentence(t *testing.T) {
	long := strings.Repeat("ü", 400)
	for extra, want := range map[string]string{
		``: "Cannot refresh after 1 attempt",
		`"user_friendly_reason":"Provided URL is invalid: https://example.com/broken"`: "Provided URL is invalid: https://example.com/broken",
		`"user_friendly_reason":"thumbnail creation failed","reason":"boom"`:           "thumbnail creation failed",
		`"reason":"HTTP 404"`:                           "Cannot refresh after 1 attempt: HTTP 404",
		`"user_friendly_reason":"","reason":"HTTP 404"`: "Cannot refresh after 1 attempt: HTTP 404",

		// Nothing that can be read is no reason
		`"user_friendly_reason":" \n\t","reason":"HTTP 404"`: "Cannot refresh after 1 attempt: HTTP 404",

		// Outside text
		`"user_friendly_reason":"two\nlines\u001b[31m"`: "two lines [31m",
		`"user_friendly_reason":"` + long + `"`:         strings.Repeat("ü", 248) + "…",
	} {
		s := tell(t, daily, `06:00 start | 06:10 failure "retryable":false,`+extra)
		failIf(t, s.m.DisabledReason != want, "%s:\n got %q\nwant %q", extra, s.m.DisabledReason, want)
	}
}

func TestAFinalFailureTellsTheOwnerAndStopsTheModel(t *testing.T) {
	s := tell(t, daily, `06:00 start | 06:10 failure | 06:10 start | 06:20 failure "retryable":false`)
	d := s.decision
	failIf(t, !d.Final || d.Exhausted || d.Notice != policy.NoticeDisabled || !d.Next.FinalFailureAt.Equal(clock("06:20")), "found %+v", d)
	failIf(t, !s.m.FailingSince.Equal(clock("06:10")), "failing since %s, want the first failure at 06:10", clockText(s.m.FailingSince))
	s = tell(t, atSixAnd16+oneThenGo, "06:00 start | 06:10 failure | 06:10 start | 06:20 failure")
	d = s.decision
	failIf(t, d.Final || !d.Exhausted || d.Notice != policy.NoticeNone, "waiting for the planned refresh alarms nobody, found %+v", d)
}

func TestTheOwnerIsToldOfTheFailureThatThePolicyNamesOnceInACycle(t *testing.T) {
	for from, want := range map[string]string{
		`"none"`: "", "1": "00:01 failing 1, 01:01 failing 1, ", "2": "00:12 failing 2, 01:12 failing 2, ", "3": "",
	} {
		s, told := tell(t, `"policy":{"timeout":"5m","retries":["10m","10m"],"on_exhausted":"give_up","failing_from":`+from+`}`, "00:00 wake"), ""
		for _, step := range []string{"00:01 failure", "00:11 wake", "00:12 failure", "00:22 wake", "00:23 success", "01:00 run", "01:00 wake", "01:01 failure", "01:11 wake", "01:12 failure"} {
			s.then(step)
			for _, n := range s.decision.Notifications("m", clock(step[:5])) {
				told += fmt.Sprintf("%s %s %d, ", step[:5], n.Notice, n.AttemptNo)
			}
		}
		failIf(t, told != want, "failing_from %s: told %q, want %q", from, told, want)
	}
	s := tell(t, `"policy":{"timeout":"1h","retries":[],"on_exhausted":"give_up","failing_from":1}`, "00:00 wake | 00:01 failure")
	if told := s.decision.Notifications("m", clock("00:01")); len(told) != 1 || told[0].Notice != "disabled" {
		t.Errorf("want a final failure told as disabled alone, got %+v", told)
	}
}

// A model fails for good only when nothing more is tried by itself; then each further run by hand may end so again.
func TestAModelMayFailForGoodOnceForEachRunByHand(t *testing.T) {
	s := tell(t, `"policy":{"timeout":"1m","retries":[0],"on_exhausted":"give_up"}`, "")
	for _, hour := range []string{"00", "01", "02"} {
		s.then(hour + ":00 run | " + hour + ":00 start | " + hour + ":00:10 failure")
		stopIf(t, s.decision.Final || s.m.Disabled || s.decision.Notice != policy.NoticeNone, "failed for good although a retry is left: %s", s)
		s.then(hour + ":00:10 start | " + hour + ":00:20 failure")
		s.expect("#2 disabled (Cannot refresh after 2 attempts): disabled after 2 failures, no retry left")
		d := s.decision
		failIf(t, !d.Final || !d.Exhausted || d.Notice != policy.NoticeDisabled || !s.m.FinalFailureAt.Equal(clock(hour+":00:20")),
			"%s: found %+v", hour, d)
	}
	s.then("03:00 run | 03:00 start | 03:00:10 success | 03:00:10 failure")
	failIf(t, s.outcome != Duplicate || s.m.Disabled, "completed is completed: outcome %q, %s", s.outcome, s)
}

func TestAnAddressComesFromThePayloadALabelOrThePolicyAndIsNothingButAnAddress(t *testing.T) {
	m := Model{Labels: map[string]string{"owner": "label@example.com", "team": "t1"}}
	for value, want := range map[string]string{
		"ann@example.com": "ann@example.com", " ann+x@mail.example.com ": "ann+x@mail.example.com",
		"": "", "ann": "", "Ann <ann@example.com>": "", "a@b, c@d": "", `a@b\r\nBcc: c@d`: "", `a@b\u0000`: "", `\"a b\"@c.d`: "", "a@b\u2028c": "", "ä@example.com": "",
		strings.Repeat("a", 251) + "@b.c": "",
	} {
		m.Payload = `{"mail":"` + value + `"}`
		got := m.AddressOf(policy.Recipient{Payload: "mail"})
		failIf(t, got != want, "%q: got %q, want %q", value, got, want)
	}
	for _, payload := range []string{"", "[]", `{"mail":1}`, `{"mail":["a@b.c"]}`} {
		m.Payload = payload
		got := m.AddressOf(policy.Recipient{Payload: "mail"})
		failIf(t, got != "", "%s: got %q", payload, got)
	}
	for to, want := range map[policy.Recipient]string{
		{Label: "owner"}: "label@example.com", {Label: "team"}: "", {Label: "none"}: "", {Address: "ops@example.com"}: "ops@example.com", {}: "",
	} {
		got := m.AddressOf(to)
		failIf(t, got != want, "%+v: got %q, want %q", to, got, want)
	}
}

// failing is a one-shot with this policy after its first attempt has failed at 00:10 with these fields.
func failing(t *testing.T, policy, fields string) *story {
	t.Helper()
	return tell(t, `"policy":`+policy, "00:00 wake | 00:10 failure "+fields)
}

func TestTheErrorClassDecidesWhetherAFailureIsRetried(t *testing.T) {
	const (
		optIn  = `{"retries":["1m"],"retry_on":["NetworkError","RateLimited"]}`
		optOut = `{"retries":["1m"],"never_retry":["Gone","permanent"]}`
		retry  = "#1, next 00:11: retry 1 of 1 after 1m"
	)
	final := func(why string) string { return "#1 disabled (Cannot refresh after 1 attempt): disabled, " + why }
	for _, test := range []struct{ policy, fields, want string }{
		{`{"retries":["1m"]}`, `"error_type":"Gone"`, retry},
		{`{"retries":["1m"]}`, ``, retry},

		// Opt-in: a wrapped error of the right class only
		{optIn, `"error_type":"NetworkError"`, retry},
		{optIn, `"error_type":"networkerror"`, final(`retried only on other errors than "networkerror"`)},
		{optIn, `"error_type":"Gone"`, final(`retried only on other errors than "Gone"`)},
		{`{"retries":["1m"],"retry_on":[]}`, `"error_type":"Gone"`, final(`retried only on other errors than "Gone"`)},

		// Opt-out
		{optOut, `"error_type":"NetworkError"`, retry},
		{optOut, `"error_type":"Gone"`, final("never retry Gone")},
		{optOut, `"error_type":"ValidationError"`, final("never retry ValidationError")},
		{optOut, `"error_type":"permanent"`, retry}, // a word of policies, not of workers

		// The result's own word goes before all of it
		{optIn, `"error_type":"Gone","retryable":true`, retry},
		{optIn, `"error_type":"NetworkError","retryable":false`, final("not retryable")},
		{optOut, `"error_type":"Gone","retryable":true`, retry},
		{optOut, `"error_type":"NetworkError","retryable":false`, final("not retryable")},
		{`{"retries":["1m"],"delays_by_error":{"Gone":"never"}}`, `"error_type":"Gone","retryable":true`, retry},
		{`{"retries":["1m"],"delays_by_error":{"Gone":"9m"}}`, `"error_type":"Gone","retryable":false`, final("not retryable")},
	} {
		t.Run(test.policy+test.fields, func(t *testing.T) { failing(t, test.policy, test.fields).expect(test.want) })
	}
}

// There are two final reasons: at once, and exhausted.
func TestAFinalClassIsNotCalledExhausted(t *testing.T) {
	s := failing(t, `{"retries":["1m"],"never_retry":"permanent","on_exhausted":"next_planned"}`, `"error_type":"SyntaxError"`)
	d := s.decision
	failIf(t, !d.Final || d.Exhausted || d.Notice != policy.NoticeDisabled, "found %+v", d)
	if s = failing(t, `{"retries":[]}`, ``); !s.decision.Final || !s.decision.Exhausted {
		t.Errorf("found %+v", s.decision)
	}
}

// No worker could have named the class of a lost result, so that opting in cannot mean it; opting out can.
func TestATimeoutIsRetriedUnlessItIsNamed(t *testing.T) {
	const m = `"policy":{"timeout":"10m","retries":["1m"],`
	runStories(t, []storyTest{
		{m + `"retry_on":["NetworkError"]}`, "00:00 wake | 00:10 timeout", "#1, next 00:11: retry 1 of 1 after 1m"},
		{m + `"never_retry":["NetworkError"]}`, "00:00 wake | 00:10 timeout", "#1, next 00:11: retry 1 of 1 after 1m"},
		{m + `"never_retry":["timeout"]}`, "00:00 wake | 00:10 timeout", "#1 disabled (Cannot refresh after 1 attempt: timeout): disabled, never retry timeout"},
		{m + `"delays_by_error":{"timeout":"never"}}`, "00:00 wake | 00:10 timeout", "#1 disabled (Cannot refresh after 1 attempt: timeout): disabled, never retry timeout"},
		{m + `"delays_by_error":{"timeout":"7m"}}`, "00:00 wake | 00:10 timeout", "#1, next 00:17: retry 1 of 1 after 7m"},
		{m + `"delays_by_error":{"timeout":"7m"}}`, "00:00 wake", "#1 a1 until 00:10, next 00:17: on timeout: retry 1 of 1 after 7m"},

		// A worker that says so itself is asked for its class
		{m + `"retry_on":["NetworkError"]}`, `00:00 wake | 00:09 failure "reason":"timeout","error_type":"timeout"`,
			`#1 disabled (Cannot refresh after 1 attempt: timeout): disabled, retried only on other errors than "timeout"`},
	})
	steps := strings.Repeat("00:00 wake | 00:00 interrupted | ", 10) + "00:00 wake | 00:00 interrupted"
	tell(t, m+`"retry_on":["NetworkError"]}`, steps).expect("#1, next 00:01: retry 1 of 1 after 1m")
}

func TestAnErrorClassHasItsOwnDelay(t *testing.T) {
	const (
		policy = `"policy":{"timeout":"10m","retries":["1m","1m"],"delays_by_error":{"RateLimited":"1h","Gone":"never","Busy":"next","Blip":0}}`
		failed = "06:00 wake | 06:05 failure "
	)
	runStories(t, []storyTest{
		{atSixAnd16 + policy, failed, "#1, next 06:06: retry 1 of 2 after 1m, ends before planned"},
		{atSixAnd16 + policy, failed + `"error_type":"RateLimited"`, "#1, next 07:05: retry 1 of 2 after 1h, ends before planned"},
		{atSixAnd16 + policy, failed + `"error_type":"Blip"`, "#1, next 06:05: retry 1 of 2 at once, ends before planned"},
		{atSixAnd16 + policy, failed + `"error_type":"Busy"`, "#1, next 16:00: retry 1 of 2 waits for planned"},
		{atSixAnd16 + policy, failed + `"error_type":"Gone"`, "#1 disabled (Cannot refresh after 1 attempt): disabled, never retry Gone"},
		{atSixAnd16 + policy, `15:30 run | 15:30 wake | 15:31 failure "error_type":"RateLimited"`, "#1, next 16:00: retry 1 of 2 waits for planned, which comes first"},

		// The wish of a worker is the least delay, also of a class
		{atSixAnd16 + policy, failed + `"error_type":"RateLimited","retry_after":"2h"`, "#1, next 08:05: retry 1 of 2 after 2h, as the worker asked"},

		// Nothing is planned to wait for
		{policy, `00:00 wake | 00:05 failure "error_type":"Busy"`, "#1 disabled (Cannot refresh after 1 attempt): disabled, nothing planned to wait for"},
	})
}

func TestAnOwnDelayRevivesNobodyAfterTheLastRetry(t *testing.T) {
	const delays = `"on_exhausted":"give_up","delays_by_error":{"RateLimited":"1h","Busy":"next"}`
	limited := `"error_type":"RateLimited"`
	runStories(t, []storyTest{
		{`"policy":{"retries":["1m"],` + delays + `}`, "00:00 wake | 00:05 failure | 00:06 wake | 00:07 failure " + limited,
			"#2 disabled (Cannot refresh after 2 attempts): disabled after 2 failures, no retry left"},
		{atSixAnd16 + `"policy":{"retries":["1m"],` + delays + `}`, `06:00 wake | 06:05 failure | 06:06 wake | 06:07 failure "error_type":"Busy"`,
			"#2 disabled (Cannot refresh after 2 attempts): disabled after 2 failures, no retry left"},
		{atSixAnd16 + `"policy":{"retries":[],"delays_by_error":{"RateLimited":"1h"}}`, "06:00 wake | 06:05 failure " + limited, "#0, next 16:00: waits for planned after 1 failure"},
		{`"policy":{"retries":{"expr":"false"},` + delays + `}`, "00:00 wake | 00:05 failure " + limited, "#1 disabled (Cannot refresh after 1 attempt): disabled after 1 failure, no retry left"},
		{`"policy":{"retries":["1m"],"on_exhausted":"give_up"}`, `00:00 wake | 00:05 failure | 00:06 wake | 00:07 failure "retryable":true`,
			"#2 disabled (Cannot refresh after 2 attempts): disabled after 2 failures, no retry left"},
	})
}
