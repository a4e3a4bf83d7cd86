package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// changingZones change their clocks by an hour, by half an hour, by two hours, by a day, at midnight, in Ramadan and below winter time.
var changingZones = []string{
	"Europe/London", "Europe/Berlin", "America/New_York", "America/Vancouver", "America/Santiago", "America/Havana", "Africa/Cairo", "Australia/Lord_Howe",
	"Pacific/Apia", "Asia/Beirut", "Antarctica/Troll", "Africa/Casablanca", "Pacific/Kwajalein", "Europe/Dublin", "Atlantic/Azores", "Asia/Pyongyang",
}

// freeRule is a rule with a free hour, and what it means: which clocks show it, and of slots of how many seconds each how manyth counts.
type freeRule struct {
	rule        string
	shows       func(time.Time) bool
	slot, every int64
}

func minuteIn(minutes ...int) func(time.Time) bool {
	return func(at time.Time) bool { return at.Second() == 0 && slices.Contains(minutes, at.Minute()) }
}

func onTheMinute(at time.Time) bool { return at.Second() == 0 }

func weekend(at time.Time) bool {
	return at.Second() == 0 && slices.Contains([]time.Weekday{time.Friday, time.Saturday, time.Sunday}, at.Weekday())
}

var freeRules = []freeRule{
	{"0 * * * *", minuteIn(0), 60, 1},
	{"@hourly", minuteIn(0), 60, 1},
	{"* * * * *", onTheMinute, 60, 1},
	{"*/15 */1 * * *", minuteIn(0, 15, 30, 45), 60, 1},
	{"*/7 * * * FRI-SUN", func(at time.Time) bool { return at.Minute()%7 == 0 && weekend(at) }, 60, 1},
	{"0,30 * 1-7,20-31 * *", func(at time.Time) bool { return minuteIn(0, 30)(at) && (at.Day() <= 7 || at.Day() >= 20) }, 60, 1},
	{"FREQ=HOURLY;BYMINUTE=10,50;BYSECOND=0,20", func(at time.Time) bool {
		return (at.Minute() == 10 || at.Minute() == 50) && (at.Second() == 0 || at.Second() == 20)
	}, 1, 1},
	{"FREQ=MINUTELY;BYDAY=FR,SA,SU;BYSECOND=0", weekend, 60, 1},
	{"FREQ=SECONDLY;BYSECOND=7", func(at time.Time) bool { return at.Second() == 7 }, 1, 1},
	{"FREQ=HOURLY;INTERVAL=2;BYMINUTE=30;BYSECOND=0", minuteIn(30), 3600, 2},
	{"FREQ=HOURLY;INTERVAL=3;BYDAY=FR,SA,SU;BYMINUTE=10,50;BYSECOND=0", func(at time.Time) bool { return minuteIn(10, 50)(at) && weekend(at) }, 3600, 3},
	{"FREQ=HOURLY;INTERVAL=25;BYMINUTE=0,30;BYSECOND=0", minuteIn(0, 30), 3600, 25},
	{"FREQ=MINUTELY;INTERVAL=13;BYDAY=FR,SA,SU;BYSECOND=0", weekend, 60, 13},
	{"FREQ=MINUTELY;INTERVAL=7;BYMINUTE=0,15,30,45;BYSECOND=0", minuteIn(0, 15, 30, 45), 60, 7},
	{"FREQ=SECONDLY;INTERVAL=37;BYSECOND=0", onTheMinute, 1, 37},
}

// oneByOne lists the seconds from one instant to another at which the rule occurs, by looking at each.
func (f *freeRule) oneByOne(loc *time.Location, dtstart, from, to int64) (found []int64) {
	_, before := time.Unix(dtstart-2*daySeconds, 0).In(loc).Zone() // dtstart is two days away from a change
	start := dtstart - int64(before)
	begun := start - floorMod(dtstart, f.slot)
	step := int64(1)
	if f.slot > 1 {
		step = 60
	}
	from = max(from, start)
	for at := from + floorMod(-from, step); at < to; at += step {
		if floorDiv(at-begun, f.slot)%f.every == 0 && f.shows(time.Unix(at, 0).In(loc)) {
			found = append(found, at)
		}
	}
	return found
}

