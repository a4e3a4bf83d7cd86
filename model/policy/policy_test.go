package policy

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model/document"
)

func TestAPolicyIsRead(t *testing.T) {
	minutes := func(list ...int) Delays {
		delays := make(Delays, len(list))
		for i, m := range list {
			delays[i] = time.Duration(m) * time.Minute
		}
		return delays
	}
	for _, test := range []struct {
		text string
		want Policy
	}{
		// Unnamed fields come from the built-in policy; no retries are set
		{`{}`, Default()},
		{`{"retries":null,"alignment":""}`, Default()},
		{`{"retries":[]}`, Policy{Timeout: 10 * time.Minute, Alignment: AlignPlanned, OnExhausted: NextPlanned}},
		{`{"retries":" None "}`, Policy{Timeout: 10 * time.Minute, Alignment: AlignPlanned, OnExhausted: NextPlanned}},
		{`{"retries":[0]}`, Policy{Timeout: 10 * time.Minute, Retries: minutes(0), Alignment: AlignPlanned, OnExhausted: NextPlanned}},
		{`{"retries":[],"on_exhausted":"give_up"}`, Policy{Timeout: 10 * time.Minute, Alignment: AlignPlanned, OnExhausted: GiveUp}},
		{`{"retries":[0],"on_exhausted":"next_planned","alignment":"align_planned"}`, Policy{Timeout: 10 * time.Minute, Retries: minutes(0), Alignment: AlignPlanned, OnExhausted: NextPlanned}},

		// Bug 7: all spellings of "at once", and of a delay
		{`{"timeout":"1 hour","retries":[0,null,"","0","PT0M","1 minute","PT5M","10m",900,900.0]}`,
			Policy{Timeout: time.Hour, Retries: minutes(0, 0, 0, 0, 0, 1, 5, 10, 15, 15), Alignment: AlignPlanned, OnExhausted: NextPlanned}},
		{`{"timeout":3600}`, Policy{Timeout: time.Hour, Retries: minutes(0, 1, 5), Alignment: AlignPlanned, OnExhausted: NextPlanned}},
		{`{"timeout":"1ms"}`, Policy{Timeout: time.Millisecond, Retries: minutes(0, 1, 5), Alignment: AlignPlanned, OnExhausted: NextPlanned}},
	} {
		got, err := Parse(jsonOf(t, test.text))
		diff := cmp.Diff(test.want, got)
		failIf(t, err != nil || diff != "", "%s: %v, -want +got\n%s", test.text, err, diff)
	}
}

func TestAPolicyIsRefusedWithTheField(t *testing.T) {
	for text, want := range map[string]string{
		`7`:                     "expected an object with " + strings.Join(fieldNames, ", ") + ", found 7",
		`{"retry_interval":[]}`: "retry_interval: expected one of " + strings.Join(fieldNames, ", ") + ", found an unknown field",
		`{"timeout":true}`:      "timeout: expected a text or a number, found true",
		`{"timeout":0}`:         `timeout: expected a duration above zero, such as "10m", or none, found 0`,
		`{"timeout":null}`:      `timeout: expected a duration above zero, such as "10m", or none, found nothing`,
		`{"retries":true}`:      "retries: expected " + wantRetries + ", found true",
		`{"retries":3}`: `retries: expected {strategy: fixed, base: 1m, count: 3} or a list of 3 delays for 3 retries, [3s] for one retry after 3 seconds, ` +
			`"3s" for a retry every 3 seconds, or [] for none, found 3`,
		`{"retries":" 3"}`: `retries: expected {strategy: fixed, base: 1m, count: 3} or a list of 3 delays for 3 retries, [3s] for one retry after 3 seconds, ` +
			`"3s" for a retry every 3 seconds, or [] for none, found "3"`,
		`{"retries":[0,[]]}`:          `retries[1]: expected a delay such as 0, "5m" or next, found a list`,
		`{"alignment":"until_lunch"}`: `alignment: expected align_planned or until_success or planned_only or whichever_first or between_planned, found "until_lunch"`,
		`{"name":"inline-x"}`:         `name: expected 1-200 letters, digits or _.:@/+=~- (first a letter or digit, not inline-…), found "inline-x"`,
		`{"queue_timeout":true}`:      "queue_timeout: expected a text or a number, found true",
		`{"notify":["disabled","x"]}`: `notify: expected a list of disabled, recovered, stale, fresh and suspect, found "x"`,
		`{"email":{"payload":"a b"}}`: `email: expected an e-mail address, {payload: FIELD}, {label: NAME} or none, found an object`,
		`{"on_exhausted":"panic"}`:    `on_exhausted: expected give_up or next_planned, found "panic"`,
		`{"failing_from":0}`:          "failing_from: expected a whole number from 1 to 1000, found 0",
		`{"email":"ann"}`:             `email: expected an e-mail address, {payload: FIELD}, {label: NAME} or none, found "ann"`,
		`{"email":"a@b\r\nBcc: c@d"}`: `email: expected an e-mail address, {payload: FIELD}, {label: NAME} or none, found "a@b\r\nBcc: c@d"`,
	} {
		_, err := Parse(jsonOf(t, text))
		failIf(t, err == nil || err.Error() != want, "%s:\n got %v\nwant %s", text, err, want)
	}
	_, err := Parse(fieldsOf{"retries": make([]any, maxRetries+1)})
	failIf(t, err == nil || err.Error() != "retries: expected at most 1000 delays, found 1001", "1001 delays: %v", err)
	for text, field := range map[string]string{
		`{"timeout":"soon"}`: "timeout", `{"retries":["1m","soon"]}`: "retries[1]", `{"retries":[-1]}`: "retries[0]", `{"rrule":"FREQ=NEVER"}`: "rrule FREQ",
		`{"rrule":7}`: "rrule", `{"rrule":"FREQ=DAILY","timezone":"Mars/Base"}`: "timezone", `{"timezone":"Local"}`: "timezone", `{"timezone":7}`: "timezone",
		`{"dtstart":7}`: "dtstart", `{"rrule":"FREQ=DAILY","dtstart":"soon"}`: "dtstart", `{"dtstart":"2026-01-01"}`: "rrule",
		`{"rrule":"FREQ=DAILY;UNTIL=20000101T000000Z"}`: "rrule",
	} {
		_, err := Parse(jsonOf(t, text))
		failIf(t, refusedField(err) != field, "%s: %v, want a refusal of %s", text, err, field)
	}
}

