package schedule

import (
	"testing"
	"time"
)

func TestAnHourlyRuleIsNotWarnedOfAChangeOfTheClocks(t *testing.T) {
	after := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for rule, want := range map[string]int{
		"FREQ=HOURLY;BYMINUTE=0;BYSECOND=0": 0, "FREQ=HOURLY;BYMINUTE=15,45;BYSECOND=0": 0, "FREQ=HOURLY;BYDAY=SU;BYMINUTE=0;BYSECOND=0": 0, "FREQ=HOURLY": 0,
		"FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23;BYMINUTE=0;BYSECOND=0": 0,
		"FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0":                                                            2,
		"FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0;BYSECOND=0":                                                         2,
		"RRULE:FREQ=HOURLY;BYMINUTE=0;BYSECOND=0\nRRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0":             2,
	} {
		for _, zone := range []string{"Europe/Berlin", "Australia/Lord_Howe"} {
			s, err := Parse(rule, zone, "2027-01-01")
			if err != nil {
				t.Fatal(err)
			}
			if got := s.ClockChanges(after, 366); zone == "Europe/Berlin" && len(got) != want || want == 0 && len(got) > 0 {
				t.Errorf("%s in %s: expected %d changes, found %v", rule, zone, want, got)
			}
		}
	}
}
