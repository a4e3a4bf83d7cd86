package schedule

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/internal/testkit/long"
)

// randomRule writes a rule that RFC 5545 or at least the library allows. It may still contradict itself.
func randomRule(r *rand.Rand) string {
	freqs := []string{"SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"}
	freq := freqs[r.Intn(len(freqs))]
	parts := []string{"FREQ=" + freq}
	add := func(chance int, name string, values func() string) {
		if r.Intn(100) < chance {
			parts = append(parts, name+"="+values())
		}
	}
	numbers := func(most, first, last int, fromEnd bool) func() string {
		return func() string { return randomList(r, most, first, last, fromEnd) }
	}
	subDaily := slices.Index(freqs, freq) < 3
	long := freq == "MONTHLY" || freq == "YEARLY"
	add(60, "INTERVAL", func() string { return fmt.Sprint(1 + r.Intn(12)) })
	add(30, "WKST", func() string { return weekdays[r.Intn(7)].String() })
	add(20, "BYMONTH", numbers(3, 1, 12, false))
	add(15, "BYMONTHDAY", numbers(4, 1, 31, true))
	add(8, "BYYEARDAY", numbers(5, 1, 366, true))
	add(6, "BYWEEKNO", numbers(5, 1, 53, true))
	add(25, "BYDAY", func() string { return randomDays(r, long && !strings.Contains(strings.Join(parts, ""), "WEEKNO")) })
	add(25, "BYHOUR", numbers(3, 0, 23, false))
	add(25, "BYMINUTE", numbers(3, 0, 59, false))
	add(15, "BYSECOND", numbers(3, 0, 59, false))
	if len(parts) > 2 && !subDaily {
		add(20, "BYSETPOS", numbers(2, 1, 4, true))
	}
	return strings.Join(parts, ";")
}

func randomList(r *rand.Rand, most, first, last int, fromEnd bool) string {
	var list []string
	for range 1 + r.Intn(most) {
		n := first + r.Intn(last-first+1)
		if fromEnd && r.Intn(3) == 0 {
			n = -n
		}
		if text := fmt.Sprint(n); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, ",")
}

func randomDays(r *rand.Rand, ordinals bool) string {
	ordinals = ordinals && r.Intn(2) == 0
	var list []string
	for range 1 + r.Intn(4) {
		day := weekdays[r.Intn(7)]
		if ordinals {
			day = day.Nth([]int{-5, -4, -3, -2, -1, 1, 2, 3, 4, 5}[r.Intn(10)])
		}
		if text := day.String(); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, ",")
}

// slowly is the library's own way: it walks from DTSTART on.
func slowly(t testing.TB, rule string, dtstart time.Time) rrule.Next {
	t.Helper()
	option, err := rrule.StrToROption(rule)
	if err != nil {
		t.Fatalf("%s: %v", rule, err)
	}
	option.Dtstart = dtstart
	r, err := rrule.NewRRule(*option)
	if err != nil {
		t.Fatalf("%s: %v", rule, err)
	}
	return r.Iterator()
}

