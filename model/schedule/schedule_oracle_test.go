package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/document"
)

// someRule has an interval with which the library finds what it looks for.
func someRule(r *rand.Rand) string {
	rule := randomLine(r, []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 12})
	if r.IntN(4) == 0 {
		rule += ";WKST=" + weekdays[r.IntN(7)].String()
	}
	return rule
}

// slowly is the library's own way: it walks from DTSTART on.
func slowly(t testing.TB, rule string, dtstart time.Time) rrule.Next {
	t.Helper()
	option, err := rrule.StrToROption(rule)
	stopIf(t, err != nil, "%s: %v", rule, err)
	option.Dtstart = dtstart
	r, err := rrule.NewRRule(*option)
	stopIf(t, err != nil, "%s: %v", rule, err)
	return r.Iterator()
}

// someWhere returns a dtstart at which the two ways must agree: in the week of DTSTART the library counts BYSETPOS from
// DTSTART on and not from the beginning of the week, as RFC 5545 would have it.
func someWhere(r *rand.Rand, rule string) time.Time {
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(8*365*86_400)) * time.Second)
	if r.IntN(3) == 0 {
		at = at.Truncate(24 * time.Hour)
	}
	if strings.Contains(rule, "WEEKLY") && strings.Contains(rule, "BYSETPOS") {
		start := rrule.MO
		if _, after, ok := strings.Cut(rule, "WKST="); ok {
			start, _ = readDay(after[:2])
		}
		at = at.AddDate(0, 0, -((int(at.Weekday())+6)%7-start.Day()+7)%7).Truncate(24 * time.Hour)
	}
	return at
}

func TestAnAdmittedRuleOccursExactlyWhenTheLibrarySaysSo(t *testing.T) {
	r, want := rand.New(rand.NewPCG(20260101, 0)), long.Or(2_000, 4_000)
	admitted, refused := 0, 0
	for admitted < want {
		rule := someRule(r)
		dtstart := someWhere(r, rule)
		s, err := Parse(rule, "", dtstart.Format(dtstartLayout))
		if err != nil {
			refused++
			continue
		}
		admitted++
		compareWithLibrary(t, r, s, rule, dtstart)
		if admitted%60 == 0 {
			compareWhenOld(t, s, rule, dtstart)
		}
	}
	t.Logf("%d rules compared, %d refused", admitted, refused)
}

// compareWithLibrary looks at the first occurrences, and from a few random instants among them.
func compareWithLibrary(t *testing.T, r *rand.Rand, s *Schedule, rule string, dtstart time.Time) {
	t.Helper()
	var all []time.Time
	for next := slowly(t, rule, dtstart); len(all) < 25; {
		at, ok := next()
		if !ok || at.Unix() >= horizon {
			break
		}
		all = append(all, at)
	}
	after := dtstart.Add(-time.Duration(1+r.IntN(100_000)) * time.Second)
	for i, at := range all {
		got, ok := s.Next(after)
		stopIf(t, !ok || !got.Equal(at), "%s from %s: occurrence %d is %s, Next(%s) = %s, %v", rule, dtstart, i, at, after, got, ok)
		after = at
		if i > 0 && r.IntN(4) == 0 {
			after = at.Add(-time.Duration(1 + r.Int64N(int64(at.Sub(all[i-1])))))
			got, ok := s.Next(after)
			stopIf(t, !ok || !got.Equal(at), "%s from %s: Next(%s) = %s, %v, not %s", rule, dtstart, after, got, ok, at)
			after = at
		}
	}
}

// compareWhenOld goes on for as long as the library's walk stays bearable.
func compareWhenOld(t *testing.T, s *Schedule, rule string, dtstart time.Time) {
	t.Helper()
	next, before := slowly(t, rule, dtstart), dtstart
	for i := range 12_000 {
		at, ok := next()
		if !ok || at.Unix() >= horizon {
			return
		}
		if i%1_999 == 0 && i > 0 {
			got, ok := s.Next(before)
			stopIf(t, !ok || !got.Equal(at), "%s from %s: Next(%s) = %s, %v, not %s", rule, dtstart, before, got, ok, at)
		}
		before = at
	}
}

