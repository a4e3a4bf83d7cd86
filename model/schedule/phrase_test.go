package schedule

import (
	"errors"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/document"
)

func TestEnglishBecomesTheRuleThatItSays(t *testing.T) {
	const six = ";BYHOUR=6;BYMINUTE=0;BYSECOND=0"
	const zero = ";BYHOUR=0;BYMINUTE=0;BYSECOND=0"
	for text, want := range map[string]string{
		// Elapsed time
		"every 2 hours": "FREQ=HOURLY;INTERVAL=2", "every hour": "FREQ=HOURLY", "Hourly": "FREQ=HOURLY", "every minute": "FREQ=MINUTELY",
		"every 30 minutes": "FREQ=MINUTELY;INTERVAL=30", "every 90 seconds": "FREQ=SECONDLY;INTERVAL=90", "every second": "FREQ=SECONDLY",
		"every other hour": "FREQ=HOURLY;INTERVAL=2", "every two hours": "FREQ=HOURLY;INTERVAL=2", "every 1 minute": "FREQ=MINUTELY",
		"every 15m": "FREQ=MINUTELY;INTERVAL=15", "every 1 hour and 30 minutes": "FREQ=MINUTELY;INTERVAL=90", "once per hour": "FREQ=HOURLY",
		"every twenty minutes": "FREQ=MINUTELY;INTERVAL=20", "every half an hour": "FREQ=MINUTELY;INTERVAL=30", "every an hour and a half": "FREQ=MINUTELY;INTERVAL=90",

		// Days
		"every day at 6 AM and 4 PM": "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "daily at 06:00": "FREQ=DAILY" + six,
		"Refresh twice per day at 6 AM and 4 PM.": "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0",
		"every 2 days at 6:00":                    "FREQ=DAILY;INTERVAL=2" + six, "every second day at 6:00": "FREQ=DAILY;INTERVAL=2" + six,
		"once a day": "FREQ=DAILY" + zero, "every day at 12 AM": "FREQ=DAILY" + zero, "every day at midnight": "FREQ=DAILY" + zero,
		"every day at 12 PM": "FREQ=DAILY;BYHOUR=12;BYMINUTE=0;BYSECOND=0", "every day at 12:30 a.m.": "FREQ=DAILY;BYHOUR=0;BYMINUTE=30;BYSECOND=0",
		"every day at 9:00, 9:30, 17:00 and 17:30": "FREQ=DAILY;BYHOUR=9,17;BYMINUTE=0,30;BYSECOND=0",

		// Weeks
		"every Monday at 6:00": "FREQ=WEEKLY;BYDAY=MO" + six, "Mondays at 6": "FREQ=WEEKLY;BYDAY=MO" + six,
		"every Friday, Monday and wed at 9:00 and 17:30": "RRULE:FREQ=WEEKLY;BYDAY=MO,WE,FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0\n" +
			"RRULE:FREQ=WEEKLY;BYDAY=MO,WE,FR;BYHOUR=17;BYMINUTE=30;BYSECOND=0",
		"every weekday at 6:00": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR" + six, "every weekend at noon": "FREQ=WEEKLY;BYDAY=SA,SU;BYHOUR=12;BYMINUTE=0;BYSECOND=0",
		"every weekday and Saturday at 6:00": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA" + six,
		"every 2 weeks on Monday at 6:00":    "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO" + six, "every other Monday at 6:00": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO" + six,
		"twice per week on Monday and Friday": "FREQ=WEEKLY;BYDAY=MO,FR" + zero, "weekly": "FREQ=WEEKLY;BYDAY=MO" + zero,

		// Months
		"on the last Friday of the month at 6:00":      "FREQ=MONTHLY;BYDAY=-1FR" + six,
		"on the first Monday of every month at 6 AM":   "FREQ=MONTHLY;BYDAY=1MO" + six,
		"every second Monday of the month at 6 AM":     "FREQ=MONTHLY;BYDAY=2MO" + six,
		"on the 1st and 15th of the month at 06:00":    "FREQ=MONTHLY;BYMONTHDAY=1,15" + six,
		"every 2nd of the month at 06:00":              "FREQ=MONTHLY;BYMONTHDAY=2" + six,
		"every 2nd month at 06:00":                     "FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=1" + six,
		"on the last day of the month at midnight":     "FREQ=MONTHLY;BYMONTHDAY=-1" + zero,
		"on the last and first day of the month":       "FREQ=MONTHLY;BYMONTHDAY=1,-1" + zero,
		"every quarter on the 1st at 6:00":             "FREQ=YEARLY;BYMONTH=1,4,7,10;BYMONTHDAY=1" + six,
		"on the last day of every quarter at 6:00":     "FREQ=YEARLY;BYMONTH=3,6,9,12;BYMONTHDAY=-1" + six,
		"on the first Monday of the quarter at 6:00":   "FREQ=YEARLY;BYMONTH=1,4,7,10;BYDAY=1MO" + six,
		"every year on March 1 at 6:00":                "FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=1" + six,
		"twice a year on January 1 and July 1 at 6:00": "FREQ=YEARLY;BYMONTH=1,7;BYMONTHDAY=1" + six,
		"annually": "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1" + zero,
	} {
		got, err := RuleText(text)
		failIf(t, got != want || err != nil, "%s:\ngot  %s, %v\nwant %s", text, got, err, want)
		_, err = Parse(got, "", "2001-01-01")
		failIf(t, err != nil, "%s: %v", text, err)
	}
}

