package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func circuitOf(t testing.TB, text string) *Circuit {
	t.Helper()
	return policyOf(t, `{"circuit":`+text+`}`).Circuit
}

func TestACircuitIsReadAndReadBack(t *testing.T) {
	for text, want := range map[string]*Circuit{
		`{"key":"{host(input_url)}","open_after":"5 of 10","on":["network","http_5xx","timeout"],"probe":"5m"}`: {
			Key{KeyHost, "input_url"}, 5, 10, []string{"http_5xx", "network", "timeout"}, 5 * time.Minute},
		`{"key":"{policy}","open_after":" 1  of 1 "}`:                   {Key{Kind: KeyPolicy}, 1, 1, nil, 5 * time.Minute},
		`{"key":"{a}","open_after":"100 of 100","on":429,"probe":"1d"}`: {Key{keyField, "a"}, 100, 100, []string{"http_429"}, 24 * time.Hour},
		`{"key":"{a}","open_after":"1 of 2","on":["5xx","503","http_503","Too busy",503],"probe":1}`: {
			Key{keyField, "a"}, 1, 2, []string{"Too busy", "http_503", "http_5xx"}, time.Second},
	} {
		got := circuitOf(t, text)
		diff := cmp.Diff(want, got)
		failIf(t, diff != "", "%s: -want +got\n%s", text, diff)
		p := Default()
		p.Circuit = got
		again := policyOf(t, p.canonical())
		failIf(t, !again.Equal(p), "%s is read back as %s", p.canonical(), again.canonical())
	}
	failIf(t, policyOf(t, `{"circuit":"none"}`).Circuit != nil || policyOf(t, `{"circuit":null}`).Circuit != nil, "none is a circuit")
	if !policyOf(t, `{"circuit_breaker":{"key":"{a}","open_after":"1 of 2"}}`).Equal(policyOf(t, `{"circuit":{"key":"{a}","open_after":"1 of 2","probe":"5m"}}`)) {
		t.Error("circuit_breaker is not circuit")
	}
}

func TestABadCircuitIsRefusedWithTheField(t *testing.T) {
	const openAfter = `circuit.open_after: expected a number of failures of a number of attempts, up to 100, such as "5 of 10", found `
	of := func(text string) string { return `{"circuit":{"key":"{a}","open_after":` + text + `}}` }
	with := func(text string) string { return `{"circuit":{"key":"{a}","open_after":"1 of 2",` + text + `}}` }
	many := strings.TrimSuffix(strings.Repeat(`"E",`, 201), ",")
	refusals(t, map[string]string{
		`{"circuit":"open"}`:                  `circuit: expected an object with key, open_after, on, probe, found "open"`,
		`{"circuit":{"open_after":"1 of 2"}}`: `circuit.key: expected ` + wantKey + `, found ""`,
		`{"circuit":{"key":"{a}"}}`:           openAfter + "nothing",
		of(`5`):                               "circuit.open_after: expected a text, found 5",
		of(`"0 of 10"`):                       openAfter + `"0 of 10"`,
		of(`"11 of 10"`):                      openAfter + `"11 of 10"`,
		of(`"5 of 101"`):                      openAfter + `"5 of 101"`,
		of(`"five of ten"`):                   openAfter + `"five of ten"`,
		with(`"on":[]`):                       "circuit.on: expected 1 to 200 error types, or no field for all failures, found 0",
		with(`"on":[` + many + `]`):           "circuit.on: expected 1 to 200 error types, or no field for all failures, found 201",
		with(`"on":["a",""]`):                 `circuit.on[1]: expected an error type of 1-100 printable characters, found ""`,
		with(`"on":true`):                     `circuit.on[0]: expected an error type of 1-100 printable characters, found true`,
		with(`"probe":"999ms"`):               `circuit.probe: expected a duration from 1s to 1d, found "999ms"`,
		with(`"probe":"25h"`):                 `circuit.probe: expected a duration from 1s to 1d, found "25h"`,
		with(`"probe":"soon"`):                `circuit.probe: expected ` + wantDuration + `, found "soon" (a number from 0 is missing before "soon")`,
	})
}