func TestAFreeHourRunsAtEachInstantWhoseClockShowsTheMinute(t *testing.T) {
	r, rounds := rand.New(rand.NewPCG(29, 0)), long.Or(4, 20)
	for _, name := range changingZones {
		loc := check.Got(Zone(name))(t)
		moved := changes(loc)
		for round := range rounds {
			change := moved[r.IntN(len(moved))].Unix()
			if round == 0 {
				change = moved[len(moved)-1].Unix()
			}
			f := freeRules[r.IntN(len(freeRules))]
			dtstart := change - 6*daySeconds - r.Int64N(3*daySeconds)
			if f.slot > 1 || r.IntN(2) == 0 {
				dtstart -= floorMod(dtstart, 60)
			}
			s := check.Got(Parse(check.Got(RuleText(f.rule))(t), name, time.Unix(dtstart, 0).UTC().Format(dtstartLayout)))(t)
			want := f.oneByOne(loc, dtstart, change-2*daySeconds, change+2*daySeconds)
			after := change - 2*daySeconds - 1
			for _, at := range want {
				for _, from := range []int64{after, after + r.Int64N(at-after), at - 1} {
					if got, ok := s.Next(time.Unix(from, 999_999_999)); !ok || got.Unix() != at {
						t.Fatalf("%s in %s from %s: Next(%s) = %s, want %s", f.rule, name, time.Unix(dtstart, 0).UTC(),
							time.Unix(from, 0).In(loc), got.In(loc), time.Unix(at, 0).In(loc))
					}
				}
				after = at
			}
		}
	}
}

// Whatever the clocks do in the months between.
func TestAFreeHourOfSeldomDaysIsFoundAcrossChanges(t *testing.T) {
	r, rounds := rand.New(rand.NewPCG(31, 0)), long.Or(60, 300)
	seldom := []freeRule{
		{"FREQ=HOURLY;INTERVAL=2;BYMONTHDAY=31;BYMINUTE=30;BYSECOND=0", func(at time.Time) bool { return minuteIn(30)(at) && at.Day() == 31 }, 3600, 2},
		{"FREQ=HOURLY;INTERVAL=49;BYDAY=SU;BYMINUTE=0,30;BYSECOND=0", func(at time.Time) bool { return minuteIn(0, 30)(at) && at.Weekday() == time.Sunday }, 3600, 49},
		{"FREQ=HOURLY;BYMONTH=3,11;BYDAY=SU;BYMINUTE=0,30;BYSECOND=0", func(at time.Time) bool {
			return minuteIn(0, 30)(at) && at.Weekday() == time.Sunday && (at.Month() == time.March || at.Month() == time.November)
		}, 60, 1},
		{"FREQ=MINUTELY;INTERVAL=1441;BYMONTH=4;BYSECOND=0", func(at time.Time) bool { return at.Second() == 0 && at.Month() == time.April }, 60, 1441},
		{"* * 29 2 *", func(at time.Time) bool { return at.Second() == 0 && at.Day() == 29 && at.Month() == time.February }, 60, 1},
	}
	for range rounds {
		name, f := changingZones[r.IntN(len(changingZones))], seldom[r.IntN(len(seldom))]
		loc := check.Got(Zone(name))(t)
		dtstart := time.Date(1996+r.IntN(30), 12, 15, r.IntN(24), 0, 0, 0, time.UTC).Unix()
		after := dtstart + r.Int64N(300*daySeconds)
		s, err := Parse(check.Got(RuleText(f.rule))(t), name, time.Unix(dtstart, 0).UTC().Format(dtstartLayout))
		stopIf(t, err != nil, "%s in %s from %s: %v", f.rule, name, time.Unix(dtstart, 0).UTC(), err)
		want := f.oneByOne(loc, dtstart, after+1, after+250*daySeconds)
		got, _ := s.Next(time.Unix(after, 0))
		failIf(t, len(want) > 0 && got.Unix() != want[0] || len(want) == 0 && got.Unix() < after+250*daySeconds,
			"%s in %s from %s: after %s found %s, expected the first of %d", f.rule, name, time.Unix(dtstart, 0).UTC(), time.Unix(after, 0).In(loc), got.In(loc), len(want))
	}
}