func TestEnglishThatCouldMeanSomethingElseIsRefusedWithTheReasonAndAnExample(t *testing.T) {
	for text, wants := range map[string][]string{
		"twice per day at 6":                               {`"twice" asks for 2, the rest names 1`, "twice per day at 6 AM and 4 PM"},
		"every hour at 6:00":                               {"count from the start"},
		"day at 6":                                         {`"every" is missing`},
		"every":                                            {"how often"},
		"on the first":                                     {`"of the month" is missing`},
		"bi weekly":                                        {"every 2 weeks"},
		"every day until 1 March":                          {"until 1 March 2030"},
		"starting tomorrow every day":                      {"a date such as"},
		"every year on the 2nd":                            {"the month is missing"},
		"every day at 6 and 4 PM":                          {`"6" could be 06:00 or 18:00`, "AM or PM"},
		"every hour from 9:00 AM to 5:00":                  {`"5:00" could be 05:00 or 17:00`},
		"every evening at 8 AM":                            {`"8 am" is no time of the evening`},
		"Sunday night at 1 AM":                             {"Sunday at 23:00 or Monday at 2:00"},
		"every month starting 31 January 2027":             {"not every month has a day 31"},
		"every day at 25:00":                               {`"25:00" is no time of day`, "every day at 6 AM and 4 PM"},
		"every day at 6:5":                                 {`"6:5" is no time of day`},
		"every day at 13 PM":                               {`"13 pm" is no time of day`},
		"every day at 99999999":                            {"too much"},
		"every Monday and the 15th of the month":           {"RRULE line each"},
		"every second Monday":                              {`"of the month" or "every 2 weeks" is missing`},
		"every other weekday":                              {"a unit such as days"},
		"every 0 days":                                     {"from 1 to 1000000"},
		"every 5":                                          {`"5" does not belong`},
		"every day every week":                             {`"every" stands there twice`},
		"every day of the month":                           {`"day" and "month" do not go together`},
		"every day on Monday":                              {"no day to choose"},
		"every Monday of the month":                        {"first, last"},
		"every week on the 1st":                            {"a week has days"},
		"every 2 quarters":                                 {"quarters are those"},
		"1st and last day of the quarter":                  {"RRULE line each"},
		"on the 32nd of the month":                         {"32 is no number from 1 to 31"},
		"on the 6th Monday of the month":                   {"6 is no number from 1 to 5"},
		"on March 1":                                       {`"every year" is missing`, "every year on March 1 at noon"},
		"March 1 every year on April 1":                    {"RRULE line each"},
		"once a day twice":                                 {"stands there twice"},
		"daily starting 2030-03-01 starting 2030-03-02":    {"starts twice"},
		"daily until 2030-03-01 until 2030-03-02":          {"an end is a date"},
		"daily until 1 March 1930":                         {"from 1970 to 2200"},
		"every hour starting at 6:00 starting at 7:00":     {"starts twice"},
		"from the 5th to the 1st of the month":             {"from one to another rise"},
		"every day at 6 PM and at 20":                      {"AM or PM is needed"},
		"every day in March except in April":               {"excepted from days of all months"},
		"every 1st week":                                   {"is missing"},
		"on the 2100th of the month":                       {"2100 is no number from 1 to 31"},
		"every day at 6:00" + strings.Repeat(", 6:01", 40): {"more than 64 words"},
		"15 minutes":                                       {`"15" does not belong`, "every 30 minutes"},
		"every day; at 0:00,0:01,0:02,1:03,2:04,3:05,4:06,5:07,6:08,7:09,8:10": {"more than 8"},
	} {
		rule, err := RuleText(text)
		field := (*document.Error)(nil)
		if !errors.As(err, &field) || field.Field != "rrule" {
			t.Errorf("%s: got %q, %v; want a refusal", text, rule, err)
			continue
		}
		for _, want := range wants {
			failIf(t, !strings.Contains(err.Error(), want), "%s: expected %q in %v", text, want, err)
		}
	}
}