func TestACircuitCountsTheFailuresThatItNames(t *testing.T) {
	named := func(on string) *Circuit { return circuitOf(t, `{"key":"{a}","open_after":"1 of 2","on":`+on+`}`) }
	for _, test := range []struct {
		circuit *Circuit
		counts  string // error types, one blank between them
		not     string
	}{
		{named(`null`), "network timeout http_503 exit_1 anything", ""},
		// Those of worker/handlers, and those that other workers usually send
		{named(`"network"`), "network stalled too_slow truncated NetworkError", "timeout http_503 disk exit_1 TimeoutError Network"},
		{named(`"timeout"`), "timeout TimeoutError", "network stalled http_504"},
		{named(`"http_5xx"`), "http_500 http_503 http_599 503", "http_499 http_600 http_5xx http_50 http_5000 network http_404 https_500"},
		{named(`429`), "http_429 429", "http_428 RateLimited"},
		{named(`["RateLimited","exit_75"]`), "RateLimited exit_75", "ratelimited exit_7"},
	} {
		for errorType := range strings.FieldsSeq(test.counts) {
			failIf(t, !test.circuit.Counts(errorType), "%v does not count %s", test.circuit.On, errorType)
		}
		for errorType := range strings.FieldsSeq(test.not) {
			failIf(t, test.circuit.Counts(errorType), "%v counts %s", test.circuit.On, errorType)
		}
	}
	failIf(t, !named(`null`).Counts("") || named(`"network"`).Counts(""), "a failure without an error type counts only where all do")
}

func TestABadErrorClassIsRefusedWithTheField(t *testing.T) {
	long := strings.Repeat("x", 101)
	many := strings.TrimSuffix(strings.Repeat(`"E",`, 201), ",")
	refusals(t, map[string]string{
		`{"retry_on":["A"],"never_retry":["B"]}`: "never_retry: expected retry_on or never_retry, found both",
		`{"retry_on":7}`:                         "retry_on: expected a list of texts, found 7",
		`{"never_retry":[""]}`:                   `never_retry[0]: expected an error type of 1-100 printable characters, found ""`,
		`{"never_retry":["a\nb"]}`:               `never_retry[0]: expected an error type of 1-100 printable characters, found "a\nb"`,
		`{"never_retry":["` + long + `"]}`:       `never_retry[0]: expected an error type of 1-100 printable characters, found "` + long[:60] + `"…`,
		`{"never_retry":[` + many + `]}`:         "never_retry: expected at most 200 error types, found 201",
		`{"delays_by_error":["1h"]}`:             "delays_by_error: expected an object of at most 200 error types and delays, such as {RateLimited: 1h}, found a list",
		`{"delays_by_error":{"A":"soon"}}`:       `delays_by_error.A: expected ` + wantDuration + `, found "soon" (a number from 0 is missing before "soon")`,
		`{"delays_by_error":{" A":"1h"}}`:        `delays_by_error.A: expected an error type of 1-100 printable characters, found " A"`,
	})
}

func TestEqualListsOfClassesAreEqualPolicies(t *testing.T) {
	first := policyOf(t, `{"never_retry":["permanent","Gone","Gone"]}`)
	second := policyOf(t, `{"never_retry":["SyntaxError","Gone","ForbiddenError","UnauthorizedError","NotFoundError","ValidationError"]}`)
	failIf(t, !first.Equal(second), "%v and %v", first.Classes.Never, second.Classes.Never)
	one := policyOf(t, `{"retry_on":"A"}`)
	failIf(t, !one.Equal(policyOf(t, `{"retry_on":["A"]}`)) || one.Equal(policyOf(t, `{"retry_on":[]}`)) || one.Equal(policyOf(t, `{}`)),
		"one class alone: %v", one.Classes.RetryOn)
}
