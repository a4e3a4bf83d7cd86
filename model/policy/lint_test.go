package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model/schedule"
)

// lintedAt is a Saturday.
var lintedAt = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)

// linted returns the warnings about a policy alone, as texts.
func linted(t *testing.T, fields map[string]any) []string {
	t.Helper()
	p, err := Parse(fields)
	stopIf(t, err != nil, "%v: %v", fields, err)
	texts := []string{}
	for _, w := range subjectOf(t, &p, "").Lint(p.Dtstart != "", lintedAt) {
		texts = append(texts, w.String())
	}
	return texts
}

// subjectOf is a model with a policy, and with a rule of its own unless it is empty.
func subjectOf(t testing.TB, p *Policy, rule string) Subject {
	t.Helper()
	s := Subject{Policy: p, Rule: rule, Timezone: p.Timezone}
	dtstart := "2026-11-21T00:00:00"
	if rule == "" {
		rule, dtstart = p.Rule, p.Anchor()
	}
	if rule != "" {
		var err error
		if s.Schedule, err = schedule.Parse(rule, s.Timezone, dtstart); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

const (
	everyTwoHours = "FREQ=HOURLY;INTERVAL=2"
	at6And16Daily = "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0"
)

type fieldsOf = map[string]any

func TestWhatIsSeldomMeantIsWarnedOf(t *testing.T) {
	const noneRuns = "with align_planned no retry ever ends before the planned refresh, so none runs; see whichever_first"
	for name, test := range map[string]struct {
		policy fieldsOf
		want   string // the beginning of the only warning
	}{
		"the timeout of the first document is its interval": {fieldsOf{"rrule": everyTwoHours, "timeout": "2h", "retries": []any{"0s"}},
			"timeout: 2h is not shorter than the interval of 2h: " + noneRuns},
		"bounds between which there is no number": {fieldsOf{"guard": []any{fieldsOf{"rows": fieldsOf{"min": 10.0}}, fieldsOf{"rows": fieldsOf{"max": 5.0}}}},
			"guard: no number is at least 10 and at most 5: each result is doubted by its rows"},
		"a timeout beyond the interval, between planned": {
			fieldsOf{"rrule": everyTwoHours, "timeout": "3h", "retries": []any{"0s"}, "alignment": "between_planned"},
			"timeout: 3h is not shorter than the interval of 2h: with between_planned no retry"},
		"a timeout as long as the shorter of two intervals": {fieldsOf{"rrule": at6And16Daily, "timeout": "10h", "retries": []any{"0s"}},
			"timeout: 10h is not shorter than the shortest interval of 10h: no retry runs inside of that"},
		"a timeout as long as the longer interval": {fieldsOf{"rrule": at6And16Daily, "timeout": "14h", "retries": []any{"0s"}},
			"timeout: 14h is not shorter than the interval of 14h: " + noneRuns},
		"delays that add up to more than the interval": {fieldsOf{"rrule": everyTwoHours, "timeout": "1m", "retries": []any{"1h", "1h", "1s", "next"}},
			"retries: the delays add up to 2h1s, more than the interval of 2h: the planned refresh takes the place of the last ones"},
		"a strategy without an end": {fieldsOf{"rrule": everyTwoHours, "timeout": "1m", "retries": fieldsOf{"strategy": "fixed", "base": "1m"}},
			"retries: have no count and there is no give_up_after: a model that is broken for good is tried for ever"},
		"an expression that fails": {fieldsOf{"timeout": "1m", "retries": fieldsOf{"expr": `k < 3 ? "1m" : "soon"`}},
			"retries.expr: fails for failure 3 without reason and error type: "},
		"an expression without an end": {fieldsOf{"timeout": "1m", "retries": fieldsOf{"expr": `"1m"`}},
			"retries.expr: still retries after 100 failures and there is no give_up_after"},
		"a rule that is over": {fieldsOf{"rrule": "FREQ=DAILY;BYHOUR=6;UNTIL=20261121T060000Z", "timeout": "1m"},
			"rrule: has no occurrence after now"},
		"a rule that was over before today": {fieldsOf{"rrule": "FREQ=DAILY;BYHOUR=6;UNTIL=20261101T060000Z", "timeout": "1m"},
			"rrule: has no occurrence after now"},
		"a rule that ends in a month": {fieldsOf{"rrule": "FREQ=DAILY;BYHOUR=6;UNTIL=20261221T060000Z", "timeout": "1m"},
			"rrule: ends soon: no occurrence after 2026-12-21T06:00:00Z"},
		"a rule of minutes that ends in a month": {fieldsOf{"rrule": "FREQ=MINUTELY;UNTIL=20261221T060000Z", "timeout": "1s", "retries": []any{}},
			"rrule: ends soon: no occurrence after 2026-12-21T06:00:00Z"},
		"giving up before the second refresh": {fieldsOf{"rrule": everyTwoHours, "timeout": "1m", "retries": []any{"0s"}, "give_up_after": "2h"},
			"give_up_after: 2h is not longer than the interval of 2h: the first failure can be final"},
		"stale before the second refresh": {fieldsOf{"rrule": everyTwoHours, "timeout": "1m", "retries": []any{"0s"}, "fresh_within": "2h"},
			"fresh_within: 2h is not longer than the interval of 2h: the model is stale before its next planned refresh has ended"},
		"a probe as late as giving up": {fieldsOf{"timeout": "1m", "give_up_after": "1h", "circuit": fieldsOf{"key": "{policy}", "open_after": "5 of 10", "probe": "1h"}},
			"circuit.probe: 1h is not shorter than the give_up_after of 1h: the circuit waits longer for a probe than a failing model may for a success"},
		"a spread beyond the interval": {fieldsOf{"rrule": everyTwoHours, "timeout": "1m", "spread": "121m"},
			"spread: 2h1m is longer than the interval of 2h, which is then the spread"},
		"every second day from nobody knows when": {fieldsOf{"rrule": "FREQ=DAILY;INTERVAL=2", "timeout": "1m"},
			"dtstart: is missing, and the rule depends on it: it counts from 2001-01-01T00:00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			got := linted(t, test.policy)
			failIf(t, len(got) != 1 || !strings.HasPrefix(got[0], test.want), "expected one warning %q, found %q", test.want, got)
		})
	}
}

func TestASanePolicyHasNoWarning(t *testing.T) {
	for name, policy := range map[string]fieldsOf{
		"the big table":              {"rrule": at6And16Daily, "timeout": "1h", "retries": []any{"0s", "1m", "5m", "15m", "30m", "1h"}, "give_up_after": "1w"},
		"the thumbnail":              {"timeout": "1m", "retries": []any{"0s", "1m", "5m"}},
		"a moment below the limits":  {"rrule": everyTwoHours, "timeout": "119m", "retries": []any{"1h", "1h"}, "give_up_after": "121m", "spread": "2h"},
		"a moment above the limits":  {"rrule": everyTwoHours, "timeout": "1m", "retries": []any{"0s"}, "fresh_within": "121m", "warn_within": "1h", "give_up_after": "121m", "circuit": fieldsOf{"key": "{policy}", "open_after": "5 of 10", "probe": "2h"}},
		"whichever comes first":      {"rrule": everyTwoHours, "timeout": "3h", "retries": []any{"0s"}, "alignment": "whichever_first"},
		"no retries":                 {"rrule": everyTwoHours, "timeout": "3h", "retries": "none"},
		"no timeout":                 {"rrule": everyTwoHours, "timeout": "none", "retries": []any{"0s"}},
		"endless but for the window": {"rrule": everyTwoHours, "timeout": "1m", "retries": fieldsOf{"strategy": "fixed", "base": "1m"}, "give_up_after": "1d"},
		"an age table that ends":     {"rrule": at6And16Daily, "timeout": "1m", "retries": fieldsOf{"by_age": []any{fieldsOf{"up_to": "1d", "delay": "5m"}}}},
		"an expression that ends":    {"timeout": "1m", "retries": fieldsOf{"expr": `k < 99 ? "1m" : false`}},
		"one within the window":      {"timeout": "1m", "retries": fieldsOf{"expr": `"1m"`}, "give_up_after": "1d"},
		"a month and a second":       {"rrule": "FREQ=SECONDLY;INTERVAL=20;UNTIL=20261221T060020Z", "timeout": "1s", "retries": []any{}},
		"waiting for the planned":    {"rrule": everyTwoHours, "timeout": "1m", "retries": []any{"next", "next", "next"}},
	} {
		got := linted(t, policy)
		failIf(t, len(got) > 0, "%s: expected no warning, found %q", name, got)
	}
}

func TestOnlyARuleThatDependsOnItsFirstDayMissesOne(t *testing.T) {
	for rule, depends := range map[string]bool{
		"FREQ=DAILY": false, "FREQ=DAILY;INTERVAL=2": true, "FREQ=DAILY;INTERVAL=7": true, "FREQ=DAILY;INTERVAL=30": true,
		"FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0": false,
		"FREQ=HOURLY": false, "FREQ=HOURLY;INTERVAL=2": false, "FREQ=HOURLY;INTERVAL=24": false, "FREQ=HOURLY;INTERVAL=5": true, "FREQ=HOURLY;INTERVAL=48": true,
		"FREQ=MINUTELY;INTERVAL=15": false, "FREQ=MINUTELY;INTERVAL=7": true, "FREQ=SECONDLY;INTERVAL=7": true,
		"FREQ=WEEKLY": true, "FREQ=WEEKLY;BYDAY=MO": false, "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO": true, "FREQ=WEEKLY;INTERVAL=3;BYDAY=MO,FR": true,
		"FREQ=MONTHLY": true, "FREQ=MONTHLY;BYMONTHDAY=1": false, "FREQ=MONTHLY;BYDAY=-1FR": false,
		"FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=1": true, "FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=-1": true,
		"FREQ=YEARLY": true, "FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=1": false, "FREQ=YEARLY;INTERVAL=2;BYMONTH=3;BYMONTHDAY=1": true,
		"FREQ=DAILY;COUNT=90": true, "FREQ=DAILY;UNTIL=20300101T000000Z": false,
		"RDATE:20300101T000000Z": false,
	} {
		for _, day := range []int{0, 9, 10, 11, 40} { // the last and the first of a month, and the last of a year
			now := lintedAt.AddDate(0, 0, day)
			subject := subjectOf(t, &Policy{Timeout: time.Second}, rule)
			if got := warnsOf(subject.Lint(false, now), "dtstart"); got != depends {
				t.Errorf("%s on %s: expected %v, found %v", rule, now.Format(time.DateOnly), depends, got)
				break
			}
			failIf(t, warnsOf(subject.Lint(true, now), "dtstart"), "%s: warned although the author has named a dtstart", rule)
		}
	}
}

func TestTheDtstartOfAPolicyServesTheModelsThatHaveNone(t *testing.T) {
	for dtstart, want := range map[string]string{"": schedule.DefaultDtstart, "2026-01-01T00:00:00": ""} {
		warnings := subjectOf(t, &Policy{Timeout: time.Minute, Rule: "FREQ=DAILY;INTERVAL=2", Dtstart: dtstart}, "").Lint(false, lintedAt)
		failIf(t, want == "" && len(warnings) > 0 || want != "" && (len(warnings) != 1 || !strings.HasSuffix(warnings[0].Text, want)),
			"dtstart %q: found %v", dtstart, warnings)
	}
	own := subjectOf(t, &Policy{Timeout: time.Minute, Dtstart: "2026-01-01T00:00:00"}, "FREQ=DAILY;INTERVAL=2")
	if warnings := own.Lint(false, lintedAt); len(warnings) != 1 || !strings.HasSuffix(warnings[0].Text, "midnight of the day on which the model is created") {
		t.Errorf("expected the rule of the model to count from its creation, found %v", warnings)
	}
}

func TestAScheduleThatMeetsAChangeOfTheClocksIsWarnedOf(t *testing.T) {
	const meets = "rrule: meets changes of the clocks: "
	for _, test := range []struct{ zone, rule, want string }{
		{"Europe/Berlin", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0",
			meets + "2027-03-28: 02:30 does not exist on that day, runs at 03:30; 2027-10-31: 02:30 occurs twice, runs at the first; " +
				"2028-03-26: 02:30 does not exist on that day, runs at 03:30; 2028-10-29: 02:30 occurs twice, runs at the first"},
		{"America/New_York", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0",
			meets + "2027-03-14: 02:30 does not exist on that day, runs at 03:30; 2028-03-12: 02:30 does not exist on that day, runs at 03:30"},
		{"America/New_York", "FREQ=DAILY;BYHOUR=1;BYMINUTE=0;BYSECOND=0",
			meets + "2027-11-07: 01:00 occurs twice, runs at the first; 2028-11-05: 01:00 occurs twice, runs at the first"},
		{"Europe/Berlin", "FREQ=WEEKLY;BYDAY=SU;BYHOUR=2;BYMINUTE=0;BYSECOND=0;UNTIL=20270601T000000Z",
			meets + "2027-03-28: 02:00 does not exist on that day, runs at 03:00"},
		{"Europe/Berlin", "FREQ=SECONDLY;BYHOUR=2;BYMINUTE=59", meets + "2027-03-28: 02:59 does not exist on that day, runs at 03:59; 2027-10-31: "},
		{"Europe/Berlin", "FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0", ""},
		{"Europe/Berlin", "FREQ=DAILY;BYHOUR=1;BYMINUTE=59;BYSECOND=59", ""},
		{"Europe/Berlin", "FREQ=WEEKLY;BYDAY=MO;BYHOUR=2;BYMINUTE=30;BYSECOND=0", ""},
		{"Europe/Berlin", "FREQ=HOURLY", ""},
		{"Asia/Tokyo", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0", ""},
		{"", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0", ""},
	} {
		got := strings.Join(linted(t, fieldsOf{"rrule": test.rule, "timezone": test.zone, "timeout": "1ms"}), " | ")
		failIf(t, test.want == "" && got != "" || !strings.HasPrefix(got, test.want), "%s %s: %s", test.zone, test.rule, cmp.Diff(test.want, got))
	}
}

func warnsOf(warnings []Warning, field string) bool {
	for _, w := range warnings {
		if w.Field == field {
			return true
		}
	}
	return false
}
