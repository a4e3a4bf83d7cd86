package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

func inExpression(t testing.TB, text string) *Expression {
	t.Helper()
	expression, err := parseExpression(text)
	must(t, err)
	return expression
}

// False or seconds, by the number of failures.
func TestAnExpressionSaysTheDelay(t *testing.T) {
	for text, want := range map[string]string{
		`false`:                                  "- - - - - -",        // none
		`k <= 3 ? 60 : false`:                    "1m 1m 1m - - -",     // simple: at most 3, each after a minute
		`k <= 5 ? min(2 ** (k - 1), 10) : false`: "1s 2s 4s 8s 10s -",  // exponential: max retry, max delay, curvature
		`k == 1 ? 0 : k < 5 ? "10m" : false`:     "0s 10m 10m 10m - -", // a duration as text
		`if k < 3 { "PT5M" } else { 1.5 }`:       "5m 5m 1s500ms 1s500ms 1s500ms 1s500ms",
		`let n = k - 1; n ** 2 * 60`:             "0s 1m 4m 9m 16m 25m", // n counts from 0 there
		`let d = ["1m", "2m"]; d[k % 2]`:         "2m 1m 2m 1m 2m 1m",
		`let r = lower(reason) contains "a"; let n = r ? 9 : k + k; n * 60`:               "2m 4m 6m 8m 10m 12m",
		`let r = lower(trim(reason)); r contains "a" || r matches "^b+[0-9]{3}$" ? 1 : 2`: "2s 2s 2s 2s 2s 2s",
		`round(0.4 * k)`: "0s 1s 1s 2s 2s 2s", `315360000`: "3650d 3650d 3650d 3650d 3650d 3650d",
		`0.0004 * k`: "0s 1ms 1ms 2ms 2ms 2ms",
	} {
		got := delaysOf(t, Policy{Retries: inExpression(t, text)}, 6)
		failIf(t, got != want, "%s:\n got %s\nwant %s", text, got, want)
	}
}

func TestAnExpressionKnowsTheOccasion(t *testing.T) {
	input := RetryInput{K: 2, Reason: "HTTP 503 from upstream", ErrorType: "NetworkError", QueueDepth: 1200, SinceSuccess: 36*time.Hour + 500*time.Millisecond}
	for text, want := range map[string]string{
		`error_type in ["Insufficient", "Gone"] ? "1d" : "1m"`: "1m",
		`reason contains "503" ? 30 : false`:                   "30s",
		`reason matches "^HTTP 5\\d\\d" ? 31 : false`:          "31s",
		`queue_depth > 1000 ? "15m" : "1m"`:                    "15m", // retry by queue size
		`seconds_since_success > 86400 ? "1h" : "1m"`:          "1h",
		`seconds_since_success == 129600.5 ? 1 : 2`:            "1s",
		`len(reason) + k`: "24s",
	} {
		delay, retry, err := inExpression(t, text).Delay(input)
		if err != nil || !retry || formatDelay(delay) != want {
			t.Errorf("%s: %s, %v, %v, want %s", text, formatDelay(delay), retry, err, want)
		}
	}
}

// What is no duration, and what fails while it is evaluated, is an error of the policy and not a delay.
func TestWhatIsNoDurationIsAnErrorOfThePolicy(t *testing.T) {
	const notSeconds = "expected 0 seconds to ten years, found "
	for text, want := range map[string]string{
		`true`:         "expected a duration or false, found true",
		`nil`:          "expected a duration or false, found <nil>",
		`{"delay": 5}`: "expected a duration or false, found map[string]interface {}",
		`$env`:         "expected a duration or false, found policy.retryEnv",
		`-1`:           notSeconds + "-1", `k / 0`: notSeconds + "+Inf", `315360001`: notSeconds + "3.15360001e+08",
		`0 / 0`:           notSeconds + "NaN",
		`1e300`:           notSeconds + "1e+300",
		`k % 0`:           "runtime error: integer divide by zero (1:3)",
		`[1, 2][k]`:       "index out of range: 3 (array length is 2) (1:7)",
		`{}.a.b`:          "cannot fetch b from <nil> (1:6)",
		`int(error_type)`: "invalid operation: int(boom) (1:1)",
		`"soon"`:          `expr: expected ` + wantDuration + `, found "soon" (a number from 0 is missing before "soon")`,
		`"11 years"`:      `expr: expected ` + wantDuration + `, found "11 years" (months and years have no fixed length)`,
	} {
		delay, retry, err := inExpression(t, text).Delay(RetryInput{K: 3, ErrorType: "boom"})
		failIf(t, err == nil || err.Error() != want || retry || delay != 0, "%s:\n got %v, %v, %v\nwant %s", text, delay, retry, err, want)
	}
}

