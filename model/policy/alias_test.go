package policy

import (
	"strings"
	"testing"
)

const aliasedCanonical = `{"timeout":"10m","retries":{"strategy":"exponential","base":"1m","cap":"1h","count":3},"alignment":"align_planned","on_exhausted":"give_up",` +
	`"never_retry":["ForbiddenError","NotFoundError","SyntaxError","UnauthorizedError","ValidationError"]}`

func TestAPolicyMayUseTheNamesOfAnotherScheduler(t *testing.T) {
	replace := strings.NewReplacer
	for text, want := range map[string]string{
		// The worker's configuration, and its defaults
		`{"maxRetries":3,"baseRetryDelay":60000,"maxRetryDelay":3600000,"retryStrategy":"exponential","jitterEnabled":true,"jitterFactor":0.2}`: aliasedCanonical,
		`{"retryStrategy":"exponential","never_retry":"permanent"}`:                                                                             aliasedCanonical,

		// The override of one job
		`{"maxRetries":5,"retryDelay":30000,"useExponentialBackoff":true}`: replace(`"base":"1m"`, `"base":"30s"`, `"count":3`, `"count":5`).Replace(aliasedCanonical),

		// A number is milliseconds, a text with a unit is what it says
		`{"maxRetryDelay":7200000,"retryDelay":"90s"}`: replace(`"1m"`, `"1m30s"`, `"1h"`, `"2h"`).Replace(aliasedCanonical),

		// Jitter
		`{"jitterFactor":0.5}`:                       replace(`"alignment"`, `"jitter":0.5,"alignment"`).Replace(aliasedCanonical),
		`{"jitterEnabled":false,"jitterFactor":0.5}`: replace(`"alignment"`, `"jitter":0,"alignment"`).Replace(aliasedCanonical),

		// Beside our own words
		`{"jitterEnabled":true,"jitter":0.5}`:               replace(`"alignment"`, `"jitter":0.5,"alignment"`).Replace(aliasedCanonical),
		`{"maxRetries":3,"never_retry":[]}`:                 aliasedCanonical[:strings.Index(aliasedCanonical, `,"never_retry"`)] + "}",
		`{"maxRetries":3,"timeout":"1h","give_up_after":7}`: replace(`"10m"`, `"1h"`, `,"never`, `,"give_up_after":"7s","never`).Replace(aliasedCanonical),
	} {
		got := policyOf(t, text).canonical()
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestAContradictionBetweenTwoSpellingsIsRefused(t *testing.T) {
	unknown := "expected one of " + strings.Join(fieldNames, ", ") + ", found an unknown field"
	refusals(t, map[string]string{
		`{"maxRetries":3,"retries":[0]}`:                                "maxRetries: " + unknown,
		`{"retries":{"strategy":"fixed"},"jitterFactor":0.2}`:           "jitterFactor: " + unknown,
		`{"baseRetryDelay":7200000}`:                                    `retries.cap: expected at least the base of 2h, found "1h"`,
		`{"useExponentialBackoff":"yes"}`:                               `retries.strategy: expected fixed or linear or exponential or fibonacci, found "yes"`,
		`{"jitterEnabled":"yes"}`:                                       `jitter: expected a number from 0 to 1, found "yes"`,
		`{"retryDelay":30000,"baseRetryDelay":60000}`:                   "retryDelay: " + unknown,
		`{"useExponentialBackoff":false,"retryStrategy":"exponential"}`: "useExponentialBackoff: " + unknown,
		`{"jitter":0.1,"jitterEnabled":false}`:                          "jitterEnabled: " + unknown,
	})
}

func TestAPolicyMayUseTheNamesOfTheOrigin(t *testing.T) {
	for text, same := range map[string]string{
		`{"retry_intervals":[0,"PT5M","NEXT"]}`:                `{"retries":["0s","5m","next"],"on_exhausted":"give_up"}`,
		`{"retry_intervals":[]}`:                               `{"retries":"none"}`,
		`{"alignment":"retry_until_success","timeout":"PT1H"}`: `{"alignment":"until_success","timeout":"1h"}`,
		`{"alignment":"retry_until_planned"}`:                  `{"alignment":"planned_only"}`,
		`{"retry_strategy":{"expr":"planned_at"}}`:             `{"alignment":{"expr":"planned_at"}}`,
	} {
		if got, want := policyOf(t, text).canonical(), policyOf(t, same).canonical(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
	unknown := ": expected one of " + strings.Join(fieldNames, ", ") + ", found an unknown field"
	refusals(t, map[string]string{
		`{"retry_intervals":[0],"retries":[0]}`:                     "retry_intervals" + unknown,
		`{"retry_strategy":"retry_at","alignment":"align_planned"}`: "retry_strategy" + unknown,
	})
}

func TestAStrategyMayBeNoneSimpleOrHaveACurvature(t *testing.T) {
	for text, same := range map[string]string{
		`{"strategy":"none"}`: `[]`,
		`{"strategy":"simple","max_retries":3,"max_delay":"5m"}`:                       `{"strategy":"fixed","base":"5m","cap":"5m","count":3}`,
		`{"strategy":"exponential","max_retry":5,"max_delay":3600,"curvature":1.5}`:    `{"strategy":"exponential","count":5,"cap":"1h","factor":1.5}`,
		`{"strategy":"linear","max_retries":"unlimited","base":"2m","max_delay":"7m"}`: `{"strategy":"linear","base":"2m","cap":"7m"}`,
	} {
		want := policyOf(t, `{"retries":`+same+`}`)
		if strings.Contains(text, "simple") {
			want.Jitter, want.OnExhausted = 0, GiveUp
		}
		if got := policyOf(t, `{"retries":`+text+`}`); got.canonical() != want.canonical() {
			t.Errorf("%s:\n got %s\nwant %s", text, got.canonical(), want.canonical())
		}
	}
	refusals(t, map[string]string{
		`{"retries":{"strategy":"none","count":3}}`:                   "retries.count: expected one of strategy, found an unknown field",
		`{"retries":{"strategy":"simple","count":3,"max_retries":3}}`: "retries.max_retries: expected one of strategy, base, factor, cap, count, found an unknown field",
	})
}

// A list that is used up is the end in the documents that refreshd comes from. In our own words a model with a rule goes on.
func TestAPolicyInAShapeOfTheSourcesGivesUpAfterItsListUnlessItSaysOtherwise(t *testing.T) {
	for text, want := range map[string]OnExhausted{
		`{"retry_intervals":[0,"PT5M","PT10M","PT15M","PT30M","PT1H"],"timeout":"PT1H","rrule":"FREQ=HOURLY"}`: GiveUp,
		`{"retry_intervals":[]}`: NextPlanned, // one failure would disable it
		`{"retries":{"strategy":"simple","max_retries":3,"max_delay":"5m"}}`: GiveUp,
		`{"retries":"10 5s"}`:  GiveUp,
		`{"retries":"5s 10m"}`: NextPlanned, // it has no end
		`{"rrule":"RRULE:FREQ=HOURLY;INTERVAL=2","timeout":"1 hour","retries":[0,"1 minute","5 minute","10 minutes","15 minutes"]}`: GiveUp,

		// Our own shape
		`{"rrule":"FREQ=HOURLY;INTERVAL=2","timeout":"1h","retries":[0,"1m","5m"]}`:                    NextPlanned,
		`{"rrule":"RRULE:FREQ=HOURLY\nEXDATE:20260101T000000","timeout":"1h","retries":[0,"1m","5m"]}`: NextPlanned,

		// Who says otherwise gets it
		`{"retry_intervals":[0],"on_exhausted":"next_planned"}`: NextPlanned,
	} {
		p := policyOf(t, text)
		if p.OnExhausted != want {
			t.Errorf("%s: %s, want %s", text, p.OnExhausted, want)
		}
		if again := policyOf(t, p.canonical()); !again.Equal(p) {
			t.Errorf("%s: what is stored is read as %s", text, again.canonical())
		}
	}
	if got, want := policyOf(t, `{"retries":"//ftl:retry 10 5s"}`), policyOf(t, `{"retries":"10 5s"}`); !got.Equal(want) {
		t.Errorf("with its annotation: %s, want %s", got.canonical(), want.canonical())
	}
	d, err := Read(jsonOf(t, `{"retries":"10 5s"}`))
	if err != nil {
		t.Fatal(err)
	}
	usual := Default()
	usual.OnExhausted = NextPlanned
	if p, err := d.Complete(usual); err != nil || p.OnExhausted != GiveUp {
		t.Errorf("completed with a default that goes on: %s, %v", p.OnExhausted, err)
	}
}
