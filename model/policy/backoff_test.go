package policy

import (
	"math"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

func TestADelayGrowsByItsStrategy(t *testing.T) {
	for text, want := range map[string]string{
		// The base is a minute unless it is named
		`{"strategy":"exponential"}`:                          "1m 2m 4m 8m 16m 32m 1h4m 2h8m",
		`{"strategy":"linear"}`:                               "1m 2m 3m 4m 5m 6m 7m 8m",
		`{"strategy":"fixed"}`:                                "1m 1m 1m 1m 1m 1m 1m 1m",
		`{"strategy":"fibonacci"}`:                            "1m 1m 2m 3m 5m 8m 13m 21m", // 002: 1 or 2 failures: 1 unit, 6: 8 units
		`{"strategy":"fibonacci","base":"1d"}`:                "1d 1d 2d 3d 5d 8d 13d 3w",
		`{"strategy":"exponential","base":"1s","factor":3}`:   "1s 3s 9s 27s 1m21s 4m3s 12m9s 36m27s",
		`{"strategy":"exponential","base":"1s","factor":1}`:   "1s 1s 1s 1s 1s 1s 1s 1s",
		`{"strategy":"exponential","base":"1s","factor":1.5}`: "1s 1s500ms 2s250ms 3s375ms 5s62ms 7s593ms 11s390ms 17s85ms",
		`{"strategy":"exponential","cap":"1m"}`:               "1m 1m 1m 1m 1m 1m 1m 1m",
		`{"strategy":"exponential","cap":"5m"}`:               "1m 2m 4m 5m 5m 5m 5m 5m",
		`{"strategy":"exponential","count":3}`:                "1m 2m 4m - - - - -",
		`{"strategy":"linear","base":"2m","cap":"7m"}`:        "2m 4m 6m 7m 7m 7m 7m 7m",
		`{"strategy":"fibonacci","count":"unlimited"}`:        "1m 1m 2m 3m 5m 8m 13m 21m",
		`{"strategy":"fixed","base":90,"count":1}`:            "1m30s - - - - - - -",

		// The short form
		`"5s"`:             "5s 5s 5s 5s 5s 5s 5s 5s",
		`"5s 10m"`:         "5s 10s 20s 40s 1m20s 2m40s 5m20s 10m",
		`"3 5s"`:           "5s 5s 5s - - - - -",
		`"3 5s 10m"`:       "5s 10s 20s - - - - -",
		`"5s 5s"`:          "5s 5s 5s 5s 5s 5s 5s 5s",
		`" 2\tPT5S  20s "`: "5s 10s - - - - - -",
		`"2 5 8"`:          "5s 8s - - - - - -",

		// A list, and the word for the planned refresh
		`[0,"next","5m"]`: "0s next 5m - - - - -",
	} {
		if got := delaysOf(t, policyOf(t, `{"retries":`+text+`}`), 8); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestTheShortFormOfABackoffIsReadToTheLetter(t *testing.T) {
	for text, want := range map[string]Backoff{
		"5s":        {Strategy: Fixed, Base: 5 * time.Second, Factor: 0, Cap: 0, Retries: Unlimited},
		"5s 10m":    {Strategy: Exponential, Base: 5 * time.Second, Factor: 2, Cap: 10 * time.Minute, Retries: Unlimited},
		"10 5s":     {Strategy: Fixed, Base: 5 * time.Second, Factor: 0, Cap: 0, Retries: 10},
		"10 5s 10m": {Strategy: Exponential, Base: 5 * time.Second, Factor: 2, Cap: 10 * time.Minute, Retries: 10},
	} {
		policy := policyOf(t, `{"retries":"`+text+`"}`)
		if policy.Retries != want || policy.Jitter != 0 {
			t.Errorf("%s: %+v with jitter %g", text, policy.Retries, policy.Jitter)
		}
	}
	if p := policyOf(t, `{"retries":"0 5s"}`); p.Retries != nil || p.OnExhausted != NextPlanned {
		t.Errorf("no retries became %+v", p)
	}
}

func TestABadBackoffIsRefusedWithTheField(t *testing.T) {
	const ftl = `retries: expected "[<count>] <min> [<max>]" such as "10 5s 10m", or a list, found `
	refusals(t, map[string]string{
		`{"retries":""}`:              ftl + `""`,
		`{"retries":"10m 5s"}`:        ftl + `"10m 5s"`, // max below min
		`{"retries":"0s"}`:            ftl + `"0s"`,
		`{"retries":"3 0s 1m"}`:       ftl + `"3 0s 1m"`,
		`{"retries":"3 5s 10m 1h"}`:   ftl + `"3 5s 10m 1h"`,
		`{"retries":"5 minutes"}`:     ftl + `"5 minutes"`, // not five retries
		`{"retries":"soon"}`:          ftl + `"soon"`,
		`{"retries":"5s soon"}`:       ftl + `"5s soon"`,
		`{"retries":"5s next"}`:       ftl + `"5s next"`,
		`{"retries":"-1 5s"}`:         `retries: expected a count from 0 to 1000, found "-1 5s"`,
		`{"retries":"1001 5s"}`:       `retries: expected a count from 0 to 1000, found "1001 5s"`,
		`{"retries":"1e999 5s 10m"}`:  ftl + `"1e999 5s 10m"`,
		`{"retries":{}}`:              "retries: expected " + wantRetries + ", found an object without strategy, by_age or expr",
		`{"retries":{"base":"1m"}}`:   "retries: expected " + wantRetries + ", found an object without strategy, by_age or expr",
		`{"retries":{"strategy":""}}`: `retries.strategy: expected fixed or linear or exponential or fibonacci, found ""`,

		`{"retries":{"strategy":"quadratic"}}`:                           `retries.strategy: expected fixed or linear or exponential or fibonacci, found "quadratic"`,
		`{"retries":{"strategy":"fixed","base":0}}`:                      `retries.base: expected a duration above zero, such as "1m", found 0`,
		`{"retries":{"strategy":"fixed","base":null}}`:                   `retries.base: expected a duration above zero, such as "1m", found nothing`,
		`{"retries":{"strategy":"fixed","cap":"59s"}}`:                   `retries.cap: expected at least the base of 1m, found "59s"`,
		`{"retries":{"strategy":"fixed","cap":true}}`:                    "retries.cap: expected a text or a number, found true",
		`{"retries":{"strategy":"fixed","count":true}}`:                  "retries.count: expected a text or a number, found true",
		`{"retries":{"strategy":"fixed","count":-1}}`:                    "retries.count: expected a whole number from 0 to 1000, or unlimited, found -1",
		`{"retries":{"strategy":"fixed","count":1.5}}`:                   "retries.count: expected a whole number from 0 to 1000, or unlimited, found 1.5",
		`{"retries":{"strategy":"fixed","count":1001}}`:                  "retries.count: expected a whole number from 0 to 1000, or unlimited, found 1001",
		`{"retries":{"strategy":"fixed","factor":2}}`:                    `retries.factor: expected strategy exponential with it, found "fixed"`,
		`{"retries":{"strategy":"exponential","factor":0.5}}`:            "retries.factor: expected a number from 1 to 100, found 0.5",
		`{"retries":{"strategy":"exponential","factor":"NaN"}}`:          `retries.factor: expected a number from 1 to 100, found "NaN"`,
		`{"retries":{"strategy":"exponential","factor":"Inf"}}`:          `retries.factor: expected a number from 1 to 100, found "Inf"`,
		`{"retries":{"strategy":"exponential","factor":1e999}}`:          "retries.factor: expected a number from 1 to 100, found 1e999",
		`{"retries":{"strategy":"exponential","tries":3}}`:               "retries.tries: expected one of strategy, base, factor, cap, count, found an unknown field",
		`{"retries":{"strategy":"exponential","expr":"1","by_age":[1]}}`: "retries.expr: expected one of by_age, found an unknown field",
	})
}

func TestNoNumberOfFailuresOverflowsADelay(t *testing.T) {
	for _, retries := range []string{
		`{"strategy":"exponential"}`, `{"strategy":"exponential","factor":100,"base":"3650d"}`, `{"strategy":"linear","base":"3650d"}`,
		`{"strategy":"fibonacci"}`, `{"strategy":"fixed","base":"3650d"}`, `{"strategy":"exponential","cap":"1h"}`, `{"strategy":"fibonacci","cap":"1h"}`,
	} {
		backoff := policyOf(t, `{"retries":`+retries+`}`).Retries.(Backoff)
		longest := document.MaxDuration
		if backoff.Cap > 0 {
			longest = backoff.Cap
		}
		before := time.Duration(0)
		for _, k := range []int{1, 2, 10, 60, 63, 64, 65, 92, 93, 94, 100, 101, 1000, 1024, 1025, 1 << 20, math.MaxInt32, math.MaxInt} {
			delay, retry, err := backoff.Delay(RetryInput{K: k})
			if err != nil || !retry || delay < before || delay > longest || delay%time.Millisecond != 0 {
				t.Errorf("%s after %d failures: %v, %v, %v", retries, k, delay, retry, err)
			}
			before = delay
		}
	}
}

func TestFailureZeroIsNone(t *testing.T) {
	for _, k := range []int{0, -1, math.MinInt} {
		if delay, retry, _ := (Backoff{Strategy: Fibonacci, Base: time.Minute, Retries: Unlimited}).Delay(RetryInput{K: k}); retry || delay != 0 {
			t.Errorf("failure %d: %v, %v", k, delay, retry)
		}
	}
}