func TestEqualPoliciesHaveEqualNamesHoweverTheyAreWritten(t *testing.T) {
	spellings := []string{
		`{"timeout":"1h","retries":[0,"1m"]}`, `{"retries":["PT0M",60],"timeout":"60 minutes","alignment":"align_planned","on_exhausted":"next_planned"}`,
	}
	first, _ := Parse(jsonOf(t, spellings[0]))
	second, _ := Parse(jsonOf(t, spellings[1]))
	failIf(t, first.ContentName() != second.ContentName() || !first.Equal(second),
		"%s and %s: %s and %s", spellings[0], spellings[1], first.ContentName(), second.ContentName())
	for _, other := range []string{
		`{"timeout":"1h","retries":[0,"2m"]}`, `{"timeout":"2h","retries":[0,"1m"]}`, `{"timeout":"1h","retries":[0,"1m"],"on_exhausted":"give_up"}`,
		`{"timeout":"1h","retries":[0]}`,
	} {
		policy, err := Parse(jsonOf(t, other))
		failIf(t, err != nil || policy.ContentName() == first.ContentName() || policy.Equal(first), "%s is taken for %s: %v", other, spellings[0], err)
	}
}

func TestNDelaysAreNRetries(t *testing.T) {
	delays := Delays{time.Second, time.Minute}
	for k, want := range map[int]time.Duration{1: time.Second, 2: time.Minute} {
		got, retry, _ := delays.Delay(RetryInput{K: k})
		failIf(t, !retry || got != want, "failure %d: %v, %v", k, got, retry)
	}
	for _, k := range []int{-1, 0, 3, 100} {
		got, retry, _ := delays.Delay(RetryInput{K: k})
		failIf(t, retry || got != 0, "failure %d: %v, %v", k, got, retry)
	}
}

func TestOnlyTheWordNoneMeansNoTimeout(t *testing.T) {
	for _, text := range []string{`"none"`, `"None"`, `" NONE "`} {
		policy := policyOf(t, `{"timeout":`+text+`}`)
		failIf(t, policy.Timeout != 0 || policy.canonical() != policyOf(t, `{"timeout":"none"}`).canonical(), "%s: %v", text, policy.Timeout)
	}
	const want = `timeout: expected a duration above zero, such as "10m", or none, found `
	refusals(t, map[string]string{`{"timeout":0}`: want + "0", `{"timeout":null}`: want + "nothing", `{"timeout":""}`: want + `""`, `{"timeout":"0s"}`: want + `"0s"`})
	refusals(t, map[string]string{`{"timeout":-1}`: `timeout: expected ` + wantDuration + `, found "-1" (a number from 0 is missing before "-1")`})
}

// policyOf reads a policy that must be good.
func policyOf(t testing.TB, text string) Policy {
	t.Helper()
	p, err := Parse(jsonOf(t, text))
	stopIf(t, err != nil, "%s: %v", text, err)
	return p
}

// jsonOf decodes JSON as a control message is decoded: numbers stay as they are written.
func jsonOf(t testing.TB, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	stopIf(t, err != nil, "%s: %v", text, err)
	return value
}

func refusals(t *testing.T, wants map[string]string) {
	t.Helper()
	for text, want := range wants {
		_, err := Parse(jsonOf(t, text))
		failIf(t, err == nil || err.Error() != want, "%s:\n got %v\nwant %s", text, err, want)
	}
}

// refusedField is the field that an error names; "-" when it is no refusal.
func refusedField(err error) string {
	var refused *document.Error
	if !errors.As(err, &refused) {
		return "-"
	}
	return refused.Field
}

const wantDuration = `a duration such as "90s", "1h30m", "PT5M" or "10 minutes"`

// delaysOf asks a policy for the delays after the failures from 1 to n; "-" where there is no retry.
func delaysOf(t testing.TB, p Policy, n int) string {
	t.Helper()
	var texts []string
	for k := range n {
		delay, retry, err := p.Retries.Delay(RetryInput{K: k + 1})
		switch {
		case err != nil:
			t.Fatal(err)
		case !retry:
			texts = append(texts, "-")
		default:
			texts = append(texts, formatDelay(delay))
		}
	}
	return strings.Join(texts, " ")
}

func TestAPolicyThatCannotBeWrittenHasNoName(t *testing.T) {
	defer func() {
		fault := recover()
		failIf(t, fault == nil, "expected a panic, as a policy without a jitter must not pass for another one")
	}()
	_ = Policy{Jitter: math.NaN()}.ContentName()
}

func TestTheCanonicalFormIsWhatJSONMakesOfAPolicy(t *testing.T) {
	p := Default()
	for _, reason := range []string{"", `ask <a&b> "x"\y`, "\u2028 é \u2029 😀", "<"} {
		p.DisabledReason = reason
		want, err := json.Marshal(p)
		if err != nil || p.canonical() != string(want) {
			t.Errorf("\n got %s\nwant %s, %v", p.canonical(), want, err)
		}
	}
}