func TestAnExpressionThatCannotBeReadIsRefusedWithFieldAndColumn(t *testing.T) {
	for text, reason := range map[string]string{
		``: "unexpected token EOF", `tries * 10`: "unknown name tries (1:1)", `env`: "unknown name env (1:1)",
		`k <`:                       "unexpected token EOF (1:3)",
		`k < 5 ? "10m"`:             `unexpected token EOF (1:13)`,
		`repeat("a", 1000000)`:      "unknown name repeat (1:1)",
		`reason * 2`:                "invalid operation: * (mismatched types string and int) (1:8)",
		`k ? 1 : 2`:                 "non-bool expression (type int) used as condition (1:1)",
		`reason matches "("`:        "error parsing regexp: missing closing ): `(` (1:8)",
		`reason matches error_type`: "the pattern of matches must be a text in quotes",
		`1..10`:                     "ranges are not allowed", `map([1, 2], # * k)`: "loops are not allowed",
		`k in 1..1000000000`:        "ranges are not allowed",
		`reduce([1], #acc + #)`:     "loops are not allowed",
		`let f = map([k], #); f[0]`: "loops are not allowed",

		// Loops that do not end with the predicate
		`reduce([1,2], #acc + #, 0)`: "loops are not allowed", `sortBy([1], #, 'desc')`: "loops are not allowed",

		// What is put together and named could be put together again, and be twice as long each time
		`let a = reason + reason; a + a`:        "a let must not name what is put together from others",
		`let a = [reason]; let b = [a, a]; 5`:   "a let must not name what is put together from others",
		`let a = {"b": [reason, reason]}; 5`:    "a let must not name what is put together from others",
		`let a = string($env); let b = a; 5`:    "a let must not name what is put together from others",
		`let a = k > 1 ? [k, k] : [k]; a[0]`:    "a let must not name what is put together from others",
		`(reason + reason) matches "a" ? 1 : 2`: "matches must not look at what is put together",
		`[reason][0] matches "a" ? 1 : 2`:       "matches must not look at what is put together",

		// A short pattern that becomes a large program, at once and together
		`reason matches "(a?b?){300}"`: "the patterns of matches must be simpler",
		`reason matches "[a-c]{100}x" || reason matches "[a-c]{100}y" || error_type matches "(z?){101}"`: "the patterns of matches must be simpler",
	} {
		want := "retries.expr: expected an expression over k, reason, error_type, queue_depth and seconds_since_success, found " + document.Found(text) + " (" + reason + ")"
		refusals(t, map[string]string{`{"retries":{"expr":` + document.Quote(text) + `}}`: want})
	}
	refusals(t, map[string]string{
		`{"retries":{"expr":7}}`:                                                 "retries.expr: expected a text, found 7",
		`{"retries":{"expr":"k","count":3}}`:                                     "retries.count: expected one of expr, found an unknown field",
		`{"retries":{"expr":` + document.Quote(strings.Repeat(" ", 1001)) + `}}`: "retries.expr: expected at most 1000 bytes, found 1001",
	})
	_, err := parseExpression(strings.Repeat("k+", 100) + "k")
	failIf(t, err == nil || !strings.Contains(err.Error(), "exceeds maximum allowed nodes"), "201 nodes: %v", err)
}