func TestARuleIsSaidAsAPersonWouldSayIt(t *testing.T) {
	for rule, want := range map[string]string{
		"FREQ=HOURLY": "every hour",
		"FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0":                                                                 "every day at 06:00 and 16:00",
		"FREQ=DAILY;INTERVAL=2;BYHOUR=6;BYMINUTE=0,30;BYSECOND=0":                                                      "every 2 days at 06:00 and 06:30",
		"FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0":                                               "every 2 weeks on Monday at 09:00",
		"FREQ=WEEKLY;BYDAY=MO,WE,FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0":                                                    "every Monday, Wednesday and Friday at 09:00",
		"FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=18;BYMINUTE=0;BYSECOND=0":                                                      "on the last Friday of the month at 18:00",
		"FREQ=MONTHLY;BYMONTHDAY=-2;BYHOUR=18;BYMINUTE=0;BYSECOND=0":                                                   "on the penultimate day of the month at 18:00",
		"FREQ=MONTHLY;BYDAY=-2FR;BYHOUR=18;BYMINUTE=0;BYSECOND=0":                                                      "on the penultimate Friday of the month at 18:00",
		"FREQ=MONTHLY;BYMONTHDAY=1,22,-1;BYHOUR=18;BYMINUTE=0;BYSECOND=0":                                              "on the 1st, 22nd and last day of the month at 18:00",
		"FREQ=YEARLY;BYMONTH=1,4,7,10;BYMONTHDAY=1;BYHOUR=6;BYMINUTE=0;BYSECOND=0":                                     "every quarter on the 1st at 06:00",
		"FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=1;BYHOUR=12;BYMINUTE=0;BYSECOND=0":                                           "every year on March 1 at 12:00",
		"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-1;BYHOUR=12;BYMINUTE=0;BYSECOND=0":                                          "every year on the last day of February at 12:00",
		"RRULE:FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0\nRRULE:FREQ=DAILY;BYHOUR=16;BYMINUTE=30;BYSECOND=0":           "every day at 06:00 and 16:30",
		"FREQ=HOURLY;BYMINUTE=0,15;BYSECOND=0":                                                                         "every hour at :00 and :15",
		"FREQ=HOURLY;BYDAY=MO,TU,WE,TH,FR;BYMINUTE=15;BYSECOND=0":                                                      "every hour on weekdays at :15",
		"FREQ=MONTHLY;BYSETPOS=-1;BYDAY=MO,TU,WE,TH,FR;BYHOUR=6;BYMINUTE=0;BYSECOND=0":                                 "on the last weekday of the month at 06:00",
		"FREQ=MONTHLY;BYSETPOS=1;BYMONTH=1,4,7,10;BYDAY=MO,TU,WE,TH,FR;BYHOUR=6;BYMINUTE=0;BYSECOND=0":                 "every quarter on the first weekday at 06:00",
		"FREQ=MONTHLY;BYSETPOS=1;BYMONTH=3;BYDAY=MO,TU,WE,TH,FR;BYHOUR=6;BYMINUTE=0;BYSECOND=0":                        "every year on the first weekday of March at 06:00",
		"FREQ=DAILY;BYMONTH=6,7;BYHOUR=6;BYMINUTE=0;BYSECOND=0;UNTIL=20300101T235959":                                  "every day in June and July at 06:00 until 1 January 2030",
		"RRULE:FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0\nRRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=16;BYMINUTE=30;BYSECOND=0": "every day at 06:00 and every Monday at 16:30",

		// No words for these
		"": "", "FREQ=DAILY": "", "FREQ=DAILY;BYHOUR=6": "", "FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=30": "", "nonsense": "",
		"FREQ=DAILY;BYHOUR=16,6;BYMINUTE=0;BYSECOND=0": "", "FREQ=DAILY;INTERVAL=1;BYHOUR=6;BYMINUTE=0;BYSECOND=0": "", "RDATE:20260101T000000": "",
		"FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0;COUNT=3": "", "FREQ=MONTHLY;BYDAY=1MO,-1FR;BYHOUR=6;BYMINUTE=0;BYSECOND=0": "",
		"FREQ=YEARLY;BYMONTH=13;BYMONTHDAY=1;BYHOUR=6;BYMINUTE=0;BYSECOND=0": "", "FREQ=WEEKLY;BYDAY=XX;BYHOUR=6;BYMINUTE=0;BYSECOND=0": "",
		"FREQ=FORTNIGHTLY;BYHOUR=6;BYMINUTE=0;BYSECOND=0": "", "FREQ=;BYMONTH=3;BYMONTHDAY=1;BYHOUR=6;BYMINUTE=0;BYSECOND=0": "",
		"FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0;UNTIL=20300101T060000": "", "FREQ=HOURLY;INTERVAL=5;BYMINUTE=0;BYSECOND=0": "",
	} {
		got, ok := RuleEnglish(rule)
		failIf(t, got != want || ok != (want != ""), "%s: got %q, %t, want %q", rule, got, ok, want)
	}
}

