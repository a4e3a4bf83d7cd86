package policy

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/document"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestADelayGrowsByItsStrategy(t *testing.T) {
	for text, want := range map[string]string{
		// The base is a minute unless it is named
		`{"strategy":"exponential"}`: "1m 2m 4m 8m 16m 32m 1h4m 2h8m",
		`{"strategy":"linear"}`:      "1m 2m 3m 4m 5m 6m 7m 8m", `{"strategy":"fixed"}`: "1m 1m 1m 1m 1m 1m 1m 1m",
		`{"strategy":"fibonacci"}`:                            "1m 1m 2m 3m 5m 8m 13m 21m", // 002: 1 or 2 failures: 1 unit, 6: 8 units
		`{"strategy":"exponential","base":"1s","factor":3}`:   "1s 3s 9s 27s 1m21s 4m3s 12m9s 36m27s",
		`{"strategy":"exponential","base":"1s","factor":1.5}`: "1s 1s500ms 2s250ms 3s375ms 5s62ms 7s593ms 11s390ms 17s85ms",
		`{"strategy":"exponential","cap":"5m"}`:               "1m 2m 4m 5m 5m 5m 5m 5m",
		`{"strategy":"exponential","count":3}`:                "1m 2m 4m - - - - -",
		`{"strategy":"linear","base":"2m","cap":"7m"}`:        "2m 4m 6m 7m 7m 7m 7m 7m",
		`{"strategy":"fibonacci","count":"unlimited"}`:        "1m 1m 2m 3m 5m 8m 13m 21m",
		`{"strategy":"fixed","base":90,"count":1}`:            "1m30s - - - - - - -",
		`"5s"`: "5s 5s 5s 5s 5s 5s 5s 5s",

		// The short form
		`"5s 10m"`: "5s 10s 20s 40s 1m20s 2m40s 5m20s 10m", `"3 5s 10m"`: "5s 10s 20s - - - - -", `" 2\tPT5S  20s "`: "5s 10s - - - - - -",
		`"3 5s"`:  "5s 5s 5s - - - - -",
		`"2 5 8"`: "5s 8s - - - - - -",

		// A list, and the word for the planned refresh
		`[0,"next","5m"]`: "0s next 5m - - - - -",
	} {
		got := delaysOf(t, policyOf(t, `{"retries":`+text+`}`), 8)
		failIf(t, got != want, "%s:\n got %s\nwant %s", text, got, want)
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
		failIf(t, policy.Retries != want || policy.Jitter != 0, "%s: %+v with jitter %g", text, policy.Retries, policy.Jitter)
	}
	p := policyOf(t, `{"retries":"0 5s"}`)
	failIf(t, p.Retries != nil || p.OnExhausted != GiveUp, "no retries became %+v", p)
}

func TestABadBackoffIsRefusedWithTheField(t *testing.T) {
	const ftl = `retries: expected "[<count>] <min> [<max>]" such as "10 5s 10m", or a list, found `
	refusals(t, map[string]string{
		`{"retries":""}`:              ftl + `""`,
		`{"retries":"10m 5s"}`:        ftl + `"10m 5s"`, // max below min
		`{"retries":"0s"}`:            ftl + `"0s"`,
		`{"retries":"3 5s 10m 1h"}`:   ftl + `"3 5s 10m 1h"`,
		`{"retries":"5 minutes"}`:     ftl + `"5 minutes"`, // not five retries
		`{"retries":"5s soon"}`:       ftl + `"5s soon"`,
		`{"retries":"-1 5s"}`:         `retries: expected a count from 0 to 1000, found "-1 5s"`,
		`{"retries":"1e999 5s 10m"}`:  ftl + `"1e999 5s 10m"`,
		`{"retries":{}}`:              "retries: expected " + wantRetries + ", found an object without strategy, by_age or expr",
		`{"retries":{"strategy":""}}`: `retries.strategy: expected fixed or linear or exponential or fibonacci, found ""`,

		`{"retries":{"strategy":"quadratic"}}`:                           `retries.strategy: expected fixed or linear or exponential or fibonacci, found "quadratic"`,
		`{"retries":{"strategy":"fixed","base":0}}`:                      `retries.base: expected a duration above zero, such as "1m", found 0`,
		`{"retries":{"strategy":"fixed","base":null}}`:                   `retries.base: expected a duration above zero, such as "1m", found nothing`,
		`{"retries":{"strategy":"fixed","cap":"59s"}}`:                   `retries.cap: expected at least the base of 1m, found "59s"`,
		`{"retries":{"strategy":"fixed","cap":true}}`:                    "retries.cap: expected a text or a number, found true",
		`{"retries":{"strategy":"fixed","count":true}}`:                  "retries.count: expected a text or a number, found true",
		`{"retries":{"strategy":"fixed","count":-1}}`:                    "retries.count: expected a whole number from 0 to 1000, or unlimited, found -1",
		`{"retries":{"strategy":"fixed","factor":2}}`:                    `retries.factor: expected strategy exponential with it, found "fixed"`,
		`{"retries":{"strategy":"exponential","factor":0.5}}`:            "retries.factor: expected a number from 1 to 100, found 0.5",
		`{"retries":{"strategy":"exponential","factor":"NaN"}}`:          `retries.factor: expected a number from 1 to 100, found "NaN"`,
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
			failIf(t, err != nil || !retry || delay < before || delay > longest || delay%time.Millisecond != 0,
				"%s after %d failures: %v, %v, %v", retries, k, delay, retry, err)
			before = delay
		}
	}
}