func TestAFreeHourRunsInBothOfTwoEqualHoursAndANamedOneOnce(t *testing.T) {
	const london, lordHowe = "Europe/London", "Australia/Lord_Howe"
	for _, c := range []zoneCase{
		// Back: 02:00+01:00 is 01:00+00:00
		{london, "0 * * * *", "2026-01-01", "2026-10-24T23:30:00Z", []string{"10-25T01:00:00+01:00", "10-25T01:00:00+00:00", "10-25T02:00:00+00:00"}},
		{london, "@hourly", "2026-01-01", "2026-10-24T23:30:00Z", []string{"10-25T01:00:00+01:00", "10-25T01:00:00+00:00", "10-25T02:00:00+00:00"}},
		{london, "*/15 * * * *", "2026-01-01", "2026-10-25T00:30:00Z", []string{"10-25T01:45:00+01:00", "10-25T01:00:00+00:00", "10-25T01:15:00+00:00"}},
		{london, "59 */1 * * *", "2026-01-01", "2026-10-25T00:30:00Z", []string{"10-25T01:59:00+01:00", "10-25T01:59:00+00:00"}},
		{london, "every hour at :15", "2026-01-01", "2026-10-25T00:10:00Z", []string{"10-25T01:15:00+01:00", "10-25T01:15:00+00:00"}},
		{london, "0 0-23 * * *", "2026-01-01", "2026-10-24T23:30:00Z", []string{"10-25T01:00:00+01:00", "10-25T02:00:00+00:00"}},
		{london, "0 *,5 * * *", "2026-01-01", "2026-10-24T23:30:00Z", []string{"10-25T01:00:00+01:00", "10-25T02:00:00+00:00"}},
		{london, "0 1-23/2 * * *", "2026-01-01", "2026-10-24T23:30:00Z", []string{"10-25T01:00:00+01:00", "10-25T03:00:00+00:00"}},
		{london, "*/30 1 * * *", "2026-01-01", "2026-10-25T00:10:00Z", []string{"10-25T01:30:00+01:00", "10-26T01:00:00+00:00"}},
		{london, "FREQ=HOURLY;BYHOUR=1;BYMINUTE=0;BYSECOND=0", "2026-01-01", "2026-10-24T23:30:00Z", []string{"10-25T01:00:00+01:00", "10-26T01:00:00+00:00"}},
		{london, "FREQ=HOURLY;BYDAY=SU", "2026-01-01", "2026-10-24T23:30:00Z", []string{"10-25T01:00:00+01:00", "10-25T01:00:00+00:00"}},

		// Forward: 01:00+00:00 is 02:00+01:00
		{london, "30 * * * *", "2026-01-01", "2026-03-29T00:10:00Z", []string{"03-29T00:30:00+00:00", "03-29T02:30:00+01:00", "03-29T03:30:00+01:00"}},
		{london, "30 0-23 * * *", "2026-01-01", "2026-03-29T00:10:00Z", []string{"03-29T00:30:00+00:00", "03-29T02:30:00+01:00", "03-29T03:30:00+01:00"}},
		{london, "30 1 * * *", "2026-01-01", "2026-03-29T00:10:00Z", []string{"03-29T02:30:00+01:00", "03-30T01:30:00+01:00"}},

		// By half an hour: on the minute that the clock shows
		{lordHowe, "0 * * * *", "2026-01-01", "2026-04-04T14:00:00Z", []string{"04-05T02:00:00+10:30", "04-05T03:00:00+10:30"}},
		{lordHowe, "45 * * * *", "2026-01-01", "2026-04-04T14:00:00Z", []string{"04-05T01:45:00+11:00", "04-05T01:45:00+10:30"}},
		{lordHowe, "0 * * * *", "2026-01-01", "2026-10-03T14:45:00Z", []string{"10-04T03:00:00+11:00"}},

		// Every second hour that has passed: never three without a start
		{london, "FREQ=HOURLY;INTERVAL=2;BYMINUTE=30;BYSECOND=0", "2026-07-01", "2026-10-24T22:00:00Z", []string{"10-25T00:30:00+01:00", "10-25T01:30:00+00:00", "10-25T03:30:00+00:00"}},
		{london, "FREQ=HOURLY;INTERVAL=2;BYMINUTE=30;BYSECOND=0", "2026-01-01", "2026-03-28T23:00:00Z", []string{"03-29T00:30:00+00:00", "03-29T03:30:00+01:00"}},

		// A start in the first of two equal hours, and in the gap
		{london, "45 * * * *", "2026-10-25T01:50:00", "2026-01-01T00:00:00Z", []string{"10-25T01:45:00+00:00", "10-25T02:45:00+00:00"}},
		{london, "45 * * * *", "2026-03-29T01:40:00", "2026-01-01T00:00:00Z", []string{"03-29T02:45:00+01:00"}},

		// COUNT counts instants, and UNTIL ends between two equal ones
		{london, "FREQ=HOURLY;BYMINUTE=0;BYSECOND=0;COUNT=3", "2026-10-25", "2026-01-01T00:00:00Z", []string{"10-25T00:00:00+01:00", "10-25T01:00:00+01:00", "10-25T01:00:00+00:00"}},
		{london, "FREQ=HOURLY;BYMINUTE=0;BYSECOND=0;UNTIL=20261025T005959Z", "2026-10-25", "2026-10-24T23:30:00Z", []string{"10-25T01:00:00+01:00"}},
	} {
		c.rule = check.Got(RuleText(c.rule))(t)
		c.check(t)
	}
}