// nasty are short expressions that want to do much work or to break something.
var nasty = []string{
	strings.TrimSuffix(strings.Repeat("reason+", 99), "+"),
	strings.TrimSuffix(strings.Repeat(`reason matches "(a?){20}b" or `, 30), " or "),
	`reason matches "(((.*){9}){9}){9}x"`, `reason matches "(a+)+b" ? 1 : 2`, `reason matches "(((a{30}){30}){30})"`,
	strings.Repeat("upper(", 90) + "reason" + strings.Repeat(")", 90),
	strings.Repeat("(", 400) + "k" + strings.Repeat(")", 400), strings.Repeat("-", 900) + "k", strings.Repeat("[", 400) + strings.Repeat("]", 400),
	strings.Repeat("k**", 60) + "k", strings.Repeat("let a = k; ", 60) + "a", "[" + strings.TrimSuffix(strings.Repeat("1..9,", 60), ",") + "]",
	`int("99999999999999999999")`, `9223372036854775807 * k`, `-9223372036854775807 - k`, `"\u0000"`, "k //", "k /* ", `reason[1:100000]`, "\xff", "k;;k", `$env["no"]`,
}

func TestAPolicySaysWhetherItAsksForTheQueue(t *testing.T) {
	for text, want := range map[string]bool{`{}`: false, `{"retries":{"expr":"k"}}`: false, `{"retries":{"expr":"queue_depth > 9 ? 60 : 0"}}`: true, `{"retries":["1m"]}`: false} {
		policy := policyOf(t, text)
		failIf(t, policy.AsksQueueDepth() != want, "%s: %v", text, !want)
	}
}

func TestAnExpressionWithControlCharactersIsRefusedButMayNameThem(t *testing.T) {
	for _, r := range []string{"\x00", "\x07", "\x1b", "\x7f", "\u009b", "\u202e", "\u2028", "\u2066"} {
		_, err := parseExpression(`reason == "` + r + `" ? 1 : false`)
		refused := (*document.Error)(nil)
		failIf(t, !errors.As(err, &refused) || !strings.HasPrefix(refused.Want, "an expression without control characters"),
			"%q: expected a refusal, found %v", r, err)
	}
	for _, text := range []string{`reason == "\u001b" ? 1 : false`, "k < 3\n\t? 1\r\n\t: false", `reason == "größer 🙂" ? 1 : false`} {
		_, err := parseExpression(text)
		failIf(t, err != nil, "%q: expected an expression, found %v", text, err)
	}
}

func TestARefusedStrategyLeavesNoRetriesBehind(t *testing.T) {
	for _, fields := range []map[string]any{{"expr": "k +"}, {"by_age": "soon"}, {"strategy": "odd"}, {}} {
		retries, jitter, err := parseStrategy(fields)
		failIf(t, err == nil || retries != nil || jitter != 0, "%v: got %#v, jitter %v and error %v, want only an error", fields, retries, jitter, err)
	}
}

// ofTheDocument is the example of the issue: five minutes of overlap do no harm.
const ofTheDocument = "retry_at + timeout > planned_at + 5m ? planned_at : retry_at"

func aligned(t testing.TB, text string) *Aligner {
	t.Helper()
	aligner, err := parseAligner(map[string]any{"expr": text})
	stopIf(t, err != nil, "%s: %v", text, err)
	return aligner
}

func TestAnExpressionSaysWhenTheNextAttemptStarts(t *testing.T) {
	noon := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{ // now is 12:00, planned 14:00, the retry would start 13:08, the timeout is 1h
		ofTheDocument: "14:00:00",
		"retry_at + timeout > planned_at + 10m ? planned_at : retry_at": "13:08:00",
		"now": "12:00:00",
		"planned_at - retry_at < 1h30m ? planned_at : retry_at":            "14:00:00",
		"now + 1d - 1w + 6d + 90s":                                         "12:01:30",
		`error_type == "5m" || reason == '1h' ? planned_at : retry_at`:     "14:00:00",
		"k > 2 ? planned_at : retry_at // not after 5m":                    "14:00:00",
		"let late = retry_at + timeout; late > planned_at ? now : late":    "12:00:00",
		"timeout == 1h ? planned_at - 500ms : now":                         "13:59:59.5",
		"min(k, 2) > 1 ? now + 1h : now":                                   "13:00:00",
		"error_type matches '^5m$' ? retry_at + duration('1m') : retry_at": "13:09:00",
	} {
		got, err := aligned(t, text).At(AlignInput{RetryAt: noon.Add(68 * time.Minute), PlannedAt: noon.Add(2 * time.Hour), Now: noon, Timeout: time.Hour, K: 3, ErrorType: "5m"})
		at := got.Format("15:04:05.999")
		failIf(t, err != nil || at != want, "%s: %s, %v, want %s", text, at, err, want)
	}
}

