package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

func scheduleOf(t testing.TB, rule, zone string) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(rule, zone, schedule.DefaultDtstart)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

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

func TestTenThousandHourlyModelsAreSpreadEvenly(t *testing.T) {
	hourly, noon := scheduleOf(t, "FREQ=HOURLY", ""), clock("12:00")
	var minutes [10]int
	for i := range 10_000 {
		at, found := schedule.Spread{Schedule: hourly, Phase: policy.Fraction("spread", fmt.Sprintf("tbl_%d", i)), Length: 10 * time.Minute}.Next(noon.Add(-time.Millisecond))
		shift := at.Sub(noon)
		if !found || shift < 0 || shift >= 10*time.Minute {
			t.Fatalf("tbl_%d starts at %s", i, at)
		}
		minutes[shift/time.Minute]++
	}
	for minute, n := range minutes {
		if n < 880 || n > 1120 { // 1000, and four standard deviations
			t.Errorf("%d start in minute %d: %v", n, minute, minutes)
		}
	}
}

func TestWithoutAScheduleThereIsNothingToSpread(t *testing.T) {
	tell(t, `"policy":{"spread":"1h"}`, "00:00 wake | 00:01 success").expect("#0, next never: finished: one-shot")
	tell(t, `"rrule":"FREQ=DAILY;COUNT=1","dtstart":"2020-01-01","policy":{"spread":"1h"}`, "").expect("#0, next never: finished: no planned refresh left")
	if policy := policyOf(t, `{"spread":null}`); policy.Spread != 0 {
		t.Errorf("found %v", policy.Spread)
	}
	refusals(t, map[string]string{`{"spread":"wide"}`: `spread: expected ` + document.WantDuration + `, found "wide" (a number from 0 is missing before "wide")`})
}
