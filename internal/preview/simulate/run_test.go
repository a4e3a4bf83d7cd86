package simulate

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/preview/chart"
)

func TestARunEndsWhereItsPlanSays(t *testing.T) {
	fails := Outcome{Result: Failure, After: 10 * time.Minute}
	for name, test := range map[string]struct {
		outcomes Outcomes
		plan     Plan
		want     []string
		end      End
		lasts    time.Duration
	}{
		"after the last outcome": {slices.Values([]Outcome{fails}), Plan{Limit: 9},
			[]string{"Mon 00:00 start 1, Mon 01:00", "Mon 00:10 failure 1, Mon 00:10"}, EndOutcomes, 10 * time.Minute},
		"after so many attempts": {Always(fails), Plan{Limit: 1},
			[]string{"Mon 00:00 start 1, Mon 01:00", "Mon 00:10 failure 1, Mon 00:10"}, EndLimit, 10 * time.Minute},
		"at a time at which one may still start": {Always(fails), Plan{Limit: 9, Until: monday.Add(10 * time.Minute)},
			[]string{"Mon 00:00 start 1, Mon 01:00", "Mon 00:10 failure 1, Mon 00:10", "Mon 00:10 retry 2, Mon 01:11", "Mon 00:20 failure 2, Mon 00:21"},
			EndUntil, 20 * time.Minute},
		"at a time at which nothing happens": {slices.Values([]Outcome{{Result: Success}}), Plan{Limit: 9, Until: monday.Add(5 * time.Hour)},
			[]string{"Mon 00:00 start 1, Mon 01:00", "Mon 00:00 success 1, Mon 06:00"}, EndUntil, 5 * time.Hour},
		"before any outcome": {slices.Values([]Outcome(nil)), Plan{Limit: 9}, nil, EndOutcomes, 0},
	} {
		t.Run(name, func(t *testing.T) {
			test.plan.Start = monday
			run := Simulate(at6And16(t, givesUp), test.outcomes, test.plan)
			ran(t, run, test.want)
			chart := run.Chart(test.plan, "x", nil)
			failIf(t, run.End != test.end || chart.End.Sub(chart.Start) != test.lasts,
				"expected the end %q after %s, found %q after %s", test.end, test.lasts, run.End, chart.End.Sub(chart.Start))
		})
	}
}

func TestAnAnswerAfterTheDeadlineIsLost(t *testing.T) {
	run := Simulate(at6And16(t, givesUp), slices.Values([]Outcome{{Result: Success, After: time.Hour + time.Millisecond}}), Plan{Start: monday, Limit: 9})
	want := []string{"Mon 00:00 start 1, Mon 01:00", "Mon 01:00 timeout 1, Mon 01:00"}
	ran(t, run, want)
	run = Simulate(at6And16(t, givesUp), slices.Values([]Outcome{{Result: Success, After: time.Hour}}), Plan{Start: monday, Limit: 9})
	last := run.Events[1]
	failIf(t, last.Kind != chart.Success, "expected an answer at the deadline to count, found %v", last)
}

func TestAWorkerBeginsAtOnce(t *testing.T) {
	m := at6And16(t, map[string]any{"queue_timeout": "1m"})
	run := Simulate(m, slices.Values([]Outcome{{Result: Success, After: 30 * time.Minute}, {Result: Lost}}), Plan{Start: monday, Limit: 9})
	want := []string{"Mon 00:00 start 1, Mon 00:01", "Mon 00:30 success 1, Mon 06:00", "Mon 06:00 start 1, Mon 06:01", "Mon 07:00 timeout 1, Mon 07:00"}
	ran(t, run, want)
}

func TestAModelThatWaitsForNothingMoreIsFinished(t *testing.T) {
	oneShot := resolved(t, map[string]any{"retries": []any{"1m"}})
	run := Simulate(oneShot, outcomes(t, "failure 1m\nsuccess 1m"), Plan{Start: monday, Limit: 9})
	want := []string{
		"Mon 00:00 start 1, Mon 00:11", "Mon 00:01 failure 1, Mon 00:02", "Mon 00:02 retry 2, -", "Mon 00:03 success 2, -",
		"Mon 00:03 finished 2, -",
	}
	ran(t, run, want)
}

func TestAnErrorTypeDecides(t *testing.T) {
	m := at6And16(t, map[string]any{"never_retry": []any{"permanent"}, "delays_by_error": map[string]any{"RateLimited": "2h"}})
	run := Simulate(m, outcomes(t, "failure 1m RateLimited\nfailure 1m NotFoundError"), Plan{Start: monday, Limit: 9})
	want := []string{
		"Mon 00:00 start 1, Mon 01:00", "Mon 00:01 failure 1, Mon 02:01", "Mon 02:01 retry 2, Mon 03:02", "Mon 02:02 failure 2, -",
		"Mon 02:02 disabled 2, -",
	}
	ran(t, run, want)
	reason := run.Events[3].Reason
	failIf(t, reason != "NotFoundError", "expected the error type as the reason, found %q", reason)
}

func TestJitterFollowsFromTheSeed(t *testing.T) {
	m := at6And16(t, map[string]any{"retries": map[string]any{"strategy": "fixed", "base": "30m"}, "alignment": "until_success"})
	run := func(seed uint64) []string {
		return lines(Simulate(m, Always(Outcome{Result: Failure}), Plan{Start: monday, Limit: 20, Seed: seed}).Events)
	}
	equal(t, run(7), run(7))
	failIf(t, cmp.Equal(run(7), run(8)), "expected another seed to give other delays")
}

func TestTheModelOfTheCallerStaysAsItIs(t *testing.T) {
	m := at6And16(t, givesUp)
	before := m.State
	Simulate(m, Always(Outcome{Result: Failure}), Plan{Start: monday, Limit: 20})
	equal(t, before, m.State)
}

func TestAChartShowsThePlannedRefreshesUnlessTheyAreTooMany(t *testing.T) {
	plan := Plan{Start: monday, Until: monday.AddDate(0, 0, 2), Limit: 1000}
	run := Simulate(at6And16(t, goesOn), Always(Outcome{Result: Success}), plan)
	chart := run.Chart(plan, "x", nil)
	failIf(t, len(chart.Planned) != 4 || !chart.Planned[0].Equal(monday.Add(6*time.Hour)),
		"expected 6 and 16 o'clock of two days, found %v", chart.Planned)
	plan.Until = monday.AddDate(0, 0, 30)
	run = Simulate(resolved(t, map[string]any{"rrule": "FREQ=MINUTELY"}), Always(Outcome{Result: Success}), Plan{Start: monday, Until: plan.Until, Limit: 50_000})
	if chart = run.Chart(plan, "x", nil); chart.Planned != nil || run.Attempts != 43201 {
		t.Errorf("expected %d planned refreshes to be left out, found %d", run.Attempts, len(chart.Planned))
	}
}
