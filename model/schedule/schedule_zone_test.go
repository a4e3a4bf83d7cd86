package schedule

import (
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// occurrences walks a schedule from an instant on and gives the wall clock and offset of each occurrence.
func occurrences(t testing.TB, rule, timezone, dtstart, after string, n int) []string {
	t.Helper()
	s, err := Parse(rule, timezone, dtstart)
	stopIf(t, err != nil, "%s: %v", rule, err)
	loc := check.Got(Zone(timezone))(t)
	at := check.Got(time.Parse(time.RFC3339, after))(t)
	var found []string
	for range n {
		next, ok := s.Next(at)
		if !ok {
			break
		}
		stopIf(t, !next.After(at) || next.Location() != time.UTC, "%s: Next(%s) = %s", rule, at, next)
		found = append(found, next.In(loc).Format("01-02T15:04:05-07:00"))
		at = next
	}
	return found
}

type zoneCase struct {
	zone, rule, dtstart, after string
	want                       []string
}

func (c zoneCase) check(t *testing.T) {
	t.Helper()
	got := occurrences(t, c.rule, c.zone, c.dtstart, c.after, len(c.want))
	failIf(t, !slices.Equal(got, c.want), "%s, %s from %s:\ngot  %v\nwant %v", c.zone, c.rule, c.dtstart, got, c.want)
}

const (
	daily0230 = "FREQ=DAILY;BYHOUR=2;BYMINUTE=30"
	daily0130 = "FREQ=DAILY;BYHOUR=1;BYMINUTE=30"
	daily0030 = "FREQ=DAILY;BYHOUR=0;BYMINUTE=30"
)

func TestAWallTimeInAGapRunsAtTheOffsetBeforeTheGap(t *testing.T) {
	for _, c := range []zoneCase{
		// The gap of an hour in the night, west and east of Greenwich
		{"America/New_York", daily0230, "2026-01-01", "2026-03-07T12:00:00Z", []string{"03-08T03:30:00-04:00", "03-09T02:30:00-04:00"}},
		{"Europe/Berlin", daily0230, "2026-01-01", "2026-03-28T12:00:00Z", []string{"03-29T03:30:00+02:00", "03-30T02:30:00+02:00"}},

		// Half an hour only
		{"Australia/Lord_Howe", "FREQ=DAILY;BYHOUR=2;BYMINUTE=15", "2026-01-01", "2026-10-03T00:00:00Z", []string{"10-04T02:45:00+11:00", "10-05T02:15:00+11:00"}},

		// Clocks that change at midnight
		{"America/Santiago", daily0030, "2026-01-01", "2026-09-05T12:00:00Z", []string{"09-06T01:30:00-03:00", "09-07T00:30:00-03:00"}},
		{"Asia/Beirut", daily0030, "2026-01-01", "2026-03-28T12:00:00Z", []string{"03-29T01:30:00+03:00", "03-30T00:30:00+03:00"}},
		{"Asia/Beirut", "FREQ=DAILY", "2026-01-01", "2026-03-28T12:00:00Z", []string{"03-29T01:00:00+03:00", "03-30T00:00:00+03:00"}},

		// A dtstart inside of the gap
		{"Europe/Berlin", "FREQ=DAILY", "2026-03-29T02:30:00", "2026-01-01T00:00:00Z", []string{"03-29T03:30:00+02:00", "03-30T02:30:00+02:00"}},
		{"Europe/Berlin", "FREQ=HOURLY", "2026-03-29T02:30:00", "2026-01-01T00:00:00Z", []string{"03-29T03:30:00+02:00", "03-29T04:30:00+02:00"}},
		{"Europe/Berlin", "RDATE:20260329T023000", "2026-01-01", "2026-01-01T00:00:00Z", []string{"03-29T03:30:00+02:00"}},
	} {
		c.check(t)
	}
}

func TestAWallTimeThatOccursTwiceRunsOnceAtTheFirst(t *testing.T) {
	for _, c := range []zoneCase{
		{"America/New_York", daily0130, "2026-01-01", "2026-10-31T12:00:00Z", []string{"11-01T01:30:00-04:00", "11-02T01:30:00-05:00"}},
		{"Europe/Berlin", daily0230, "2026-01-01", "2026-10-24T12:00:00Z", []string{"10-25T02:30:00+02:00", "10-26T02:30:00+01:00"}},
		{"Australia/Lord_Howe", "FREQ=DAILY;BYHOUR=1;BYMINUTE=45", "2026-01-01", "2026-04-04T00:00:00Z", []string{"04-05T01:45:00+11:00", "04-06T01:45:00+10:30"}},
		{"America/Santiago", "FREQ=DAILY;BYHOUR=23;BYMINUTE=30", "2026-01-01", "2026-04-04T12:00:00Z", []string{"04-04T23:30:00-03:00", "04-05T23:30:00-04:00"}},
		{"Africa/Cairo", "FREQ=DAILY;BYHOUR=23;BYMINUTE=30", "2026-01-01", "2026-10-29T12:00:00Z", []string{"10-29T23:30:00+03:00", "10-30T23:30:00+02:00"}},

		// Asked in the second round: 01:30 is over
		{"America/New_York", daily0130, "2026-01-01", "2026-11-01T06:00:00Z", []string{"11-02T01:30:00-05:00"}},
		{"America/New_York", "FREQ=DAILY;BYHOUR=2;BYMINUTE=0", "2026-01-01", "2026-11-01T06:59:59Z", []string{"11-01T02:00:00-05:00"}},

		// A dtstart that occurs twice
		{"America/New_York", "FREQ=DAILY", "2026-11-01T01:30:00", "2026-01-01T00:00:00Z", []string{"11-01T01:30:00-04:00", "11-02T01:30:00-05:00"}},
		{"America/New_York", "FREQ=MINUTELY;INTERVAL=30", "2026-11-01T01:30:00", "2026-01-01T00:00:00Z", []string{"11-01T01:30:00-04:00", "11-01T01:00:00-05:00", "11-01T01:30:00-05:00"}},
	} {
		c.check(t)
	}
}

func TestARuleFinerThanADayWithoutBYPartsIsElapsedTime(t *testing.T) {
	for _, c := range []zoneCase{
		// Forward: no hour twice
		{"America/New_York", "FREQ=HOURLY", "2026-01-01", "2026-03-08T05:30:00Z", []string{"03-08T01:00:00-05:00", "03-08T03:00:00-04:00", "03-08T04:00:00-04:00"}},
		{"America/New_York", "FREQ=HOURLY;INTERVAL=2", "2026-01-01", "2026-03-08T04:30:00Z", []string{"03-08T00:00:00-05:00", "03-08T03:00:00-04:00", "03-08T05:00:00-04:00"}},
		{"Europe/Berlin", "FREQ=MINUTELY;INTERVAL=20", "2026-01-01", "2026-03-29T00:30:00Z", []string{"03-29T01:40:00+01:00", "03-29T03:00:00+02:00", "03-29T03:20:00+02:00"}},

		// Back: no hole
		{"America/New_York", "FREQ=HOURLY", "2026-01-01", "2026-11-01T04:30:00Z", []string{"11-01T01:00:00-04:00", "11-01T01:00:00-05:00", "11-01T02:00:00-05:00"}},
		{"America/New_York", "FREQ=MINUTELY", "2026-01-01", "2026-11-01T05:59:30Z", []string{"11-01T01:00:00-05:00", "11-01T01:01:00-05:00"}},
		{"Australia/Lord_Howe", "FREQ=HOURLY", "2026-01-01", "2026-04-04T14:30:00Z", []string{"04-05T01:30:00+10:30", "04-05T02:30:00+10:30"}},
	} {
		c.check(t)
	}
}

func TestTheLastDayOfALeapYearFarAheadIsAnOrdinaryDay(t *testing.T) {
	for _, zone := range []string{"America/New_York", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"} {
		for _, year := range []string{"2028", "2032", "2040", "2104"} {
			got := occurrences(t, "FREQ=DAILY", zone, "2026-01-01T09:00:00", year+"-12-29T20:00:00Z", 3)
			failIf(t, got[0][:14] != "12-30T09:00:00" || got[1][:14] != "12-31T09:00:00" || got[2][:14] != "01-01T09:00:00", "%s, %s: %v", zone, year, got)
		}
	}
}

// slowResolve gives the instant of every wall minute around a change, by looking at one minute after the other.
func slowResolve(loc *time.Location, change int64) map[int64]int64 {
	instants := map[int64]int64{}
	shown := func(minute int64) int64 {
		_, offset := time.Unix(minute*60, 0).In(loc).Zone()
		return minute + int64(offset)/60
	}
	for minute, end := change/60-12*1440, change/60+8*1440; minute < end; minute++ {
		for wall := shown(minute); wall < shown(minute+1) || wall == shown(minute); wall++ {
			if _, seen := instants[wall]; !seen {
				instants[wall] = minute + wall - shown(minute) // skipped ones as if the offset had stayed
			}
		}
	}
	return instants
}

// changes lists the hours in which the clocks of a zone were moved.
func changes(loc *time.Location) []time.Time {
	var found []time.Time
	last := 0
	for at, end := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC); at.Before(end); at = at.Add(time.Hour) {
		_, offset := at.In(loc).Zone()
		if offset != last {
			found = append(found, at)
		}
		last = offset
	}
	return found[1:]
}

