package model

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/policy"
)

// failing is what a one-shot with this policy becomes when its first attempt fails at 00:10 with these fields.
func failing(t *testing.T, policy, fields string) *story {
	t.Helper()
	return tell(t, `"policy":`+policy, "00:00 wake | 00:10 failure "+fields)
}

func TestTheErrorClassDecidesWhetherAFailureIsRetried(t *testing.T) {
	const (
		optIn  = `{"retries":["1m"],"retry_on":["NetworkError","RateLimited"]}`
		optOut = `{"retries":["1m"],"never_retry":["Gone","permanent"]}`
		retry  = "#1, next 00:11: retry 1/1 +1m, none planned"
	)
	final := func(why string) string { return "#1 disabled (Cannot refresh after 1 attempt): final: " + why }
	for _, test := range []struct{ policy, fields, want string }{
		{`{"retries":["1m"]}`, `"error_type":"Gone"`, retry},

		// Opt-in: a wrapped error of the right class only
		{optIn, `"error_type":"Gone"`, final(`retried only on other errors than "Gone"`)},
		{`{"retries":["1m"],"retry_on":[]}`, `"error_type":"Gone"`, final(`retried only on other errors than "Gone"`)},

		// Opt-out
		{optOut, `"error_type":"permanent"`, retry}, // a word of policies, not of workers

		// The result's own word goes before all of it
		{optIn, `"error_type":"Gone","retryable":true`, retry},
		{optOut, `"error_type":"NetworkError","retryable":false`, final("not retryable")},
		{`{"retries":["1m"],"delays_by_error":{"Gone":"never"}}`, `"error_type":"Gone","retryable":true`, retry},
	} {
		t.Run(test.policy+test.fields, func(t *testing.T) { failing(t, test.policy, test.fields).expect(test.want) })
	}
}

// There are two final reasons: at once, and exhausted.
func TestAFinalClassIsNotCalledExhausted(t *testing.T) {
	s := failing(t, `{"retries":["1m"],"never_retry":"permanent","on_exhausted":"next_planned"}`, `"error_type":"SyntaxError"`)
	if d := s.decision; !d.Final || d.Exhausted || d.Notice != policy.NoticeDisabled {
		t.Errorf("found %+v", d)
	}
	if s = failing(t, `{"retries":[]}`, ``); !s.decision.Final || !s.decision.Exhausted {
		t.Errorf("found %+v", s.decision)
	}
}

// No worker could have named the class of a lost result, so that opting in cannot mean it; opting out can.
func TestATimeoutIsRetriedUnlessItIsNamed(t *testing.T) {
	const m = `"policy":{"timeout":"10m","retries":["1m"],`
	runStories(t, []storyTest{
		{m + `"never_retry":["timeout"]}`, "00:00 wake | 00:10 timeout", "#1 disabled (Cannot refresh after 1 attempt: timeout): final: never retry timeout"},
		{m + `"delays_by_error":{"timeout":"7m"}}`, "00:00 wake | 00:10 timeout", "#1, next 00:17: retry 1/1 +7m, none planned"},

		// A worker that says so itself is asked for its class
		{m + `"retry_on":["NetworkError"]}`, `00:00 wake | 00:09 failure "reason":"timeout","error_type":"timeout"`,
			`#1 disabled (Cannot refresh after 1 attempt: timeout): final: retried only on other errors than "timeout"`},
	})
	steps := strings.Repeat("00:00 wake | 00:00 interrupted | ", 10) + "00:00 wake | 00:00 interrupted"
	tell(t, m+`"retry_on":["NetworkError"]}`, steps).expect("#1, next 00:01: retry 1/1 +1m, none planned")
}

func TestAnErrorClassHasItsOwnDelay(t *testing.T) {
	const (
		policy = `"policy":{"timeout":"10m","retries":["1m","1m"],"delays_by_error":{"RateLimited":"1h","Gone":"never","Busy":"next","Blip":0}}`
		failed = "06:00 wake | 06:05 failure "
	)
	runStories(t, []storyTest{
		{atSixAnd16 + policy, failed + `"error_type":"RateLimited"`, "#1, next 07:05: retry 1/2 +1h, before planned"},
		{atSixAnd16 + policy, failed + `"error_type":"Busy"`, "#1, next 16:00: retry 1/2 when planned"},

		// The wish of a worker is the least delay, also of a class
		{atSixAnd16 + policy, failed + `"error_type":"RateLimited","retry_after":"2h"`, "#1, next 08:05: retry 1/2 +2h as asked, before planned"},

		// Nothing is planned to wait for
		{policy, `00:00 wake | 00:05 failure "error_type":"Busy"`, "#1 disabled (Cannot refresh after 1 attempt): final: none planned to wait for"},
	})
}

func TestAnOwnDelayRevivesNobodyAfterTheLastRetry(t *testing.T) {
	const delays = `"on_exhausted":"give_up","delays_by_error":{"RateLimited":"1h","Busy":"next"}`
	limited := `"error_type":"RateLimited"`
	runStories(t, []storyTest{
		{`"policy":{"retries":["1m"],` + delays + `}`, "00:00 wake | 00:05 failure | 00:06 wake | 00:07 failure " + limited,
			"#2 disabled (Cannot refresh after 2 attempts): final: exhausted after 2"},
		{atSixAnd16 + `"policy":{"retries":[],"delays_by_error":{"RateLimited":"1h"}}`, "06:00 wake | 06:05 failure " + limited, "#0, next 16:00: exhausted after 1, planned"},
		{`"policy":{"retries":{"expr":"false"},` + delays + `}`, "00:00 wake | 00:05 failure " + limited, "#1 disabled (Cannot refresh after 1 attempt): final: exhausted after 1"},
		{`"policy":{"retries":["1m"],"on_exhausted":"give_up"}`, `00:00 wake | 00:05 failure | 00:06 wake | 00:07 failure "retryable":true`,
			"#2 disabled (Cannot refresh after 2 attempts): final: exhausted after 2"},
	})
}