func TestFailureZeroIsNone(t *testing.T) {
	for _, k := range []int{0, -1, math.MinInt} {
		delay, retry, _ := (Backoff{Strategy: Fibonacci, Base: time.Minute, Retries: Unlimited}).Delay(RetryInput{K: k})
		failIf(t, retry || delay != 0, "failure %d: %v, %v", k, delay, retry)
	}
}

const progressive = `"retries":{"by_age":["1d: 5m","7d: 1h","14d: 12h","30d: 24h","180d: 96h","360d: 192h"]}`

const day = 24 * time.Hour

func TestRetriesBecomeRarerAsAModelGrowsOld(t *testing.T) {
	table := policyOf(t, `{`+progressive+`}`).Retries
	for _, test := range []struct {
		age  time.Duration
		want string
	}{
		{0, "5m"}, {time.Hour, "5m"}, {day, "5m"}, // the first row whose bound holds, not all six
		{day + 1, "1h"}, {7 * day, "1h"}, {7*day + 1, "12h"}, {14 * day, "12h"}, {14*day + 1, "1d"}, {30 * day, "1d"},
		{30*day + 1, "4d"}, {180 * day, "4d"}, {180*day + 1, "8d"}, {360 * day, "8d"}, {360*day + 1, "-"}, {3600 * day, "-"},
	} {
		delay, retry, err := table.Delay(RetryInput{K: 7, SinceSuccess: test.age})
		got := "-"
		if retry {
			got = formatDelay(delay)
		}
		if err != nil || got != test.want {
			t.Errorf("at the age of %s: %s, want %s (%v)", document.FormatDuration(test.age), got, test.want, err)
		}
	}
	failIf(t, table.Count() != Unlimited, "a table ends by age, not by a count")
}

func TestABadAgeTableIsRefusedWithTheField(t *testing.T) {
	const rows = "retries.by_age: expected 1 to 50 rows such as {up_to: 1d, delay: 5m}, found "
	row := `"1d: 5m",`
	refusals(t, map[string]string{
		`{"retries":{"by_age":[]}}`:   rows + "a list",
		`{"retries":{"by_age":"1d"}}`: rows + `"1d"`,
		`{"retries":{"by_age":[` + strings.TrimSuffix(strings.Repeat(row, 51), ",") + `]}}`: rows + "a list",

		`{"retries":{"by_age":["5m"]}}`:                                  `retries.by_age[0]: expected a row such as "1d: 5m", found "5m"`,
		`{"retries":{"by_age":["1d: 5m","1d: 1h"]}}`:                     "retries.by_age[1].up_to: expected more than 1d of the row before, found 1d",
		`{"retries":{"by_age":["0: 5m"]}}`:                               `retries.by_age[0].up_to: expected an age above zero, such as "1d", found "0"`,
		`{"retries":{"by_age":["soon: 5m"]}}`:                            `retries.by_age[0].up_to: expected ` + wantDuration + `, found "soon" (a number from 0 is missing before "soon")`,
		`{"retries":{"by_age":[{"delay":"5m"}]}}`:                        `retries.by_age[0].up_to: expected an age above zero, such as "1d", found nothing`,
		`{"retries":{"by_age":[{"up_to":"1d"}]}}`:                        `retries.by_age[0].delay: expected a delay such as "5m", found nothing`,
		`{"retries":{"by_age":[{"up_to":"1d","delay":true}]}}`:           `retries.by_age[0].delay: expected a delay such as 0, "5m" or next, found true`,
		`{"retries":{"by_age":[{"up_to":"1d","delay":"5m","every":1}]}}`: "retries.by_age[0].every: expected one of up_to, delay, found an unknown field",
	})
}