func TestAroundAChangeOfClocksTheOccurrencesAreThoseOfTheWallTimesOneByOne(t *testing.T) {
	r, rounds := rand.New(rand.NewSource(5)), long.Or(8, 16)
	for _, name := range []string{"America/New_York", "Europe/Berlin", "America/Santiago", "America/Havana", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia",
		"Asia/Beirut", "Antarctica/Troll", "Africa/Casablanca", "Pacific/Kiritimati", "Pacific/Kwajalein", "Europe/Dublin"} {
		loc := check.Got(Zone(name))(t)
		moved := changes(loc)
		for range rounds {
			compareAround(t, r, name, loc, moved[r.Intn(len(moved))])
		}
	}
}

var aroundRules = []string{
	"FREQ=MINUTELY;BYHOUR=0,1,2,3", "FREQ=MINUTELY;INTERVAL=7;BYHOUR=0,1,2,3,23", "FREQ=HOURLY;BYHOUR=0,1,2,3,22,23;BYMINUTE=0,15,30,45",
	"FREQ=HOURLY;INTERVAL=3;BYHOUR=0,1,2,3,21,22,23;BYMINUTE=10,50",
	"FREQ=SECONDLY;INTERVAL=35;BYHOUR=0,1,2,23", "FREQ=DAILY;BYHOUR=0,1,2,3,22,23;BYMINUTE=0,10,29,30,59", "FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SU,FR,SA;BYHOUR=0,2,9;BYMINUTE=30",
	"FREQ=DAILY;BYHOUR=0,1,2,3;BYMINUTE=0,20,40;BYSETPOS=2,5,-1", "FREQ=MINUTELY;INTERVAL=13;BYHOUR=0,1,2,23;BYDAY=SU,MO,FR,SA", "FREQ=MONTHLY;BYDAY=SU,FR;BYHOUR=0,1,2,3;BYMINUTE=15,45",
}

