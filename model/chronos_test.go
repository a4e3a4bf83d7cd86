package model

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/policy"
)

const chronosCanonical = `{"timeout":"10m","retries":{"strategy":"exponential","base":"1m","cap":"1h","count":3},"alignment":"align_planned","on_exhausted":"give_up",` +
	`"never_retry":["ForbiddenError","NotFoundError","SyntaxError","UnauthorizedError","ValidationError"]}`

func TestThePolicyOfDocument004IsReadInItsOwnWords(t *testing.T) { // 004/2, 004/3, 004/6, 004/7
	replace := strings.NewReplacer
	for text, want := range map[string]string{
		// The worker's configuration, and its defaults
		`{"maxRetries":3,"baseRetryDelay":60000,"maxRetryDelay":3600000,"retryStrategy":"exponential","jitterEnabled":true,"jitterFactor":0.2}`: chronosCanonical,
		`{"maxRetries":3}`:       chronosCanonical,
		`{"jitterEnabled":true}`: chronosCanonical,
		`{"retryStrategy":"exponential","never_retry":"permanent"}`: chronosCanonical,

		// The override of one job
		`{"maxRetries":5,"retryDelay":30000,"useExponentialBackoff":true}`: replace(`"base":"1m"`, `"base":"30s"`, `"count":3`, `"count":5`).Replace(chronosCanonical),
		`{"useExponentialBackoff":false}`:                                  replace("exponential", "fixed").Replace(chronosCanonical),
		`{"retryStrategy":"fibonacci"}`:                                    replace("exponential", "fibonacci").Replace(chronosCanonical),
		`{"retryStrategy":"linear","retryDelay":"30000"}`:                  replace("exponential", "linear", `"1m"`, `"30s"`).Replace(chronosCanonical),

		// A number is milliseconds, a text with a unit is what it says
		`{"retryDelay":1}`:                             replace(`"1m"`, `"1ms"`).Replace(chronosCanonical),
		`{"baseRetryDelay":"PT2M"}`:                    replace(`"1m"`, `"2m"`).Replace(chronosCanonical),
		`{"maxRetryDelay":7200000,"retryDelay":"90s"}`: replace(`"1m"`, `"1m30s"`, `"1h"`, `"2h"`).Replace(chronosCanonical),

		// Jitter
		`{"jitterFactor":0.5}`:                       replace(`"alignment"`, `"jitter":0.5,"alignment"`).Replace(chronosCanonical),
		`{"jitterEnabled":false}`:                    replace(`"alignment"`, `"jitter":0,"alignment"`).Replace(chronosCanonical),
		`{"jitterEnabled":false,"jitterFactor":0.5}`: replace(`"alignment"`, `"jitter":0,"alignment"`).Replace(chronosCanonical),
		`{"jitterEnabled":true,"jitterFactor":0.5}`:  replace(`"alignment"`, `"jitter":0.5,"alignment"`).Replace(chronosCanonical),

		// Beside our own words
		`{"jitterEnabled":true,"jitter":0.5}`:               replace(`"alignment"`, `"jitter":0.5,"alignment"`).Replace(chronosCanonical),
		`{"maxRetries":3,"never_retry":[]}`:                 chronosCanonical[:strings.Index(chronosCanonical, `,"never_retry"`)] + "}",
		`{"maxRetries":3,"timeout":"1h","give_up_after":7}`: replace(`"10m"`, `"1h"`, `,"never`, `,"give_up_after":"7s","never`).Replace(chronosCanonical),
	} {
		got := policyOf(t, text).Canonical()
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestThreeRetriesAreFourRuns(t *testing.T) { // 004/4, 004/5, 004/12, decision 1
	const job = `"policy":{"maxRetries":3,"jitterEnabled":false}`
	runLives(t, []lifeTest{
		{job, "00:00 wake | 00:01 failure", "#1, next 00:02: retry 1/3 +1m, none planned"},
		{job, "00:00 wake | 00:01 failure | 00:02 wake | 00:03 failure", "#2, next 00:05: retry 2/3 +2m, none planned"},
		{job, "00:00 wake | 00:01 failure | 00:02 wake | 00:03 failure | 00:05 wake | 00:06 failure", "#3, next 00:10: retry 3/3 +4m, none planned"},
		{job, "00:00 wake | 00:01 failure | 00:02 wake | 00:03 failure | 00:05 wake | 00:06 failure | 00:10 wake | 00:11 failure",
			"#4 disabled (Cannot refresh after 4 attempts): final: exhausted after 4"},
		{job, `00:00 wake | 00:01 failure "error_type":"NotFoundError"`, "#1 disabled (Cannot refresh after 1 attempt): final: never retry NotFoundError"},
	})
}

func TestAContradictionBetweenTwoSpellingsIsRefused(t *testing.T) { // decision 12
	unknown := "expected one of " + strings.Join(policy.PolicyFields, ", ") + ", found an unknown field"
	refusals(t, map[string]string{
		`{"maxRetries":3,"retries":[0]}`:                                "maxRetries: " + unknown,
		`{"retries":{"strategy":"fixed"},"jitterFactor":0.2}`:           "jitterFactor: " + unknown,
		`{"maxRetries":-1}`:                                             "retries.count: expected a whole number from 0 to 1000, or unlimited, found -1",
		`{"maxRetries":"many"}`:                                         `retries.count: expected a whole number from 0 to 1000, or unlimited, found "many"`,
		`{"retryDelay":true}`:                                           "retries.base: expected a text or a number, found true",
		`{"retryDelay":-5}`:                                             `retries.base: expected a duration such as "90s", "1h30m", "PT5M" or "10 minutes", found "-5" (a number from 0 is missing before "-5")`,
		`{"retryDelay":0}`:                                              `retries.base: expected a duration above zero, such as "1m", found "0ms"`,
		`{"baseRetryDelay":7200000}`:                                    `retries.cap: expected at least the base of 2h, found "1h"`,
		`{"retryStrategy":"random"}`:                                    `retries.strategy: expected fixed or linear or exponential or fibonacci, found "random"`,
		`{"useExponentialBackoff":"yes"}`:                               `retries.strategy: expected fixed or linear or exponential or fibonacci, found "yes"`,
		`{"jitterFactor":2}`:                                            "jitter: expected a number from 0 to 1, found 2",
		`{"jitterEnabled":"yes"}`:                                       `jitter: expected a number from 0 to 1, found "yes"`,
		`{"maxretries":3}`:                                              "maxretries: " + unknown,
		`{"retryDelay":30000,"baseRetryDelay":60000}`:                   "retryDelay: " + unknown,
		`{"useExponentialBackoff":false,"retryStrategy":"exponential"}`: "useExponentialBackoff: " + unknown,
		`{"jitter":0.1,"jitterFactor":0.2}`:                             "jitterFactor: " + unknown,
		`{"jitter":0.1,"jitterEnabled":false}`:                          "jitterEnabled: " + unknown,
	})
}
