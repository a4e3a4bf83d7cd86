package schedule

import (
	"testing"
	"time"
)

func TestADayHasItsDateInTheCalendar(t *testing.T) {
	for at := time.Date(1968, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2402; at = at.AddDate(0, 0, 1) {
		want := date{at.Unix() / daySeconds, at.Year(), int(at.Month()), at.Day(), at.YearDay(), int(at.Weekday()+6) % 7}
		if at.Unix() < 0 {
			want.day = (at.Unix() - daySeconds + 1) / daySeconds
		}
		got := dateOf(want.day)
		month := time.Date(at.Year(), at.Month()+1, 0, 0, 0, 0, 0, time.UTC)
		year := time.Date(at.Year(), 12, 31, 0, 0, 0, 0, time.UTC)
		if got != want || got.monthLength() != month.Day() || got.yearLength() != year.YearDay() {
			t.Fatalf("%s: got %+v of a month of %d and a year of %d days", at, got, got.monthLength(), got.yearLength())
		}
	}
}