// compareAround walks a rule for six days around a change, against all its wall times, resolved, sorted and without doubles.
func compareAround(t *testing.T, r *rand.Rand, name string, loc *time.Location, change time.Time) {
	t.Helper()
	rule := aroundRules[r.Intn(len(aroundRules))]
	_, offset := change.In(loc).Zone()
	wall := change.Unix() + int64(offset)
	dtstart := time.Unix(wall-3*daySeconds-r.Int63n(3*daySeconds), 0).UTC()
	var want []int64
	instants := slowResolve(loc, change.Unix())
	for next := slowly(t, rule, dtstart); ; {
		at, ok := next()
		if !ok || at.Unix() > wall+4*daySeconds {
			break
		}
		want = append(want, instants[at.Unix()/60]*60+at.Unix()%60)
	}
	want = sorted(want)
	s := check.Got(Parse(rule, name, dtstart.Format(dtstartLayout)))(t)
	for after, i := change.Unix()-10*daySeconds, 0; i < len(want) && want[i] < change.Unix()+3*daySeconds; i++ {
		// Every instant since the occurrence before has this one as its next.
		for _, from := range []int64{after, after + r.Int63n(want[i]-after), want[i] - 1} {
			if got, ok := s.Next(time.Unix(from, 999_999_999)); !ok || got.Unix() != want[i] {
				t.Fatalf("%s in %s from %s: Next(%s) = %s, want %s", rule, name, dtstart, time.Unix(from, 0).In(loc), got.In(loc), time.Unix(want[i], 0).In(loc))
			}
		}
		after = want[i]
	}
}

