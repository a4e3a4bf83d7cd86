package policy

import (
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
		{`{}`, "http_429", false},
		{`{` + limits + `}`, "http_429", true},
		{`{` + limits + `}`, "429", true},
		{`{` + limits + `}`, "http_503", false},
		{`{` + limits + `}`, "", false},
		{`{` + limits + `,"retry_after_scope":"auto"}`, "http_429", true},
		{`{` + limits + `,"retry_after_scope":"model"}`, "http_429", false},
		{`{` + limits + `,"retry_after_scope":"key"}`, "http_503", true},
		{`{"retry_after_scope":"key"}`, "http_429", true}, // those of the queue
	} {
		p := policyOf(t, test.policy)
		if got := p.RetryAfterClosesKeys(test.errorType); got != test.closes {
			t.Errorf("%s: %s closes keys: %t", test.policy, test.errorType, got)
		}
	}
	refusals(t, map[string]string{
		`{"retry_after_scope":"keys"}`: `retry_after_scope: expected auto or model or key, found "keys"`,
		`{"retry_after_scope":1}`:      "retry_after_scope: expected a text, found 1",
	})
}

func TestAPolicyNamesTheCalendarsThatItIsClosedOn(t *testing.T) {
	for text, want := range map[string][]string{
		`["nightly-maintenance","holidays","holidays"]`: {"holidays", "nightly-maintenance"},
		`"holidays"`: {"holidays"},
		`[]`:         nil, `"none"`: nil, `null`: nil,
	} {
		p := policyOf(t, `{"closed":`+text+`}`)
		if !slices.Equal(p.Closed, want) {
			t.Errorf("%s: %q, want %q", text, p.Closed, want)
		}
		if again := policyOf(t, p.canonical()); !again.Equal(p) {
			t.Errorf("%s is read back as %s", p.canonical(), again.canonical())
		}
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
	if p.FreshWithin != 26*time.Hour || p.WarnWithin != 24*time.Hour {
		t.Errorf("fresh within %s, warned within %s", p.FreshWithin, p.WarnWithin)
	}
	refusals(t, map[string]string{
		`{"fresh_within":0}`:                         "fresh_within: expected a duration from 1s to 3650d, found 0",
		`{"fresh_within":"999ms"}`:                   `fresh_within: expected a duration from 1s to 3650d, found "999ms"`,
		`{"fresh_within":"11 years"}`:                `fresh_within: expected ` + wantDuration + `, found "11 years" (months and years have no fixed length)`,
		`{"fresh_within":"1h","warn_within":"0s"}`:   `warn_within: expected a duration from 1s to 3650d, found "0s"`,
		`{"fresh_within":"1h","warn_within":"1h"}`:   `warn_within: expected less than the fresh_within of 1h, found "1h"`,
		`{"fresh_within":"1h","warn_within":"61m"}`:  `warn_within: expected less than the fresh_within of 1h, found "1h1m"`,
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
		if a.WatchesAlike(b) != test.alike || b.WatchesAlike(a) != test.alike {
			t.Errorf("%s and %s: expected alike: %t", test.a, test.b, test.alike)
		}
	}
}
