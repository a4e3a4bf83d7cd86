package dashboard

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestAnAxisHasAtMostThreeRoundMarksAboveZero(t *testing.T) {
	for most, want := range map[int64]int64{0: 1, 1: 1, 3: 1, 4: 2, 6: 2, 7: 5, 15: 5, 16: 10, 30: 10, 31: 20, 1000: 500, 1501: 1000} {
		if got := roundStep(most, false); got != want {
			t.Errorf("up to %d: got %d, want %d", most, got, want)
		}
	}
	for most, want := range map[int64]int64{30: 10, 60: 20, 61: 60, 200: 120, 3600: 20 * 60, 3601: 3600, 86400: 10 * 3600, 86401: 86400} {
		if got := roundStep(most, true); got != want {
			t.Errorf("up to %d s: got %d, want %d", most, got, want)
		}
	}
}

func TestAGraphStacksItsBarsOnTheAxisAndSaysWhatIsNotKnown(t *testing.T) {
	g := graph{Legend: []key{{"good", "success"}, {"bad", "failure"}}}
	var slots []slot
	for i, values := range [][2]int64{{20, 10}, {0, -1}, {-1, -1}, {0, 15}} {
		s := slot{from: fixture.SixOClock.Add(time.Duration(i) * time.Minute)}
		s.values[report.MetricSuccesses], s.values[report.MetricFailures] = values[0], values[1]
		slots = append(slots, s)
	}
	g.draw(slots, time.Minute, time.UTC, 25, report.MetricSuccesses, report.MetricFailures)
	// 30 is the top, at 112 of 120 pixels: so 10 takes 37.33.
	wantY := []mark{{"120", "0", false}, {"82.67", "10", false}, {"45.33", "20", false}, {"8", "30", false}}
	if diff := cmp.Diff(wantY, g.Y); diff != "" {
		t.Errorf("marks of the axis (-want +got):\n%s", diff)
	}
	if want := "26.67"; g.Limit != want {
		t.Errorf("limit: got %s, want %s", g.Limit, want)
	}
	want := []column{
		{"0%", "25%", "21.25%", "06:00", []string{"20", "10"}, "06:00: 20 success, 10 failure", []bar{{"good", "45.33", "74.67"}, {"bad", "8", "37.33"}}},
		{"25%", "25%", "21.25%", "06:01", []string{"0", "–"}, "06:01: 0 success", nil},
		{"50%", "25%", "21.25%", "06:02", []string{"–", "–"}, "06:02: not known", nil},
		{"75%", "25%", "21.25%", "06:03", []string{"0", "15"}, "06:03: 0 success, 15 failure", []bar{{"bad", "64", "56"}}},
	}
	if diff := cmp.Diff(want, g.Columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	for i, x := range g.X {
		if x.Odd != (i%2 == 0) || x.At == "0%" { // the first tick, at the edge, is not shown
			t.Errorf("mark %d of time: got %+v, want each second one odd, and none at the edge", i, x)
		}
	}
	if len(g.X) < 2 {
		t.Errorf("got the marks %v of time, want some", g.X)
	}
}

func TestAValueOfAGraphIsANumberALengthOrNothing(t *testing.T) {
	for want, row := range map[string]struct {
		value int64
		waits bool
	}{"–": {-1, true}, "0": {0, false}, "999": {999, false}, "1,000": {1000, false}, "1,234,567": {1_234_567, false}, "1m": {60, true}} {
		if got := valueText(row.value, row.waits); got != want {
			t.Errorf("%+v: got %s, want %s", row, got, want)
		}
	}
	for want, step := range map[string]time.Duration{"06:00": time.Hour, "Sat 21 Nov 06:00": 24 * time.Hour} {
		if got := spanText(fixture.SixOClock, step, time.UTC); got != want {
			t.Errorf("%v: got %s, want %s", step, got, want)
		}
	}
	midnight := fixture.SixOClock.Truncate(24 * time.Hour)
	if got, want := fmt.Sprint(spanText(midnight, 24*time.Hour, time.UTC)), "Sat 21 Nov"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