func TestATimeThatIsNotToComeIsAnErrorOfThePolicy(t *testing.T) {
	now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"now - 1ms":                               "expected a time from now to ten years on, found 2026-01-05T11:59:59Z",
		"now + 3650d + 1ms":                       "expected a time from now to ten years on, found 2036-01-03T12:00:00Z",
		"[now, retry_at][k]":                      "index out of range: 7",
		`{"a": now}["b"]`:                         "expected a time such as retry_at or planned_at, found <nil>",
		"now + duration(reason)":                  `time: invalid duration ""`,
		"k > 1 ? now - timeout - 1h : planned_at": "expected a time from now to ten years on, found 2026-01-05T10:00:00Z",
	} {
		_, err := aligned(t, text).At(AlignInput{RetryAt: now, PlannedAt: now, Now: now, Timeout: time.Hour, K: 7})
		failIf(t, err == nil || !strings.HasPrefix(err.Error(), want), "%s: %v, want %s", text, err, want)
	}
}

func TestAnAlignmentHasTheLimitsOfADelay(t *testing.T) {
	for text, want := range map[string]string{
		"retry_at + 5": "invalid operation: + (mismatched types time.Time and int)",
		"true":         "expected struct, but got bool", "now()": "time.Time is not callable", "queue_depth > 1 ? now : now": "unknown name queue_depth",
		"now.Add(5m)": "methods are not allowed",
		"let f = [now][0].Format; f('1') == '' ? now : now": "methods are not allowed",
		"now + 5q":   "",
		"retry_at +": "unexpected token EOF",
		strings.Repeat("now == now ? ", 200) + "now": "",
	} {
		_, err := Parse(map[string]any{"alignment": map[string]any{"expr": text}})
		var refused *document.Error
		failIf(t, !errors.As(err, &refused) || refused.Field != "alignment.expr" || !strings.Contains(err.Error(), want),
			"%.40s: %v, want a refusal of alignment.expr with %s", text, err, want)
	}
	for _, value := range []any{map[string]any{}, map[string]any{"expr": 7}, map[string]any{"expr": "now", "else": 1}} {
		_, err := Parse(map[string]any{"alignment": value})
		failIf(t, !strings.HasPrefix(refusedField(err), "alignment."), "%v: %v", value, err)
	}
}

func TestAnAlignmentByExpressionIsStoredAndWarnedOf(t *testing.T) {
	p := policyOf(t, `{"alignment":{"expr":"`+ofTheDocument+`"}}`)
	text, err := json.Marshal(p)
	const want = `{"timeout":"10m","retries":["0s","1m","5m"],"alignment":{"expr":"retry_at + timeout \u003e planned_at + 5m ? planned_at : retry_at"},"on_exhausted":"next_planned"}`
	failIf(t, string(text) != want || err != nil, "got %s, %v", text, err)
	again, err := ParseStored(jsonOf(t, string(text)))
	failIf(t, err != nil || !again.Equal(p) || again.Alignment != AlignPlanned || again.AlignmentName() != "aligned by expression",
		"became %+v, %v", again, err)
	got := linted(t, fieldsOf{"timeout": "1m", "alignment": fieldsOf{"expr": "retry_at > planned_at ? now - 1h : now"}})
	failIf(t, len(got) != 1 || !strings.HasPrefix(got[0], "alignment.expr: fails for a retry in 2h, planned in 1h: expected a time from now"),
		"warned of %q", got)
}

func FuzzParseAligner(f *testing.F) {
	for _, text := range []string{ofTheDocument, "now + 1w", "'5m", "5m5m5m", "`5m`", "// 5m\nnow", "/* 5m", "retry_at.Add(5m)", "now - now + retry_at", "now.In(nil)", "99999999w + now"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		aligner, err := parseAligner(map[string]any{"expr": text})
		if err != nil {
			return
		}
		now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
		at, err := aligner.At(AlignInput{RetryAt: now.Add(time.Minute), PlannedAt: now.Add(time.Hour), Now: now, Timeout: time.Minute, K: 1})
		stopIf(t, err == nil && (at.Before(now) || at.After(now.Add(document.MaxDuration)) || at.Nanosecond()%1e6 != 0), "%q: %v", text, at)
	})
}
