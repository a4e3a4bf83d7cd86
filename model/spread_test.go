package model

import (
	"testing"
	"time"
)

func TestAModelIsShiftedByAPartOfTheSpreadThatIsItsOwn(t *testing.T) {
	const hourly = `"rrule":"FREQ=HOURLY","dtstart":"2026-01-05","policy":{"timeout":"5m","retries":["1m"],"spread":"10m"}`
	shift := tell(t, hourly, "").m.RefreshAt.Sub(clock("00:00"))
	if shift >= 10*time.Minute {
		shift -= time.Hour
	}
	s := tell(t, hourly, "")
	if shift <= 0 || shift >= 10*time.Minute || shift%time.Millisecond != 0 {
		t.Fatalf("tbl_1 is shifted by %v", shift)
	}
	for hour := range 24 * 400 {
		at := monday.Add(time.Duration(hour)*time.Hour + shift)
		if !s.m.RefreshAt.Equal(at) {
			t.Fatalf("hour %d: %s, want %s", hour, s, at)
		}
		s.do(at, "wake", "")
		s.do(at.Add(time.Minute), "success", "")
	}
}

func TestWithoutAScheduleThereIsNothingToSpread(t *testing.T) {
	tell(t, `"policy":{"spread":"1h"}`, "00:00 wake | 00:01 success").expect("#0, next never: finished: one-shot")
	tell(t, `"rrule":"FREQ=DAILY;COUNT=1","dtstart":"2020-01-01","policy":{"spread":"1h"}`, "").expect("#0, next never: finished: no planned refresh left")
	if policy := policyOf(t, `{"spread":null}`); policy.Spread != 0 {
		t.Errorf("found %v", policy.Spread)
	}
	refusals(t, map[string]string{`{"spread":"wide"}`: `spread: expected a duration such as "90s", "1h30m", "PT5M" or "10 minutes", found "wide" (a number from 0 is missing before "wide")`})
}
