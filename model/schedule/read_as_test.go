package schedule

import (
	"testing"
	"time"
)

func TestAScheduleIsShownAsASentenceWithItsNextOccurrences(t *testing.T) {
	after := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	for want, given := range map[string][3]string{
		"every day at 02:30 (Europe/Berlin); next: Sat 2026-03-28 02:30, Sun 2026-03-29 03:30 and Mon 2026-03-30 02:30": {"FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0", "Europe/Berlin", "2026-01-01"},
		"every 90 seconds (UTC); next: Fri 2026-03-27 12:01:30, Fri 2026-03-27 12:03 and Fri 2026-03-27 12:04:30":       {"FREQ=SECONDLY;INTERVAL=90", "", "2026-01-01"},
		"by the rule RDATE:20260401T000000 EXDATE:20260402T000000 (UTC); next: Wed 2026-04-01 00:00":                    {"RDATE:20260401T000000\nEXDATE:20260402T000000", "UTC", "2026-01-01"},
		"by the rule FREQ=DAILY;COUNT=1 (UTC); next: never again":                                                       {"FREQ=DAILY;COUNT=1", "UTC", "2026-01-01"},
		"every 2 days at 00:00 (Asia/Tokyo); next: Sun 2026-03-29 00:00, Tue 2026-03-31 00:00 and Thu 2026-04-02 00:00": {"FREQ=DAILY;INTERVAL=2;BYHOUR=0;BYMINUTE=0;BYSECOND=0", "Asia/Tokyo", ""},
	} {
		understood, err := ReadAs(given[0], given[1], given[2], after)
		if got := understood.String(); err != nil || got != want {
			t.Errorf("%v:\n got %s, %v\nwant %s", given, got, err, want)
		}
	}
	for _, dtstart := range []string{"2026-01-01", ""} {
		if _, err := ReadAs("FREQ=DAILY", "Nowhere", dtstart, after); err == nil {
			t.Error("expected an error for a zone that does not exist, found none")
		}
	}
	if got := (Understood{Sentence: "Allow 1 hour to complete"}).String(); got != "Allow 1 hour to complete" {
		t.Errorf("expected nothing of a rule that there is not, found %s", got)
	}
}
