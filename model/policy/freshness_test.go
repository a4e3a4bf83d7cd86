package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestARetryAfterClosesKeysAsThePolicySays(t *testing.T) {
	const limits = `"limits":[{"key":"{host(input_url)}","running":4}]`
	for _, test := range []struct {
		policy, errorType string
		closes            bool
	}{
		{`{}`, "http_429", false}, {`{` + limits + `}`, "http_429", true},
		{`{` + limits + `}`, "429", true},
		{`{` + limits + `}`, "http_503", false},
		{`{` + limits + `,"retry_after_scope":"model"}`, "http_429", false},
		{`{` + limits + `,"retry_after_scope":"key"}`, "http_503", true},
		{`{"retry_after_scope":"key"}`, "http_429", true}, // the error types of the queue
	} {
		p := policyOf(t, test.policy)
		got := p.RetryAfterClosesKeys(test.errorType)
		failIf(t, got != test.closes, "%s: %s closes keys: %t", test.policy, test.errorType, got)
	}
	refusals(t, map[string]string{
		`{"retry_after_scope":"keys"}`: `retry_after_scope: expected auto or model or key, found "keys"`,
		`{"max_retry_after":"999ms"}`:  `max_retry_after: expected a duration from 1s to 365d, found "999ms"`,
		`{"max_retry_after":"366d"}`:   `max_retry_after: expected a duration from 1s to 365d, found "366d"`,
		`{"max_retry_after":"none"}`:   `max_retry_after: expected a duration such as "90s", "1h30m", "PT5M" or "10 minutes", found "none" (a number from 0 is missing before "none")`,
		`{"retry_after_scope":1}`:      "retry_after_scope: expected a text, found 1",
	})
}

func TestAnAnswerClosesKeysForAnHourAtMost(t *testing.T) {
	for _, test := range []struct {
		policy  string
		failure Failure
		want    time.Duration
	}{
		{`{"retry_after_scope":"key"}`, Failure{}, 0},
		{`{"retry_after_scope":"model"}`, Failure{RetryAfter: time.Minute}, 0},
		{`{"retry_after_scope":"key"}`, Failure{RetryAfter: time.Minute}, time.Minute},
		{`{"retry_after_scope":"key"}`, Failure{RetryAfter: time.Minute, ByServer: true}, time.Minute},
		{`{"retry_after_scope":"key"}`, Failure{RetryAfter: 2 * time.Hour}, time.Hour},
		{`{"retry_after_scope":"key","max_retry_after":"3h"}`, Failure{RetryAfter: 2 * time.Hour, ByServer: true}, time.Hour},
		{`{"retry_after_scope":"key","max_retry_after":"10m"}`, Failure{RetryAfter: 2 * time.Hour, ByServer: true}, 10 * time.Minute},
		{`{"retry_after_scope":"key","max_retry_after":"10m"}`, Failure{RetryAfter: 2 * time.Hour}, 10 * time.Minute},
	} {
		p := policyOf(t, test.policy)
		got := p.ClosesKeysFor(test.failure)
		if got != test.want {
			t.Errorf("%s, %+v: got %s, want %s", test.policy, test.failure, got, test.want)
		}
	}
}

func TestAPolicyNamesTheCalendarsThatItIsClosedOn(t *testing.T) {
	for text, want := range map[string][]string{
		`["nightly-maintenance","holidays","holidays"]`: {"holidays", "nightly-maintenance"},
		`"holidays"`: {"holidays"},
		`[]`:         nil, `"none"`: nil, `null`: nil,
	} {
		p := policyOf(t, `{"closed":`+text+`}`)
		failIf(t, !slices.Equal(p.Closed, want), "%s: %q, want %q", text, p.Closed, want)
		again := policyOf(t, p.canonical())
		failIf(t, !again.Equal(p), "%s is read back as %s", p.canonical(), again.canonical())
	}
	const want = "expected the name of a calendar: 1-50 letters, digits or _.- (first a letter or digit), found "
	refusals(t, map[string]string{
		`{"closed":["a","b c"]}`: "closed[1]: " + want + `"b c"`,
		`{"closed":[""]}`:        "closed[0]: " + want + `""`,
		`{"closed":7}`:           "closed: expected a list of texts, found 7",
		`{"closed":["` + strings.Repeat("x", 51) + `"]}`:   "closed[0]: " + want + fmt.Sprintf("%q", strings.Repeat("x", 51)),
		`{"closed":["1","2","3","4","5","6","7","8","9"]}`: "closed: expected at most 8 calendars, found 9",
	})
}

func TestFreshnessIsReadWithinItsBounds(t *testing.T) {
	p := policyOf(t, `{"fresh_within":"26h","warn_within":86400}`)
	failIf(t, p.FreshWithin != 26*time.Hour || p.WarnWithin != 24*time.Hour, "fresh within %s, warned within %s", p.FreshWithin, p.WarnWithin)
	refusals(t, map[string]string{
		`{"fresh_within":0}`:                         "fresh_within: expected a duration from 1s to 3650d, found 0",
		`{"fresh_within":"11 years"}`:                `fresh_within: expected ` + wantDuration + `, found "11 years" (months and years have no fixed length)`,
		`{"fresh_within":"1h","warn_within":"0s"}`:   `warn_within: expected a duration from 1s to 3650d, found "0s"`,
		`{"fresh_within":"1h","warn_within":"1h"}`:   `warn_within: expected less than the fresh_within of 1h, found "1h"`,
		`{"warn_within":"1h"}`:                       "fresh_within: expected a duration, as warn_within is given, found nothing",
		`{"fresh_within":"none","warn_within":"1h"}`: "fresh_within: expected a duration, as warn_within is given, found nothing",
	})
}

