package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

func TestACronThatNamesBothKindsOfDayIsToldWithTheRuleForDaysThatAreBoth(t *testing.T) {
	for cron, want := range map[string]string{
		"0 6 1 * MON":     "FREQ=MONTHLY;BYMONTHDAY=1;BYDAY=MO;BYHOUR=6;BYMINUTE=0;BYSECOND=0",
		"0 6 1 1,7 1-5":   "FREQ=YEARLY;BYMONTH=1,7;BYMONTHDAY=1;BYDAY=MO,TU,WE,TH,FR;BYHOUR=6;BYMINUTE=0;BYSECOND=0",
		"*/15 * 13 * FRI": "FREQ=HOURLY;BYMONTHDAY=13;BYDAY=FR;BYMINUTE=0,15,30,45;BYSECOND=0",
		"0 6 1 * *":       "", "0 6 * * MON": "", "0 6 * * *": "", "0 6 1-31 * MON": "",
	} {
		rule := check.Got(RuleText(cron))(t)
		read := check.Got(ReadAs(rule, "", "2026-01-01", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))(t)
		failIf(t, want != "" && !strings.Contains(read.Sentence, `"`+want+`"`),
			"%s: got %q, want %q", cron, read.Sentence, want)
		failIf(t, want == "" && strings.Contains(read.Sentence, `"`), "%s: got %q", cron, read.Sentence)
	}
}

func TestWhatOfARuleIsMeantInSeveralWaysIsTold(t *testing.T) {
	for rule, want := range map[string]string{
		"FREQ=YEARLY;BYWEEKNO=20":          "all seven days",
		"FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO": "",
		"FREQ=DAILY;UNTIL=20270101":        "20270101T235959",
		"FREQ=DAILY;UNTIL=20270101T235959": "",
		"FREQ=DAILY":                       "", "FREQ=NO": "",
	} {
		got := strings.Join(Remarks(rule), "")
		failIf(t, want == "" && got != "" || !strings.Contains(got, want), "%s: got %q, want %q", rule, got, want)
	}
}

func TestAlternativesAreWhatOtherSystemsMean(t *testing.T) {
	for rule, want := range map[string][]string{
		"FREQ=HOURLY;INTERVAL=5":             {"FREQ=DAILY;BYHOUR=0,5,10,15,20;BYMINUTE=0;BYSECOND=0"},
		"FREQ=HOURLY;INTERVAL=5;BYMINUTE=30": nil, "FREQ=DAILY;INTERVAL=2": nil, "FREQ=NO": nil,
		"RRULE:FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=6\nRRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=6": {"FREQ=MONTHLY;BYMONTHDAY=1;BYDAY=MO;BYHOUR=6"},
		"RRULE:FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=6\nRRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=7": nil,
	} {
		got := Alternatives(rule)
		failIf(t, !slices.Equal(got, want), "%s: got %q, want %q", rule, got, want)
	}
}

func TestAStartThatChangesNoOccurrenceIsKnown(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		rule, one, other string
		want             bool
	}{
		{"FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "2026-01-01", "2026-11-28", true},
		{"FREQ=DAILY;BYHOUR=6,16", "2026-01-01", "2026-11-28", true},
		{"FREQ=DAILY;BYHOUR=6,16", "2026-01-01", "2026-11-28T00:05:00", false},
		{"FREQ=DAILY;BYHOUR=6", "2026-01-01", "2026-11-29", true},
		{"FREQ=DAILY;BYHOUR=6", "2026-01-01", "2026-11-30", false}, // the 29th is left out
		{"FREQ=DAILY;INTERVAL=2;BYHOUR=6", "2026-11-01", "2026-11-27", true},
		{"FREQ=DAILY;INTERVAL=2;BYHOUR=6", "2026-11-01", "2026-11-28", false},
		{"FREQ=HOURLY;INTERVAL=2", "2026-11-01", "2026-11-28", true},
		{"FREQ=HOURLY;INTERVAL=5", "2026-11-27", "2026-11-28", false},
		{"FREQ=HOURLY;INTERVAL=5;BYMINUTE=30", "2026-11-27", "2026-11-28", false},
		{"FREQ=WEEKLY", "2026-11-20", "2026-11-27", true}, {"FREQ=WEEKLY", "2026-11-20", "2026-11-28", false},
		{"FREQ=MONTHLY", "2026-01-28", "2026-11-28", true}, {"FREQ=MONTHLY;INTERVAL=5", "2026-01-28", "2026-11-28", true},
		{"FREQ=MONTHLY;INTERVAL=3", "2026-01-28", "2026-11-28", false},
		{"FREQ=DAILY;COUNT=900", "2026-01-01", "2026-11-28", false},
		{"RRULE:FREQ=DAILY;BYHOUR=6\nRRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=9\nEXDATE:20261130T060000Z", "2026-01-01", "2026-11-28", true},
	} {
		one, other := check.Got(Parse(c.rule, "Europe/Berlin", c.one))(t), check.Got(Parse(c.rule, "Europe/Berlin", c.other))(t)
		got := one.SameAfter(other, now)
		failIf(t, got != c.want, "%s from %s or %s: got %t, want %t", c.rule, c.one, c.other, got, c.want)
		same, at, then, more := true, now, now, true
		for i := 0; i < 1000 && same && more; i++ {
			var also bool
			at, more = one.Next(at)
			then, also = other.Next(then)
			same = more == also && at.Equal(then)
		}
		failIf(t, got != same, "%s from %s or %s: got %t, and their occurrences say %t", c.rule, c.one, c.other, got, same)
	}
}
