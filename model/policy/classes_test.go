package policy

import (
	"strings"
	"testing"
)

func TestABadErrorClassIsRefusedWithTheField(t *testing.T) {
	long := strings.Repeat("x", 101)
	many := strings.TrimSuffix(strings.Repeat(`"E",`, 201), ",")
	refusals(t, map[string]string{
		`{"retry_on":["A"],"never_retry":["B"]}`: "never_retry: expected retry_on or never_retry, found both",
		`{"never_retry":[""]}`:                   `never_retry[0]: expected an error type of 1-100 printable characters, found ""`,
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
	if !first.Equal(second) {
		t.Errorf("%v and %v", first.Classes.Never, second.Classes.Never)
	}
	if one := policyOf(t, `{"retry_on":"A"}`); !one.Equal(policyOf(t, `{"retry_on":["A"]}`)) || one.Equal(policyOf(t, `{"retry_on":[]}`)) || one.Equal(policyOf(t, `{}`)) {
		t.Errorf("one class alone: %v", one.Classes.RetryOn)
	}
}