func TestARuleThatEndsOccursExactlyWhenTheLibrarySaysSo(t *testing.T) {
	r, want := rand.New(rand.NewPCG(7, 0)), long.Or(300, 1_500)
	for want > 0 {
		rule := someRule(r)
		dtstart := someWhere(r, rule)
		if r.IntN(2) == 0 {
			rule += fmt.Sprintf(";COUNT=%d", 1+r.IntN(60))
		} else {
			rule += ";UNTIL=" + dtstart.Add(time.Duration(r.Int64N(int64(1000*24*time.Hour)))).Format(rfcLayoutUTC)
		}
		if s, err := Parse(rule, "", dtstart.Format(dtstartLayout)); err == nil {
			want--
			compareToTheEnd(t, s, rule, dtstart)
		}
	}
}

func compareToTheEnd(t *testing.T, s *Schedule, rule string, dtstart time.Time) {
	t.Helper()
	after := time.Unix(-endless, 0)
	for next, i := slowly(t, rule, dtstart), 0; i < 200; i++ {
		at, wantOK := next()
		got, ok := s.Next(after)
		if wantOK = wantOK && at.Unix() < horizon; ok != wantOK || ok && !got.Equal(at) {
			t.Fatalf("%s from %s: occurrence %d is %s, %v, Next(%s) = %s, %v", rule, dtstart, i, at, wantOK, after, got, ok)
		}
		if after = got; !ok {
			return
		}
	}
}

func TestARuleIsRefusedAsNeverOccurringOnlyIfItNeverDoes(t *testing.T) {
	r, want := rand.New(rand.NewPCG(3, 0)), long.Or(10, 60)
	for want > 0 {
		rule := someRule(r)
		dtstart := someWhere(r, rule)
		_, err := Parse(rule, "", dtstart.Format(dtstartLayout))
		if err == nil || !strings.Contains(err.Error(), "one that never does") || strings.Contains(rule, "ECONDLY") || strings.Contains(err.Error(), "INTERVAL") {
			continue
		}
		want--
		// The library looks as far as the year 9999. The calendar of 7600 years on is the same.
		at, ok := slowly(t, rule, dtstart.AddDate(7600, 0, 0))()
		stopIf(t, ok && at.Year() < 7600+horizonYear, "%s from %s was refused, but occurs at %s: %v", rule, dtstart, at, err)
	}
}

