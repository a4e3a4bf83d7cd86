package schedule

import (
	"errors"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/document"
)

func TestCronBecomesTheRuleThatAPersonWouldWrite(t *testing.T) {
	for cron, want := range map[string]string{
		"* * * * *":           "FREQ=MINUTELY;BYSECOND=0",
		"*/7 * * * *":         "FREQ=HOURLY;BYMINUTE=0,7,14,21,28,35,42,49,56;BYSECOND=0",
		"*/60 */24 * * *":     "FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0",
		"*/30 9-11 * * Mon-5": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11;BYMINUTE=0,30;BYSECOND=0",
		"0 06,16 * * *":       "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0",
		"0 0 * * 7":           "FREQ=WEEKLY;BYDAY=SU;BYHOUR=0;BYMINUTE=0;BYSECOND=0",
		"0 0 * * fri-sun":     "FREQ=WEEKLY;BYDAY=FR,SA,SU;BYHOUR=0;BYMINUTE=0;BYSECOND=0",
		"0 0 * * 0-7":         "FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0",
		"0 0 1,15 * *":        "FREQ=MONTHLY;BYMONTHDAY=1,15;BYHOUR=0;BYMINUTE=0;BYSECOND=0",
		"0 6 1 */3 *":         "FREQ=YEARLY;BYMONTH=1,4,7,10;BYMONTHDAY=1;BYHOUR=6;BYMINUTE=0;BYSECOND=0",
		"0 6 * JAN,dec *":     "FREQ=DAILY;BYMONTH=1,12;BYHOUR=6;BYMINUTE=0;BYSECOND=0",
		"0 6 13 * FRI": "RRULE:FREQ=MONTHLY;BYMONTHDAY=13;BYHOUR=6;BYMINUTE=0;BYSECOND=0\n" +
			"RRULE:FREQ=WEEKLY;BYDAY=FR;BYHOUR=6;BYMINUTE=0;BYSECOND=0",
		"0 6 1-31 * FRI": "FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0",
		"0 6 31 2 FRI":   "FREQ=WEEKLY;BYMONTH=2;BYDAY=FR;BYHOUR=6;BYMINUTE=0;BYSECOND=0",
		"@midnight":      "FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0",
		"@weekly":        "FREQ=WEEKLY;BYDAY=SU;BYHOUR=0;BYMINUTE=0;BYSECOND=0",
		"@annually":      "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1;BYHOUR=0;BYMINUTE=0;BYSECOND=0",
		"0 */1 * * *":    "FREQ=HOURLY;BYMINUTE=0;BYSECOND=0",
		"0 0-23 * * *":   "FREQ=DAILY" + allHours + ";BYMINUTE=0;BYSECOND=0",
		"* 0-23 * * *":   "FREQ=MINUTELY" + allHours + ";BYSECOND=0",
		"@every 1h30m":   "FREQ=MINUTELY;INTERVAL=90",
		"@every 2 days":  "FREQ=HOURLY;INTERVAL=48",
		"@every 100s":    "FREQ=SECONDLY;INTERVAL=100",
	} {
		got, err := RuleText(cron)
		failIf(t, got != want || err != nil, "%s: got %s, %v; want %s", cron, got, err, want)
	}
}

func TestCronThatHasNoExactRuleIsRefusedWithWhatToWriteInstead(t *testing.T) {
	for cron, want := range map[string]string{
		"60 * * * *":       `minute (field 1 of the cron expression), found "60"`,
		"0 24 * * *":       `numbers from 0 to 23, as 1, 1-5, */2 or 1,5, in the hour (field 2 of the cron expression), found "24"`,
		"0 0 1 13 *":       "or JAN to DEC",
		"0 0 * * MONDAY":   "or SUN to SAT",
		"0 1,,2 * * *":     "field 2",
		"*/0 * * * *":      "field 1",
		"*/90 * * * *":     `"every 90 minutes"`,
		"5/10 * * * *":     "BYMINUTE=5,15,25,35,45,55",
		"0 22-2 * * *":     "BYHOUR=0,1,2,22,23",
		"0 0 * * FRI-MON":  "BYDAY=MO,FR,SA,SU",
		"0 0 * *":          "five cron fields (minute, hour, day of month, month, day of week), found 4 in",
		"0 0 6 * * *":      `"0 6 * * *" (field 1 is the seconds)`,
		"0 6 ? * MON":      `write "0 6 * * MON"`,
		"0 6 L * *":        "BYMONTHDAY=-1",
		"0 6 LW * *":       "BYMONTHDAY=-2,-3;BYDAY=FR",
		"0 6 15W * *":      "BYMONTHDAY=14;BYDAY=FR",
		"0 6 * * 5L":       "FREQ=MONTHLY;BYDAY=-1FR",
		"0 6 * * MON#2":    "FREQ=MONTHLY;BYDAY=2MO",
		"H 6 * * *":        "spread",
		"0 6 */2 * MON":    "crons disagree",
		"0 6 1 * */2":      "crons disagree",
		"TZ=UTC 0 6 * * *": "timezone field",
		"@reboot":          "a start of the machine is none",
		"@fortnightly":     "@weekly",
		"@every 1.5s":      "whole seconds",
		"@every 1 month":   "whole seconds",
		"@every 1000001s":  "at most 1000000",
	} {
		rule, err := RuleText(cron)
		field := (*document.Error)(nil)
		failIf(t, !errors.As(err, &field) || field.Field != "rrule" || !strings.Contains(err.Error(), want),
			"%s: got %q, %v; want a refusal with %q", cron, rule, err, want)
	}
}