// someWhere returns a dtstart at which the two ways must agree: in the week of DTSTART the library counts BYSETPOS from
// DTSTART on and not from the beginning of the week, as RFC 5545 would have it.
func someWhere(r *rand.Rand, rule string) time.Time {
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Intn(8*365*86_400)) * time.Second)
	if r.Intn(3) == 0 {
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
	r, want := rand.New(rand.NewSource(20260101)), long.Or(2_000, 21_000)
	admitted, refused := 0, 0
	for admitted < want {
		rule := randomRule(r)
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
	after := dtstart.Add(-time.Duration(1+r.Intn(100_000)) * time.Second)
	for i, at := range all {
		got, ok := s.Next(after)
		if !ok || !got.Equal(at) {
			t.Fatalf("%s from %s: occurrence %d is %s, Next(%s) = %s, %v", rule, dtstart, i, at, after, got, ok)
		}
		after = at
		if i > 0 && r.Intn(4) == 0 {
			after = at.Add(-time.Duration(1 + r.Int63n(int64(at.Sub(all[i-1])))))
			if got, ok := s.Next(after); !ok || !got.Equal(at) {
				t.Fatalf("%s from %s: Next(%s) = %s, %v, not %s", rule, dtstart, after, got, ok, at)
			}
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
			if got, ok := s.Next(before); !ok || !got.Equal(at) {
				t.Fatalf("%s from %s: Next(%s) = %s, %v, not %s", rule, dtstart, before, got, ok, at)
			}
		}
		before = at
	}
}

func TestARuleThatEndsOccursExactlyWhenTheLibrarySaysSo(t *testing.T) {
	r, want := rand.New(rand.NewSource(7)), long.Or(300, 3_000)
	for want > 0 {
		rule := randomRule(r)
		dtstart := someWhere(r, rule)
		if r.Intn(2) == 0 {
			rule += fmt.Sprintf(";COUNT=%d", 1+r.Intn(60))
		} else {
			rule += ";UNTIL=" + dtstart.Add(time.Duration(r.Int63n(int64(1000*24*time.Hour)))).Format(rfcLayoutUTC)
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
	r, want := rand.New(rand.NewSource(3)), long.Or(10, 60)
	for want > 0 {
		rule := randomRule(r)
		dtstart := someWhere(r, rule)
		_, err := Parse(rule, "", dtstart.Format(dtstartLayout))
		if err == nil || !strings.Contains(err.Error(), "one that never does") || strings.Contains(rule, "ECONDLY") || strings.Contains(err.Error(), "INTERVAL") {
			continue
		}
		want--
		// The library looks as far as the year 9999. The calendar of 7600 years on is the same.
		if at, ok := slowly(t, rule, dtstart.AddDate(7600, 0, 0))(); ok && at.Year() < 7600+horizonYear {
			t.Fatalf("%s from %s was refused, but occurs at %s: %v", rule, dtstart, at, err)
		}
	}
}

func TestTheSlotsOfAnIntervalAreCountedFromDayToDay(t *testing.T) {
	r := rand.New(rand.NewSource(11))
	for range 3_000 {
		slot := []int64{1, 60, 3600}[r.Intn(3)]
		c := dayClock{
			hours: r.Uint64() & r.Uint64() & (1<<24 - 1), minutes: r.Uint64() & r.Uint64() & r.Uint64() & (1<<60 - 1), seconds: r.Uint64() & r.Uint64() & r.Uint64() & (1<<60 - 1),
			slot: slot, every: 1 + r.Int63n(3*daySeconds/slot), phase: r.Int63n(1_000_000_000),
		}
		if r.Intn(2) == 0 {
			c.every = []int64{2, 5, 7, 24, 60, 90, 1440, 3600}[r.Intn(8)]
		}
		day, second := r.Int63n(20_000), r.Int63n(daySeconds)
		got, ok := c.from(day, second, unbounded())
		want, wantOK := slowFrom(c, day, second)
		if got != want || ok != wantOK {
			t.Fatalf("%+v: from(%d, %d) = %d, %v; want %d, %v", c, day, second, got, ok, want, wantOK)
		}
		if c.every <= 400 && meetsSomeDay(c) != c.meets(unbounded()) {
			t.Fatalf("%+v: meets() = %v", c, c.meets(unbounded()))
		}
	}
}

// meetsSomeDay tries all days there are, for after that many the slots are the same again.
func meetsSomeDay(c dayClock) bool {
	for day := range c.every {
		if _, ok := c.from(day, 0, unbounded()); ok {
			return true
		}
	}
	return false
}

func slowFrom(c dayClock, day, second int64) (int64, bool) {
	for ; second < daySeconds; second++ {
		allowed := c.hours>>(second/3600)&1 == 1 && c.minutes>>(second/60%60)&1 == 1 && c.seconds>>(second%60)&1 == 1
		if allowed && ((day*daySeconds+second)/c.slot-c.phase)%c.every == 0 {
			return second, true
		}
	}
	return 0, false
}