func notes(t *testing.T, rule, timezone, dtstart, after string, n int) (found []string) {
	t.Helper()
	s := check.Got(Parse(rule, timezone, dtstart))(t)
	at := check.Got(time.Parse(time.RFC3339, after))(t)
	for range n {
		at, _ = s.Next(at)
		found = append(found, at.Format("01-02T15:04Z ")+s.Note(at))
	}
	return found
}

func TestAnOccurrenceBesideItsWallClockIsExplained(t *testing.T) {
	const twice = "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=30"
	for _, c := range []zoneCase{
		{"America/New_York", daily0230, "2026-01-01", "2026-03-07T05:00:00Z", []string{
			"03-07T07:30Z ", "03-08T07:30Z 02:30 does not exist on that day, runs at 03:30", "03-09T06:30Z "}},
		{"America/New_York", daily0130, "2026-01-01", "2026-10-31T04:00:00Z", []string{
			"10-31T05:30Z ", "11-01T05:30Z 01:30 occurs twice, runs at the first", "11-02T06:30Z "}},
		{"Europe/Berlin", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=5", "2026-01-01", "2026-03-29T00:00:00Z", []string{
			"03-29T01:30Z 02:30:05 does not exist on that day, runs at 03:30:05"}},
		{"Australia/Lord_Howe", "FREQ=DAILY;BYHOUR=2;BYMINUTE=15", "2026-01-01", "2026-10-03T00:00:00Z", []string{
			"10-03T15:45Z 02:15 does not exist on that day, runs at 02:45", "10-04T15:15Z "}},
		{"Australia/Lord_Howe", "FREQ=DAILY;BYHOUR=1;BYMINUTE=45", "2026-01-01", "2026-04-04T00:00:00Z", []string{
			"04-04T14:45Z 01:45 occurs twice, runs at the first", "04-05T15:15Z "}},
		{"Pacific/Apia", "FREQ=DAILY", "2011-01-01T09:00:00", "2011-12-28T22:00:00Z", []string{
			"12-29T19:00Z ", "12-30T19:00Z 2011-12-30 09:00 does not exist, runs at 2011-12-31 09:00", "12-31T19:00Z "}},

		// Next to a change, but not moved by it
		{"Europe/Berlin", "FREQ=DAILY;BYHOUR=3;BYMINUTE=30", "2026-01-01", "2026-03-28T12:00:00Z", []string{"03-29T01:30Z "}},
		{"Europe/Berlin", "FREQ=DAILY;BYHOUR=1,3;BYMINUTE=0", "2026-01-01", "2026-10-24T12:00:00Z", []string{"10-24T23:00Z ", "10-25T02:00Z "}},
		{"Europe/Berlin", twice, "2026-01-01", "2026-03-28T12:00:00Z", []string{"03-29T01:30Z 02:30 does not exist on that day, runs at 03:30", "03-30T00:30Z "}},

		// Elapsed time, which no clock moves, and instants
		{"Europe/Berlin", "FREQ=MINUTELY;INTERVAL=30", "2026-03-29", "2026-03-29T00:00:00Z", []string{"03-29T00:30Z ", "03-29T01:00Z ", "03-29T01:30Z "}},
		{"Europe/Berlin", "RDATE:20261025T023000", "2026-01-01", "2026-01-01T00:00:00Z", []string{"10-25T00:30Z "}},
		{"", daily0230, "2026-01-01", "2026-03-28T12:00:00Z", []string{"03-29T02:30Z "}},
	} {
		got := notes(t, c.rule, c.zone, c.dtstart, c.after, len(c.want))
		failIf(t, !slices.Equal(got, c.want), "%s, %s:\ngot  %q\nwant %q", c.zone, c.rule, got, c.want)
	}
}

func TestAnInstantThatIsNoOccurrenceHasNoNote(t *testing.T) {
	gap := time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		rule, dtstart string
		at            time.Time
	}{
		"excluded":    {daily0230 + "\nEXDATE:20260329T013000Z", "2026-01-01", gap},
		"over":        {daily0230 + ";UNTIL=20260328T235959Z", "2026-01-01", gap},
		"counted out": {daily0230 + ";COUNT=3", "2026-01-01", gap}, "not begun": {daily0230, "2026-03-30", gap},
		"another minute": {daily0230, "2026-01-01", gap.Add(time.Minute)},
		"a millisecond":  {daily0230, "2026-01-01", gap.Add(time.Millisecond)},
		"second round":   {daily0230, "2026-01-01", time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC)},
	} {
		s := check.Got(Parse(test.rule, "Europe/Berlin", test.dtstart))(t)
		note := s.Note(test.at)
		failIf(t, note != "", "%s: found %q", name, note)
	}
}

