package policy

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/schedule"
)

func TestABadJitterIsRefused(t *testing.T) {
	for value, found := range map[string]string{`-0.1`: `-0.1`, `1.1`: `1.1`, `"NaN"`: `"NaN"`, `"Inf"`: `"Inf"`, `1e400`: `1e400`, `"some"`: `"some"`} {
		refusals(t, map[string]string{`{"jitter":` + value + `}`: "jitter: expected a number from 0 to 1, found " + found})
	}
	refusals(t, map[string]string{`{"jitter":true}`: "jitter: expected a text or a number, found true"})
	for value, want := range map[string]float64{`0`: 0, `1`: 1, `"0.5"`: 0.5, `null`: 0.2} {
		if got := policyOf(t, `{"retries":{"strategy":"fixed"},"jitter":`+value+`}`).Jitter; got != want {
			t.Errorf("%s: %g", value, got)
		}
	}
}

func TestAFractionIsFromZeroUpToButNotIncludingOne(t *testing.T) {
	sum := 0.0
	for i := range 100_000 {
		f := Fraction("jitter", fmt.Sprint(i))
		if !(f >= 0 && f < 1) {
			t.Fatalf("%d: %g", i, f)
		}
		sum += f
	}
	if mean := sum / 100_000; math.Abs(mean-0.5) > 0.005 {
		t.Errorf("mean %g", mean)
	}
	if Fraction("spread", "a") == Fraction("jitter", "a") {
		t.Error("two purposes have one number")
	}
}

func hourlySchedule(t *testing.T) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse("FREQ=HOURLY", "", schedule.DefaultDtstart)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTenThousandHourlyModelsAreSpreadEvenly(t *testing.T) {
	hourly, noon := hourlySchedule(t), time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	var minutes [10]int
	for i := range 10_000 {
		at, found, _ := schedule.Spread{Schedule: hourly, Phase: Fraction("spread", fmt.Sprintf("tbl_%d", i)), Length: 10 * time.Minute}.Evaluate(noon.Add(-time.Millisecond))
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