// cronMatch are the numbers that a field allows. It shares nothing with the reader of cron expressions.
func cronMatch(text string, first, last int, names string) map[int]bool {
	for i, name := range strings.Fields(names) {
		text = strings.ReplaceAll(text, name, strconv.Itoa(first+i))
	}
	allowed := map[int]bool{}
	for item := range strings.SplitSeq(text, ",") {
		span, every, _ := strings.Cut(item, "/")
		low, high, ranged := strings.Cut(span, "-")
		from, to, step := atoi(low), atoi(high), max(1, atoi(every))
		switch {
		case span == "*":
			from, to = first, last
		case !ranged:
			to = from
		}
		for n := from; n <= to; n += step {
			allowed[n] = true
		}
	}
	return allowed
}

const (
	cronMonths = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"
	cronDays   = "SUN MON TUE WED THU FRI SAT"
)

// cronNext finds the first minute after an instant that an expression matches, one after the other, within two years.
func cronNext(expression string) func(after time.Time) (time.Time, bool) {
	f := strings.Fields(expression)
	minutes, hours, dates := cronMatch(f[0], 0, 59, ""), cronMatch(f[1], 0, 23, ""), cronMatch(f[2], 1, 31, "")
	months, days := cronMatch(f[3], 1, 12, cronMonths), cronMatch(f[4], 0, 7, cronDays)
	runsOn := func(at time.Time) bool {
		onDate, onDay := dates[at.Day()], days[int(at.Weekday())] || at.Weekday() == time.Sunday && days[7]
		if f[2] == "*" || f[4] == "*" {
			return months[int(at.Month())] && onDate && onDay
		}
		return months[int(at.Month())] && (onDate || onDay)
	}
	return func(after time.Time) (time.Time, bool) {
		for at := after.Truncate(time.Minute).Add(time.Minute); at.Before(cronEnd); {
			switch {
			case !runsOn(at):
				at = at.Truncate(24*time.Hour).AddDate(0, 0, 1)
			case !hours[at.Hour()]:
				at = at.Truncate(time.Hour).Add(time.Hour)
			case !minutes[at.Minute()]:
				at = at.Add(time.Minute)
			default:
				return at, true
			}
		}
		return time.Time{}, false
	}
}

var (
	cronStart = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	cronEnd   = time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC) // a leap year among them
)

// compareCron asks the schedule for what follows some of the minutes, and now and then leaps over others.
func compareCron(t *testing.T, r *rand.Rand, expression string, checks int) {
	t.Helper()
	next, at := cronNext(expression), cronStart.Add(-time.Second)
	rule, err := RuleText(expression)
	must(t, err)
	s, err := Parse(rule, "", "2026-12-31T23:59:59")
	if err != nil {
		_, found := next(at)
		stopIf(t, found || !strings.Contains(err.Error(), "never"), "%s is %s: %v", expression, rule, err)
		return
	}
	for i := range checks {
		want, found := next(at)
		got, ok := s.Next(at)
		stopIf(t, found != (ok && got.Before(cronEnd)) || found && !got.Equal(want),
			"%s is %s: after %s comes %s, expected %s, %t", expression, rule, at, got, want, found)
		if !found {
			return
		}
		if at = want; i%10 == 9 {
			at = at.Add(time.Duration(r.Int63n(int64(cronEnd.Sub(at)))))
		}
	}
}

func TestACronExpressionOccursInExactlyTheMinutesThatItMatches(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	for _, expression := range []string{
		"* * * * *", "*/5 9-17 * * 1-5", "*/7 * * * *", "0 0 29 2 *", "0 0 30 2 *", "0 0 31 * *", "0 0 31 2,4 1", "0 0 13 * 5", "0 0 * * 7", "0 0 1 1 0",
		"59 23 31 12 *", "0-59/1 * * * *", "1-59/2 */3 * * *", "0 12 1-7 * 1", "30 4 1,15 * 5", "0 0 * * 5-7", "0 0 * * 0-7/7", "0 0 1-31 2 6,7", "5,*/20 6 * * *",
		"0 0 29 2 2", "* 0 1 JAN *", "0 22 * * MON-FRI", "23 0-20/2 * * *", "5 4 * * SUN",
	} {
		compareCron(t, r, expression, long.Or(1_000, 3_000))
	}
	for range long.Or(300, 2500) {
		compareCron(t, r, randomCron(r), 60)
	}
}