func TestABadJitterIsRefused(t *testing.T) {
	for value, found := range map[string]string{`-0.1`: `-0.1`, `1.1`: `1.1`, `"NaN"`: `"NaN"`, `"Inf"`: `"Inf"`, `1e400`: `1e400`, `"some"`: `"some"`} {
		refusals(t, map[string]string{`{"jitter":` + value + `}`: "jitter: expected a number from 0 to 1, found " + found})
	}
	refusals(t, map[string]string{`{"jitter":true}`: "jitter: expected a text or a number, found true"})
	for value, want := range map[string]float64{`0`: 0, `1`: 1, `"0.5"`: 0.5, `null`: 0.2} {
		got := policyOf(t, `{"retries":{"strategy":"fixed"},"jitter":`+value+`}`).Jitter
		failIf(t, got != want, "%s: %g", value, got)
	}
}

func TestAFractionIsFromZeroUpToButNotIncludingOne(t *testing.T) {
	sum := 0.0
	for i := range 100_000 {
		f := Fraction("jitter", fmt.Sprint(i))
		stopIf(t, !(f >= 0 && f < 1), "%d: %g", i, f)
		sum += f
	}
	mean := sum / 100_000
	failIf(t, math.Abs(mean-0.5) > 0.005, "mean %g", mean)
	failIf(t, Fraction("spread", "a") == Fraction("jitter", "a"), "two purposes have one number")
}

func TestARowMayBeWrittenInTwoWays(t *testing.T) {
	short := policyOf(t, `{"retries":{"by_age":["1d: 5m"," 1 week :next"]}}`)
	long := policyOf(t, `{"retries":{"by_age":[{"up_to":"P1D","delay":300},{"delay":"NEXT","up_to":604800}]}}`)
	failIf(t, !short.Equal(long), "%+v and %+v", short.Retries, long.Retries)
}

func TestTheBoundsOfABackoffAreAccepted(t *testing.T) {
	for text, good := range map[string]bool{
		`"1000 5s"`: true, `"1001 5s"`: false, `"-1 5s"`: false, `"5s 5s"`: true, `"5s 4s"`: false, `"0s"`: false, `"1ms"`: true, `"1 5s 6s 7s"`: false,
		`{"strategy":"fixed","base":"1m","cap":"1m"}`: true, `{"strategy":"fixed","base":"1m","cap":"59s"}`: false, `{"strategy":"fixed","base":"0s"}`: false,
		`{"strategy":"fixed","count":0}`: true, `{"strategy":"fixed","count":1000}`: true, `{"strategy":"fixed","count":1001}`: false, `{"strategy":"fixed","count":-1}`: false,
		`{"strategy":"exponential","factor":1}`: true, `{"strategy":"exponential","factor":0.99}`: false,
		`{"strategy":"exponential","factor":100}`: true, `{"strategy":"exponential","factor":100.1}`: false,
	} {
		_, err := Parse(jsonOf(t, `{"retries":`+text+`}`))
		failIf(t, err == nil != good, "%s: %v", text, err)
	}
}

func TestAStrategyThatNamesNoMoreIsOfAMinuteWithoutAnEnd(t *testing.T) {
	equal(t, Retries(Backoff{Strategy: Linear, Base: time.Minute, Retries: Unlimited}), policyOf(t, `{"retries":{"strategy":"linear"}}`).Retries)
	equal(t, Retries(Backoff{Strategy: Exponential, Base: time.Minute, Factor: DefaultFactor, Retries: Unlimited}), policyOf(t, `{"retries":{"strategy":"exponential"}}`).Retries)
}