func TestPoliciesWatchAlikeUnlessTheirFreshnessDiffers(t *testing.T) {
	const watched = `{"fresh_within":"26h","warn_within":"24h"}`
	for _, test := range []struct {
		a, b  string
		alike bool
	}{
		{`{}`, `{"timeout":"1h","limits":[{"key":"{a}","running":1}]}`, true},
		{watched, `{"fresh_within":"1d2h","warn_within":"1d"}`, true},
		{watched, `{"fresh_within":"26h"}`, false},
		{watched, `{}`, false},
		{watched, `{"fresh_within":"27h","warn_within":"24h"}`, false},
	} {
		a, b := policyOf(t, test.a), policyOf(t, test.b)
		failIf(t, a.WatchesAlike(b) != test.alike || b.WatchesAlike(a) != test.alike, "%s and %s: expected alike: %t", test.a, test.b, test.alike)
	}
}

func TestPoliciesPlanAlikeUnlessTheirPlannedRefreshesMayDiffer(t *testing.T) {
	const rule = `"rrule":"FREQ=HOURLY"`
	for _, test := range []struct {
		a, b  string
		alike bool
	}{
		{``, `"timeout":"1h","retries":["1m"],"misfire":"skip"`, true},
		{`"retry_window":"FREQ=DAILY;BYHOUR=9","timezone":"Asia/Tokyo"`, `"retry_window":"FREQ=DAILY;BYHOUR=9"`, true},
		{``, `"limits":[{"key":"{a}","running":1}],"circuit":{"key":"{a}","open_after":"1 of 2"},"closed":["a"],"fresh_within":"1h"`, true},
		{rule, rule + `,"dtstart":"20010101T000000"`, true}, // the default
		{rule, `"rrule":"FREQ=DAILY"`, false},
		{rule, ``, false}, {rule, rule + `,"timezone":"Asia/Tokyo"`, false}, {rule, rule + `,"dtstart":"20260101T001500"`, false},
		{``, `"spread":"10m"`, false},
	} {
		a, b := policyOf(t, "{"+test.a+"}"), policyOf(t, "{"+test.b+"}")
		failIf(t, a.PlansAlike(b) != test.alike || b.PlansAlike(a) != test.alike, "{%s} and {%s}: expected alike: %t", test.a, test.b, test.alike)
	}
}

func TestAMisfireRuleIsReadInEachOfItsForms(t *testing.T) {
	for text, want := range map[string]string{
		`null`: "run_once", `"run_once"`: "run_once", `"skip"`: "skip", `" skip "`: "skip",
		`"run_if_younger_than 1h"`: "run_if_younger_than 1h", `"run_if_younger_than 90 minutes"`: "run_if_younger_than 1h30m",
		`{"run_if_younger_than":"PT1H"}`: "run_if_younger_than 1h", `{"run_if_younger_than":3600}`: "run_if_younger_than 1h",
		`"run_if_younger_than 1m"`: "skip", `"run_if_younger_than 0"`: "run_if_younger_than 0s",
	} {
		policy := policyOf(t, `{"misfire":`+text+`}`)
		got := policy.Misfire.String()
		failIf(t, got != want, "%s: %s", text, got)
		again := policyOf(t, policy.canonical())
		failIf(t, again.Misfire != policy.Misfire, "%s is read back as %+v", text, again.Misfire)
	}
}

func TestABadMisfireRuleIsRefused(t *testing.T) {
	const want = `misfire: expected run_once, skip or "run_if_younger_than 1h", found `
	refusals(t, map[string]string{
		`{"misfire":"never"}`:                       want + `"never"`,
		`{"misfire":"skip 1h"}`:                     want + `"skip 1h"`,
		`{"misfire":"run_if_younger_than"}`:         want + `"run_if_younger_than"`,
		`{"misfire":{"skip":"1h"}}`:                 "misfire.skip: expected one of run_if_younger_than, found an unknown field",
		`{"misfire":{"run_if_younger_than":[]}}`:    "misfire.run_if_younger_than: expected a text or a number, found a list",
		`{"misfire":"run_if_younger_than a while"}`: `misfire: expected ` + wantDuration + `, found "a while" (a number from 0 is missing before "a while")`,
	})
}

// sized is a policy whose canonical JSON has so many bytes.
func sized(t *testing.T, bytes int) map[string]any {
	t.Helper()
	var names []any
	for i := range 177 {
		names = append(names, fmt.Sprintf("%03d%s", i, strings.Repeat("x", 85)))
	}
	doc := map[string]any{"retries": []any{}, "never_retry": names, "disabled_reason": "x"}
	text, err := json.Marshal(policyOfValue(t, doc))
	must(t, err)
	doc["disabled_reason"] = "x" + strings.Repeat("x", bytes-len(text))
	return doc
}

func policyOfValue(t *testing.T, value any) Policy {
	t.Helper()
	p, err := ParseStored(value)
	must(t, err)
	return p
}

func TestAPolicyIsAtMost16KiBUnlessItIsStoredAlready(t *testing.T) {
	_, err := Parse(sized(t, maxPolicyBytes))
	failIf(t, err != nil, "expected the largest policy to be read, found %v", err)
	large := sized(t, maxPolicyBytes+1)
	const want = "expected at most 16384 bytes of JSON, found 16385"
	_, err = Parse(large)
	failIf(t, err == nil || err.Error() != want, "expected %q, found %v", want, err)
	_, err = ParseStored(large)
	failIf(t, err != nil, "expected a stored policy to stay readable, found %v", err)
	p := policyOfValue(t, large)
	err = p.CheckSize()
	failIf(t, err == nil || err.Error() != want, "expected %q, found %v", want, err)
}