func FuzzParseSchedule(f *testing.F) {
	for _, rule := range []string{
		"FREQ=DAILY;BYHOUR=6,16", "FREQ=MINUTELY;INTERVAL=7;BYHOUR=1,2,3;BYDAY=SU", "FREQ=MONTHLY;BYDAY=-1FR", "FREQ=YEARLY;BYWEEKNO=53;WKST=SU", "FREQ=SECONDLY;INTERVAL=61;BYSECOND=0",
		"FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=-1;COUNT=9\nEXDATE:20260105T000000Z", "RDATE:20260101T000000\nFREQ=YEARLY;BYDAY=20MO;UNTIL=20300101T000000", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
	} {
		f.Add(rule, "America/New_York", "2026-01-01T02:30:00")
		f.Add(rule, "", "1999-12-31")
	}
	f.Fuzz(func(t *testing.T, rule, zone, dtstart string) {
		s, err := Parse(rule, zone, dtstart)
		if err != nil {
			stopIf(t, !errors.As(err, new(*document.Error)) || strings.Contains(err.Error(), "can be evaluated"), "%q: %v", rule, err)
			return
		}
		for _, year := range []int{1, 2007, 2026, 2100, 2298} {
			after := time.Date(year, 10, 31, 0, 0, 0, 1, time.UTC)
			for range 20 {
				next, ok, err := s.Evaluate(after)
				stopIf(t, err != nil || ok && (!next.After(after) || next.Year() >= horizonYear),
					"%q in %q from %q: after %s comes %s, %v", rule, zone, dtstart, after, next, err)
				if !ok {
					break
				}
				again, _ := s.Next(next.Add(-1))
				stopIf(t, !again.Equal(next), "%q in %q from %q: after %s comes %s, but just before that %s", rule, zone, dtstart, after, next, again)
				after = next
			}
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for _, rule := range []string{
		"FREQ=SECONDLY", "FREQ=SECONDLY;INTERVAL=30", "FREQ=MINUTELY", "FREQ=MINUTELY;INTERVAL=15", "FREQ=HOURLY", "FREQ=HOURLY;INTERVAL=2", "FREQ=DAILY",
		"FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "FREQ=WEEKLY;BYDAY=MO,WE,FR", "FREQ=MONTHLY;BYDAY=-1FR", "FREQ=MONTHLY;BYMONTHDAY=31", "FREQ=YEARLY",
		"FREQ=HOURLY;BYMINUTE=0,15,30,45;BYSECOND=0", "FREQ=HOURLY;INTERVAL=2;BYMINUTE=30;BYSECOND=0",
		"FREQ=MINUTELY;INTERVAL=5;BYHOUR=9,10,11,12;BYDAY=MO,TU,WE,TH,FR", "FREQ=YEARLY;BYDAY=20MO", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
		"FREQ=SECONDLY", "FREQ=HOURLY;INTERVAL=2", "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "FREQ=MONTHLY;BYDAY=-1FR", "FREQ=YEARLY;BYDAY=20MO",
		"FREQ=MINUTELY;INTERVAL=5;BYHOUR=9,10,11,12;BYDAY=MO,TU,WE,TH,FR", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
	} {
		for _, zone := range []string{"UTC", "America/New_York"} {
			b.Run(strings.ReplaceAll(rule, "FREQ=", "")+"/"+zone, func(b *testing.B) {
				s, err := Parse(rule, zone, "2016-03-01T00:00:00")
				must(b, err)
				after := time.Date(2026, 3, 1, 12, 34, 56, 0, time.UTC)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					s.Next(after.Add(time.Duration(i%365) * 24 * time.Hour))
				}
			})
		}
	}
}

func TestTheSlotsOfAnIntervalAreCountedFromDayToDay(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 0))
	for range 3_000 {
		slot := []int64{1, 60, 3600}[r.IntN(3)]
		c := dayClock{
			hours: r.Uint64() & r.Uint64() & (1<<24 - 1), minutes: r.Uint64() & r.Uint64() & r.Uint64() & (1<<60 - 1), seconds: r.Uint64() & r.Uint64() & r.Uint64() & (1<<60 - 1),
			pace: pace{slot, 1 + r.Int64N(3*daySeconds/slot), r.Int64N(1_000_000_000) * slot},
		}
		if r.IntN(2) == 0 {
			c.pace.every = []int64{2, 5, 7, 24, 60, 90, 1440, 3600}[r.IntN(8)]
		}
		day, second := r.Int64N(20_000), r.Int64N(daySeconds)
		got, ok := c.from(day, second, unbounded())
		want, wantOK := slowFrom(c, day, second)
		stopIf(t, got != want || ok != wantOK, "%+v: from(%d, %d) = %d, %v; want %d, %v", c, day, second, got, ok, want, wantOK)
		if c.pace.every <= 400 && meetsSomeDay(c) != c.meets(daySeconds, unbounded()) {
			t.Fatalf("%+v: meets() = %v", c, c.meets(daySeconds, unbounded()))
		}
	}
}

// meetsSomeDay tries all days there are, for after that many the slots are the same again.
func meetsSomeDay(c dayClock) bool {
	for day := range c.pace.every {
		if _, ok := c.from(day, 0, unbounded()); ok {
			return true
		}
	}
	return false
}

func slowFrom(c dayClock, day, second int64) (int64, bool) {
	for ; second < daySeconds; second++ {
		allowed := c.hours>>(second/3600)&1 == 1 && c.minutes>>(second/60%60)&1 == 1 && c.seconds>>(second%60)&1 == 1
		if allowed && ((day*daySeconds+second)/c.pace.slot-c.pace.start/c.pace.slot)%c.pace.every == 0 {
			return second, true
		}
	}
	return 0, false
}
