package model

import (
	"testing"
	"time"
)

func TestAPhaseMovesThePlannedRefreshThatAModelWaitsForAndAllBehindIt(t *testing.T) {
	const everyHour = `"policy":{` + hourly + `}`
	runStories(t, []storyTest{
		{everyHour, "00:30 level 3m20s", "#0, next 01:03:20: planned"},
		{everyHour, "00:30 level 3m20s | 01:03:20 start | 01:05 success", "#0, next 02:03:20: planned"},
		{everyHour, "00:30 level 10m | 00:40 level 1m", "#0, next 01:01: planned"},
		{everyHour, "00:30 level 10m | 00:40 level 0s", "#0, next 01:00: planned"},

		// Its own time would be in the past: the next one is the first that moves
		{everyHour, "00:30 level 10m | 01:05 level 1m", "#0, next 01:10: planned"},
		{everyHour, "00:30 level 10m | 01:05 level 1m | 01:10 start | 01:11 success", "#0, next 02:01: planned"},

		// A save that changes the rule keeps it, and so does a failure, a stop and a changed policy
		{everyHour, `00:30 level 10m | 00:40 put "rrule":"FREQ=MINUTELY;INTERVAL=30"`, "#0, next 01:10: planned"},
		{everyHour, "00:30 level 10m | 01:10 start | 01:11 failure | 01:16 start | 01:17 success", "#0, next 02:10: planned"},
		{everyHour, "00:30 level 10m | 00:40 disable | 00:50 enable", "#0, next 01:10: planned"},
		{everyHour, "00:30 level 10m | 00:40 policy " + alsoYearly + " | 00:41 policy " + hourly, "#0, next 01:10: planned"},
		{everyHour, "00:30 disable | 00:40 level 10m | 00:50 enable", "#0, next 01:10: planned"},
	})
}

func TestAPhaseTakesThePlaceOfTheSpread(t *testing.T) {
	const spread = `"rrule":"FREQ=HOURLY","dtstart":"2026-01-05","policy":{"timeout":"5m","retries":["1m"],"spread":"10m"}`
	shift := tell(t, spread, "").m.RefreshAt.Sub(clock("00:00")) % time.Hour
	runStories(t, []storyTest{{spread, "00:05 start | 00:06 success | 00:20 level 15m", "#0, next 01:15: planned"}})
	if s := tell(t, spread, "00:02 level 15m | 00:03 level 0s | 00:20 wake | 00:21 success"); !s.m.RefreshAt.Equal(clock("01:00").Add(shift)) {
		t.Errorf("without its phase: %s, want a shift of %v", s, shift)
	}
}

func TestAModelThatDoesAnythingElseGetsNoPhase(t *testing.T) {
	const everyHour = `"policy":{` + hourly + `}`
	for steps, want := range map[string]Outcome{
		"01:00 level 10m":                                  Busy, // due
		"01:00 start | 01:01 level 10m":                    Busy,
		"01:00 start | 01:01 failure | 01:02 level 10m":    Busy,
		"00:30 run | 00:30 level 10m":                      Busy,
		"00:30 level 10m | 00:31 level 10m":                Unchanged,
		"00:30 level 0s":                                   Unchanged,
		"00:30 level 10m":                                  Applied,
		"00:30 disable | 00:31 level 10m":                  Applied,
		"01:00 start | 01:01 disable | 01:02 level 10m":    Applied,
		"01:00 start | 01:01 success | 01:02 level 10m":    Applied,
		"00:30 level 10m | 01:10 start | 01:11 level 0s":   Busy,
		"00:30 level 10m | 00:31 disable | 00:32 level 0s": Applied,
	} {
		if s := tell(t, everyHour, steps); s.outcome != want {
			t.Errorf("%s: %v, want %v: %s", steps, s.outcome, want, s)
		}
	}

	// While an attempt runs whose timeout would be final the model waits for nothing either, but it is not done
	const lastTry = `"rrule":"FREQ=HOURLY","dtstart":"2026-01-05","policy":{"timeout":"5m","retries":[],"on_exhausted":"give_up"}`
	for steps, want := range map[string]Outcome{
		"01:00 start | 01:01 level 10m":                    Busy,
		"01:00 start | 01:05 timeout | 01:06 level 10m":    Applied, // disabled
		"01:00 start | 01:01 disable | 01:02 level 10m":    Applied,
		"01:00 start | 01:01 success | 01:02 level 10m":    Applied,
		"01:00 start | 01:01 started | 01:02 level 10m":    Busy,
		"01:00 start | 01:01 interrupted | 01:02 level 1s": Busy,
	} {
		s := tell(t, lastTry, steps)
		if levelled := s.m.Phase > 0; s.outcome != want || levelled != (want == Applied) {
			t.Errorf("%s: %v, want %v: %s with a phase of %s", steps, s.outcome, want, s, s.m.Phase)
		}
	}
	if s := tell(t, banner, "00:00 start | 00:00:01 success | 00:01 level 10m"); s.outcome != Applied || s.m.Phase != 10*time.Minute {
		t.Errorf("a finished model: %v: %s", s.outcome, s)
	}
}

// Whatever is levelled when, each occurrence of an hourly rule is run once, after it and before the next one.
func TestLevellingLeavesNoRefreshOutAndDoublesNone(t *testing.T) {
	phases := []string{"10m", "59m", "1s", "0s", "30m", "5m"}
	for minute := range 60 {
		s, starts := tell(t, `"rrule":"FREQ=HOURLY","dtstart":"2026-01-05",`+sixRetries, ""), map[int]int{}
		for at, changed := monday.Add(time.Minute), 0; at.Before(monday.Add(9 * time.Hour)); at = at.Add(time.Minute) {
			if at.Minute() == minute {
				s.do(at, "level", phases[changed%len(phases)])
				changed++
			}
			for s.m.Due(at) {
				starts[s.m.RefreshAt.Hour()]++
				s.do(at, "start", "")
				s.do(at, "success", "")
			}
		}
		for hour := 1; hour < 8; hour++ {
			if starts[hour] != 1 {
				t.Errorf("levelled in minute %d: %d starts in hour %d", minute, starts[hour], hour)
			}
		}
	}
}