func TestTheLastOccurrenceOfALimitedScheduleIsKnown(t *testing.T) {
	for rule, want := range map[string]string{
		"FREQ=DAILY;COUNT=3":                                     "2026-01-03T05:00:00Z",
		"FREQ=DAILY;UNTIL=20260301T000000Z":                      "2026-02-28T05:00:00Z",
		"FREQ=HOURLY;INTERVAL=2;COUNT=2":                         "2026-01-01T07:00:00Z",
		"RDATE:20270101T090000Z,20280101T090000Z":                "2028-01-01T09:00:00Z",
		"RDATE:20270101T090000Z\nFREQ=DAILY;COUNT=3":             "2027-01-01T09:00:00Z",
		"FREQ=DAILY;COUNT=3\nEXDATE:20260103T050000Z":            "2026-01-02T05:00:00Z",
		"FREQ=DAILY;UNTIL=99991231T235959Z":                      "",
		"FREQ=DAILY":                                             "",
		"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29":                    "",
		"FREQ=DAILY;COUNT=3\nFREQ=YEARLY;BYMONTH=1":              "",
		"FREQ=YEARLY;UNTIL=20290101T000000Z\nFREQ=DAILY;COUNT=2": "2028-01-01T05:00:00Z",
	} {
		s := check.Got(Parse(rule, "America/New_York", "2026-01-01"))(t)
		last, ends := s.Ends()
		failIf(t, ends != (want != "") || ends && last.Format(time.RFC3339) != want, "%s: found %s, %t, expected %q", rule, last, ends, want)
		next, more := s.Next(last)
		failIf(t, ends && more, "%s: ends at %s, but then comes %s", rule, last, next)
	}
}

func TestAWallClockHasOneInstant(t *testing.T) {
	for wall, want := range map[string]string{
		"2026-03-29T02:30:00Z": "2026-03-29T01:30:00Z", "2026-10-25T02:30:00Z": "2026-10-25T00:30:00Z 1h0m0s", "2026-07-01T00:00:00Z": "2026-06-30T22:00:00Z",
		"2026-10-25T03:00:00Z": "2026-10-25T02:00:00Z", "2026-10-25T01:59:59.5Z": "2026-10-24T23:59:59.5Z",
	} {
		berlin := check.Got(Zone("Europe/Berlin"))(t)
		at := Shown(check.Got(time.Parse(time.RFC3339, wall))(t), berlin)
		got := at.Format(time.RFC3339Nano)
		if again := Again(at, berlin); again != 0 {
			got += " " + again.String()
			failIf(t, Again(at.Add(again), berlin) != 0, "%s: expected it twice, found a third", wall)
		}
		failIf(t, got != want, "%s: found %s, expected %s", wall, got, want)
	}
}

func TestARuleWithAFreeHourIsNotWarnedOfAChangeOfTheClocks(t *testing.T) {
	after := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for rule, want := range map[string]int{
		"FREQ=HOURLY;BYMINUTE=0;BYSECOND=0": 0, "FREQ=HOURLY;BYMINUTE=15,45;BYSECOND=0": 0, "FREQ=HOURLY;BYDAY=SU;BYMINUTE=0;BYSECOND=0": 0, "FREQ=HOURLY": 0,
		"FREQ=HOURLY;INTERVAL=2;BYMINUTE=0;BYSECOND=0":     0,
		"FREQ=DAILY" + allHours + ";BYMINUTE=0;BYSECOND=0": 2, // two hours without a start, and two starts in one
		"FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0":       2, "FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0;BYSECOND=0": 2,
		"RRULE:FREQ=HOURLY;BYMINUTE=0;BYSECOND=0\nRRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0": 2,
	} {
		s := check.Got(Parse(rule, "Europe/Berlin", "2027-01-01"))(t)
		got := s.ClockChanges(after, 366)
		failIf(t, len(got) != want, "%s: expected %d changes, found %v", rule, want, got)
	}
}