func TestTimesInStepsAreSaidInSteps(t *testing.T) {
	for text, want := range map[string]string{
		"*/5 * * * *":                 "every 5 minutes",
		"*/20 * * * *":                "every 20 minutes",
		"*/5 * * * 1-5":               "every 5 minutes on weekdays",
		"every 5 minutes on weekdays": "every 5 minutes on weekdays",

		// No steps, or no shorter for them
		"0,30 * * * *": "every hour at :00 and :30", "5,10,20 * * * *": "every hour at :05, :10 and :20", "0,5,10 * * * *": "every hour at :00, :05 and :10",
		"10,15,55 4 * * *": "every day at 04:10, 04:15 and 04:55", "*/7 * * * *": "every hour at :00, :07, :14, :21, :28, :35, :42, :49 and :56",
		"2,22,42 * * * *": "every hour at :02, :22 and :42", "0,20,40 9 * * *": "every day at 09:00, 09:20 and 09:40",
		"FREQ=HOURLY;INTERVAL=2;BYMINUTE=0,20,40;BYSECOND=0": "", "FREQ=HOURLY;BYMINUTE=0,20,40;BYSECOND=0,30": "",
		"FREQ=HOURLY;BYMINUTE=0,20,40;BYSECOND=0;COUNT=5": "", "FREQ=HOURLY;BYMINUTE=40,20,0;BYSECOND=0": "", "*/5 * 1 * *": "", "*/15 9-17 * * 1-5": "",
	} {
		read := check.Got(Read(text))(t)
		failIf(t, read.Sentence() != want, "%s: got %q, want %q", text, read.Sentence(), want)
	}
}