// randomCron leaves out a * with a step beside another kind of day, which is refused.
func randomCron(r *rand.Rand) string {
	for {
		f := []string{randomField(r, 0, 59, ""), randomField(r, 0, 23, ""), randomField(r, 1, 31, ""),
			randomField(r, 1, 12, cronMonths), randomField(r, 0, 7, cronDays)}
		if f[2] == "*" || f[4] == "*" || !strings.Contains(f[2]+f[4], "*") {
			return strings.Join(f, " ")
		}
	}
}

func randomField(r *rand.Rand, first, last int, names string) string {
	if r.Intn(3) == 0 {
		return "*"
	}
	var items []string
	for range 1 + r.Intn(3) {
		low := first + r.Intn(last-first+1)
		high, item := low+r.Intn(last-low+1), strconv.Itoa(low)
		if list := strings.Fields(names); len(list) > low-first && r.Intn(3) == 0 {
			item = list[low-first]
		}
		switch r.Intn(5) {
		case 0, 1:
			item += "-" + strconv.Itoa(high)
		case 2:
			item += fmt.Sprintf("-%d/%d", high, 1+r.Intn(min(last, 7)))
		case 3:
			item = fmt.Sprintf("*/%d", 2+r.Intn(min(last, 7)-1))
		}
		items = append(items, item)
	}
	return strings.Join(items, ",")
}

func TestARuleSetPassesUnchangedForItsOwnReader(t *testing.T) {
	for _, rule := range []string{
		"FREQ=DAILY;BYHOUR=6", " freq=daily ", "RRULE:FREQ=DAILY\nEXDATE:20260101T000000", "RDATE:20260101T000000", "EXRULE:FREQ=DAILY", "rrule:",
		"INTERVAL=2", "every day FREQ=DAILY", "BEGIN:VEVENT",
	} {
		got, err := RuleText(rule)
		failIf(t, got != rule || err != nil, "%q became %q, %v", rule, got, err)
	}
}

func TestATextThatIsNoScheduleIsRefusedBeforeItIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"": "a rule such as", " \n": "a rule such as", strings.Repeat("every ", 1000): "at most 4096 bytes", "täglich um 6": "plain ASCII",
		strings.Repeat("every ", 65): "more than 64 words", "whenever": `"every`,
	} {
		rule, err := RuleText(text)
		failIf(t, !errors.As(err, new(*document.Error)) || !strings.Contains(err.Error(), want),
			"%.40q: got %q, %v; want a refusal with %q", text, rule, err, want)
	}
}

// FuzzRuleText looks for text that breaks the readers, and for rules that are written but cannot be read.
func FuzzRuleText(f *testing.F) {
	for _, text := range append(phraseExamples, "*/5 9-17 * * 1-5", "0 0 1,15 JAN-MAR sun", "59 23 31 2 7", "@weekly", "@every 1h30m", "0 6 * * 5L", "0 6 L * *",
		"every 1h30m", "every second", "every other Sunday at 5:59 p.m.", "once a week", "last day of every quarter", "FREQ=DAILY;BYHOUR=6") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := RuleText(text)
		field := (*document.Error)(nil)
		if err != nil {
			stopIf(t, !errors.As(err, &field) || field.Field != "rrule" || field.Found == "", "%q: %v", text, err)
			return
		}
		RuleEnglish(rule)
		if rule == text {
			return
		}
		if again, err := RuleText(rule); again != rule || err != nil {
			t.Fatalf("%q is %q, which is read as %q, %v", text, rule, again, err)
		}
		// A written rule may ask for February 30, and for nothing else that is refused.
		_, err = Parse(rule, "", "2001-01-01")
		stopIf(t, err != nil && !strings.Contains(err.Error(), "never does"), "%q is %q: %v", text, rule, err)
	})
}

func TestADayHasItsDateInTheCalendar(t *testing.T) {
	for at := time.Date(1968, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2402; at = at.AddDate(0, 0, 1) {
		want := date{at.Unix() / daySeconds, at.Year(), int(at.Month()), at.Day(), at.YearDay(), int(at.Weekday()+6) % 7}
		if at.Unix() < 0 {
			want.day = (at.Unix() - daySeconds + 1) / daySeconds
		}
		got := dateOf(want.day)
		month := time.Date(at.Year(), at.Month()+1, 0, 0, 0, 0, 0, time.UTC)
		year := time.Date(at.Year(), 12, 31, 0, 0, 0, 0, time.UTC)
		stopIf(t, got != want || got.monthLength() != month.Day() || got.yearLength() != year.YearDay(),
			"%s: got %+v of a month of %d and a year of %d days", at, got, got.monthLength(), got.yearLength())
	}
}