func TestWhatBecomesOfEachLineAtTheNextChangeOfTheClocksIsTold(t *testing.T) {
	const (
		back, forward   = "2026-10-25 from 02:00 to 01:00; ", "2027-03-28 from 01:00 to 02:00; "
		summer, winter  = "2026-07-01T00:00:00Z", "2026-12-01T00:00:00Z"
		free, fromStart = "the hour is free, runs in both", "elapsed time goes on"
	)
	for _, c := range []struct{ zone, rule, after, want string }{
		{"Europe/London", "*/15 * * * *", summer, back + free},
		{"Europe/London", "*/15 * * * *", winter, forward + "the hour is free, nothing is made up"},
		{"Europe/London", "*/15 1-5 * * *", summer, back + "01:00 occurs twice, runs at the first; cron(8) runs it in both"},
		{"Europe/London", "*/15 1-5 * * *", winter, forward + "01:00 does not exist on that day, runs at 02:00"},
		{"Europe/London", "*/15 1 * * *", winter, forward + "01:00 does not exist on that day, runs at 02:00; cron(8) does not run it"},
		{"Europe/London", "30 *,5 * * *", summer, back + "01:30 occurs twice, runs at the first; cron(8) runs it in both"},
		{"Europe/London", "0 */2 * * *", summer, back + "names no time that is moved"},
		{"Europe/London", "15 1-5 * * *", winter, forward + "01:15 does not exist on that day, runs at 02:15; cron(8) runs it at 02:00"},
		{"Europe/London", "0 1 * * *", winter, forward + "01:00 does not exist on that day, runs at 02:00"},
		{"Europe/London", "0,30 1 * * *", winter, forward + "01:00 does not exist on that day, runs at 02:00; cron(8) runs that of 01:30 at 02:00"},
		{"Europe/London", "0 1-5 * * *", winter, forward + "01:00 does not exist on that day, runs at 02:00; cron(8) runs it at 02:00, twice"},
		{"Europe/London", "FREQ=DAILY;BYHOUR=1;BYMINUTE=15", winter, forward + "01:15 does not exist on that day, runs at 02:15"},
		{"Europe/London", "every day at 1:15", winter, forward + "01:15 does not exist on that day, runs at 02:15"},
		{"America/Santiago", "@daily", summer, "2026-09-06 from 00:00 to 01:00; 00:00 does not exist on that day, runs at 01:00"},
		{"Europe/London", "15 0-23 * * *", summer, back + "01:15 occurs twice, runs at the first"},
		{"Europe/London", "0 6 * * *", summer, back + "names no time that is moved"},
		{"Europe/London", "0 * * * MON", summer, back + "names no time that is moved"},
		{"Europe/London", "every 2 hours", summer, back + fromStart},
		{"Europe/London", "FREQ=HOURLY;INTERVAL=2;BYMINUTE=30", winter, forward + fromStart},
		{"Europe/London", "FREQ=HOURLY\nFREQ=MINUTELY;INTERVAL=30\nFREQ=HOURLY;BYMINUTE=30", summer, back + fromStart + "; " + free},
		{"Europe/London", "FREQ=HOURLY;UNTIL=20260801T000000Z\nFREQ=HOURLY;BYMINUTE=30", summer, back + free},
		{"Europe/London", "FREQ=HOURLY;UNTIL=20260801T000000Z", summer, ""},
		{"Europe/London", "FREQ=HOURLY;COUNT=3", summer, ""},
		{"Australia/Lord_Howe", "0 * * * *", winter, "2027-04-04 from 02:00 to 01:30; names no time that is moved"},
		{"Australia/Lord_Howe", "45 * * * *", winter, "2027-04-04 from 02:00 to 01:30; " + free},
		{"Asia/Tokyo", "0 * * * *", summer, ""},
		{"", "0 * * * *", summer, ""},
	} {
		s := check.Got(Parse(check.Got(RuleText(c.rule))(t), c.zone, "2026-01-01"))(t)
		got := s.NextChange(check.Got(time.Parse(time.RFC3339, c.after))(t), c.rule)
		failIf(t, got != c.want, "%s in %s after %s:\ngot  %s\nwant %s", c.rule, c.zone, c.after, got, c.want)
	}
	s := check.Got(Parse("FREQ=HOURLY;BYMINUTE=0", "Europe/London", "2027-01-01"))(t)
	if got := s.NextChange(time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), ""); got != forward+"the hour is free, nothing is made up" {
		t.Errorf("expected the first change after the start, found %s", got)
	}
}
