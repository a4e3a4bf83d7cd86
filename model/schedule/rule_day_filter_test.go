package schedule

import (
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/teambition/rrule-go"
)

func TestNoDayThatARuleNamesIsPassedOver(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	some := func(list []int, most int, values ...int) []int {
		for range r.Intn(most + 1) {
			list = append(list, values[r.Intn(len(values))])
		}
		return list
	}
	for range 400 {
		o := rrule.ROption{Freq: []rrule.Frequency{rrule.YEARLY, rrule.WEEKLY, rrule.MONTHLY}[r.Intn(3)], Wkst: weekdays[r.Intn(7)]}
		o.Bymonth = some(nil, r.Intn(2), 1, 2, 6, 12)
		o.Bymonthday = some(nil, r.Intn(3), 1, 7, 14, 28, 29, 31, -1, -3)
		o.Byyearday = some(nil, r.Intn(2), 1, 60, 366, -1, -300)
		o.Byweekno = some(nil, 3, 1, 2, 20, 50, 51, 52, 53, -1, -2, -52, -53)
		for _, day := range some(nil, r.Intn(4), 0, 1, 2, 3, 4, 5, 6) {
			o.Byweekday = append(o.Byweekday, weekdays[day])
		}
		f, free := newDayFilter(&o), int64(0)
		for day := int64(18_000); day < 18_000+12*366; day++ {
			d := dateOf(day)
			wait := f.wait(&d)
			if wait == 0 && day < free {
				t.Fatalf("%s: day %v is passed over", o.RRuleString(), d)
			}
			free = max(free, day+wait)
		}
	}
}

func TestARuleThatSeldomMeetsIsAcceptedAndOneThatNeverDoesIsRefusedForThat(t *testing.T) {
	for rule, want := range map[string]string{
		"FREQ=YEARLY;BYWEEKNO=53;BYDAY=TU,SA":                     "2026-12-29",
		"FREQ=YEARLY;BYWEEKNO=-53;BYDAY=TH":                       "2026-01-01",
		"FREQ=YEARLY;BYWEEKNO=53;BYDAY=FR;BYMONTH=1":              "2027-01-01",
		"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU":            "2032-02-29",
		"FREQ=YEARLY;BYMONTH=2;BYDAY=TH;BYSETPOS=5":               "2052-02-29",
		"FREQ=YEARLY;BYMONTHDAY=14;BYWEEKNO=20;BYDAY=FR":          "2032-05-14",
		"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=23":           "2026-07-31",
		"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=24":           "never",
		"FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=263":           "never",
		"FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=3":                      "never",
		"FREQ=YEARLY;INTERVAL=7;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU": "never",
	} {
		s, err := Parse(rule, "", "2026-01-01")
		got := "never"
		if err == nil {
			at, _ := s.Next(time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC))
			got = at.Format(time.DateOnly)
		}
		failIf(t, got != want || err != nil && !strings.Contains(err.Error(), "never does"), "%s: got %s, %v; want %s", rule, got, err, want)
	}
}