// randomPhraseRule writes a rule of a shape that RuleEnglish has words for.
func randomPhraseRule(r *rand.Rand) string {
	pick := func(most, first, last int) []int {
		var list []int
		for range 1 + r.Intn(most) {
			list = append(list, first+r.Intn(last-first+1))
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	interval := 0
	if r.Intn(2) == 0 {
		interval = 2 + r.Intn(20)
	}
	p := phrase{weekdays: pick(4, 0, 6)}
	o := rrule.ROption{Interval: interval}
	switch r.Intn(7) {
	case 0:
		return ruleOf(rrule.ROption{Freq: rrule.HOURLY + rrule.Frequency(r.Intn(3)), Interval: interval})
	case 1:
		o.Freq = rrule.DAILY
	case 2:
		o.Freq, o.Byweekday = rrule.WEEKLY, p.ordinalDays(0)
	case 3:
		o.Freq, o.Byweekday = rrule.MONTHLY, p.ordinalDays(append(pick(2, 1, 5), -1)[r.Intn(2):]...)
	case 4:
		o.Freq, o.Bymonthday = rrule.MONTHLY, append(pick(3, 1, 31), -1)[r.Intn(2):]
	case 5:
		o.Freq, o.Bymonth, o.Bymonthday = rrule.YEARLY, pick(4, 1, 12), append(pick(3, 1, 28), -1)[r.Intn(2):]
	case 6:
		o.Freq, o.Bymonth, o.Byweekday = rrule.YEARLY, pick(4, 1, 12), p.ordinalDays(append(pick(2, 1, 5), -1)[r.Intn(2):]...)
	}
	lines := atClocks(o, pick(5, 0, 1439))
	return ruleOf(lines...)
}

func TestWhatIsSaidOfARuleReadsBackAsTheRule(t *testing.T) {
	r, said := rand.New(rand.NewSource(3)), map[string]string{}
	for range long.Or(5_000, 8_000) {
		rule := randomPhraseRule(r)
		text, ok := RuleEnglish(rule)
		stopIf(t, !ok, "no words for %s", rule)
		again, err := RuleText(text)
		stopIf(t, again != rule || err != nil, "%s is said as %q, which is %s, %v", rule, text, again, err)
		other, twice := said[text]
		stopIf(t, twice && other != rule, "%q is said of %s and of %s", text, rule, other)
		said[text] = rule
	}
}

func TestAScheduleIsShownAsASentenceWithItsNextOccurrences(t *testing.T) {
	after := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	for want, given := range map[string][3]string{
		"every day at 02:30 starting 1 January 2026 (Europe/Berlin); next: Sat 2026-03-28 02:30, Sun 2026-03-29 03:30 and Mon 2026-03-30 02:30":    {"FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0", "Europe/Berlin", "2026-01-01"},
		"every 90 seconds starting 1 January 2026 at 06:30 (UTC); next: Fri 2026-03-27 12:01:30, Fri 2026-03-27 12:03 and Fri 2026-03-27 12:04:30": {"FREQ=SECONDLY;INTERVAL=90", "", "2026-01-01T06:30:00"},
		"by the rule RDATE:20260401T000000 EXDATE:20260402T000000 starting 1 January 2026 (UTC); next: Wed 2026-04-01 00:00":                       {"RDATE:20260401T000000\nEXDATE:20260402T000000", "UTC", "2026-01-01"},
		"by the rule FREQ=DAILY;COUNT=1 starting 1 January 2026 (UTC); next: never again":                                                          {"FREQ=DAILY;COUNT=1", "UTC", "2026-01-01"},
		"every 2 days at 00:00 (Asia/Tokyo); next: Sun 2026-03-29 00:00, Tue 2026-03-31 00:00 and Thu 2026-04-02 00:00":                            {"FREQ=DAILY;INTERVAL=2;BYHOUR=0;BYMINUTE=0;BYSECOND=0", "Asia/Tokyo", ""},
	} {
		understood, err := ReadAs(given[0], given[1], given[2], after)
		got := understood.String()
		failIf(t, err != nil || got != want, "%v:\n got %s, %v\nwant %s", given, got, err, want)
	}
	for _, dtstart := range []string{"2026-01-01", ""} {
		_, err := ReadAs("FREQ=DAILY", "Nowhere", dtstart, after)
		failIf(t, err == nil, "expected an error for a zone that does not exist, found none")
	}
	got := (ParsedAs{Sentence: "Allow 1 hour to complete"}).String()
	failIf(t, got != "Allow 1 hour to complete", "expected nothing of a rule that there is not, found %s", got)
}
