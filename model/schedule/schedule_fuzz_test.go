package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

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
			if !errors.As(err, new(*document.Error)) || strings.Contains(err.Error(), "can be evaluated") {
				t.Fatalf("%q: %v", rule, err)
			}
			return
		}
		for _, year := range []int{1, 2007, 2026, 2100, 2298} {
			after := time.Date(year, 10, 31, 0, 0, 0, 1, time.UTC)
			for range 20 {
				next, ok, err := s.Evaluate(after)
				if err != nil || ok && (!next.After(after) || next.Year() >= horizonYear) {
					t.Fatalf("%q in %q from %q: after %s comes %s, %v", rule, zone, dtstart, after, next, err)
				}
				if !ok {
					break
				}
				if again, _ := s.Next(next.Add(-1)); !again.Equal(next) {
					t.Fatalf("%q in %q from %q: after %s comes %s, but just before that %s", rule, zone, dtstart, after, next, again)
				}
				after = next
			}
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for _, rule := range []string{
		"FREQ=SECONDLY", "FREQ=HOURLY;INTERVAL=2", "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "FREQ=MONTHLY;BYDAY=-1FR", "FREQ=YEARLY;BYDAY=20MO",
		"FREQ=MINUTELY;INTERVAL=5;BYHOUR=9,10,11,12;BYDAY=MO,TU,WE,TH,FR", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
	} {
		for _, zone := range []string{"UTC", "America/New_York"} {
			b.Run(strings.ReplaceAll(rule, "FREQ=", "")+"/"+zone, func(b *testing.B) {
				s, err := Parse(rule, zone, "2016-03-01T00:00:00")
				if err != nil {
					b.Fatal(err)
				}
				after := time.Date(2026, 3, 1, 12, 34, 56, 0, time.UTC)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					s.Next(after.Add(time.Duration(i%365) * 24 * time.Hour))
				}
			})
		}
	}
}
