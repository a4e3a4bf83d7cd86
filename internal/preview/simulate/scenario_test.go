package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/preview/chart"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

// at6And16 is the policy of all scenarios; fields are added to it.
func at6And16(t testing.TB, fields map[string]any) model.Model {
	t.Helper()
	document := map[string]any{
		"rrule": "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "timeout": "1h",
		"retries": []any{"0", "1m", "5m", "15m", "30m", "1h"},
	}
	for name, value := range fields {
		document[name] = value
	}
	return resolved(t, document)
}

func resolved(t testing.TB, document map[string]any) model.Model {
	t.Helper()
	policy := check.Got(policy.Parse(document))(t)
	m := model.Model{UID: "tbl_1"}
	must(t, m.Resolve(policy, schedule.Parse))
	return m
}

// monday is the start by hand of all scenarios: at midnight, off the rule.
var monday = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

func outcomes(t testing.TB, text string) Outcomes {
	t.Helper()
	list := check.Got(ReadOutcomes(strings.NewReader(text)))(t)
	return slices.Values(list)
}

// line is an event as the scenarios write it: when, what, number, and when the next attempt starts.
func line(event chart.Event) string {
	const layout = "Mon 15:04"
	next := "-"
	if !event.RefreshAt.IsZero() {
		next = event.RefreshAt.UTC().Format(layout)
	}
	return fmt.Sprintf("%s %s %d, %s", event.At.UTC().Format(layout), event.Kind, event.AttemptNo, next)
}

func lines(events []chart.Event) (texts []string) {
	for _, event := range events {
		texts = append(texts, line(event))
	}
	return texts
}

func ran(t *testing.T, run Run, want []string) {
	t.Helper()
	equal(t, want, lines(run.Events))
}

var (
	givesUp = map[string]any{"on_exhausted": "give_up"}
	goesOn  = map[string]any{"on_exhausted": "next_planned"}
	oneWeek = map[string]any{"on_exhausted": "next_planned", "give_up_after": "1w"}
)

// TestAScenarioEndsAsWorkedOutByHand runs the four scenarios that end within a day or two.
func TestAScenarioEndsAsWorkedOutByHand(t *testing.T) {
	for name, test := range map[string]struct {
		fields   map[string]any
		outcomes string
		end      End
		want     []string
		summary  chart.Summary
	}{
		"happy path": {givesUp, "success 10m\nsuccess 20m\nsuccess 10m\nsuccess 10m\n", EndOutcomes, []string{
			"Mon 00:00 start 1, Mon 01:00", "Mon 00:10 success 1, Mon 06:00",
			"Mon 06:00 start 1, Mon 07:00", "Mon 06:20 success 1, Mon 16:00",
			"Mon 16:00 start 1, Mon 17:00", "Mon 16:10 success 1, Tue 06:00",
			"Tue 06:00 start 1, Tue 07:00", "Tue 06:10 success 1, Tue 16:00",
		}, chart.Summary{Attempts: 4, Successes: 4, AttemptsPerDay: 3.18, WorstStaleness: 14 * time.Hour}},

		"total failure": {givesUp, strings.Repeat("failure 10m\n", 9), EndNothingPlanned, []string{
			"Mon 00:00 start 1, Mon 01:00", "Mon 00:10 failure 1, Mon 00:10",
			"Mon 00:10 retry 2, Mon 01:11", "Mon 00:20 failure 2, Mon 00:21",
			"Mon 00:21 retry 3, Mon 01:26", "Mon 00:31 failure 3, Mon 00:36",
			"Mon 00:36 retry 4, Mon 01:51", "Mon 00:46 failure 4, Mon 01:01",
			"Mon 01:01 retry 5, Mon 02:31", "Mon 01:11 failure 5, Mon 01:41",
			"Mon 01:41 retry 6, Mon 03:41", "Mon 01:51 failure 6, Mon 02:51",
			"Mon 02:51 retry 7, -", "Mon 03:01 failure 7, -", "Mon 03:01 exhausted 7, -", "Mon 03:01 disabled 7, -",
		}, chart.Summary{Attempts: 7, Failures: 7, Retries: 6, AttemptsPerDay: 55.69, WorstStaleness: 181 * time.Minute,
			TimeToGiveUp: new(181 * time.Minute), Ended: new(chart.Disabled)}},

		"transient errors": {givesUp, "failure 10m\nfailure 10m\nsuccess 10m\nfailure 5m\nsuccess 5m\n", EndOutcomes, []string{
			"Mon 00:00 start 1, Mon 01:00", "Mon 00:10 failure 1, Mon 00:10",
			"Mon 00:10 retry 2, Mon 01:11", "Mon 00:20 failure 2, Mon 00:21",
			"Mon 00:21 retry 3, Mon 01:26", "Mon 00:31 success 3, Mon 06:00",
			"Mon 06:00 start 1, Mon 07:00", "Mon 06:05 failure 1, Mon 06:05",
			"Mon 06:05 retry 2, Mon 07:06", "Mon 06:10 success 2, Mon 16:00",
		}, chart.Summary{Attempts: 5, Successes: 2, Failures: 3, Retries: 3, RetriesThatHelped: 2, AttemptsPerDay: 19.46,
			WorstStaleness: 5*time.Hour + 39*time.Minute}},

		// The failure at 04:31 asks for 05:01, which might last until 06:01: the planned 06:00 takes its place as attempt 6. If
		// attempt 4 were lost at 03:36 it would ask for 03:51; attempt 5, at 04:41, for 05:11.
		"error flood": {goesOn, strings.Repeat("failure 50m\n", 8) + "success 10m\n", EndOutcomes, []string{
			"Mon 00:00 start 1, Mon 01:00", "Mon 00:50 failure 1, Mon 00:50",
			"Mon 00:50 retry 2, Mon 01:51", "Mon 01:40 failure 2, Mon 01:41",
			"Mon 01:41 retry 3, Mon 02:46", "Mon 02:31 failure 3, Mon 02:36",
			"Mon 02:36 retry 4, Mon 03:51", "Mon 03:26 failure 4, Mon 03:41",
			"Mon 03:41 retry 5, Mon 06:00", "Mon 04:31 failure 5, Mon 06:00",
			"Mon 06:00 retry 6, Mon 08:00", "Mon 06:50 failure 6, Mon 07:50",
			"Mon 07:50 retry 7, Mon 16:00", "Mon 08:40 failure 7, Mon 16:00", "Mon 08:40 exhausted 7, Mon 16:00",
			"Mon 16:00 start 1, Mon 17:00", "Mon 16:50 failure 1, Mon 16:50",
			"Mon 16:50 retry 2, Mon 17:51", "Mon 17:00 success 2, Tue 06:00",
		}, chart.Summary{Attempts: 9, Successes: 1, Failures: 8, Retries: 7, RetriesThatHelped: 1, AttemptsPerDay: 12.71,
			WorstStaleness: 17 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			run := Simulate(at6And16(t, test.fields), outcomes(t, test.outcomes), Plan{Start: monday, Limit: 100})
			ran(t, run, test.want)
			chart := chart.Chart{Events: run.Events}
			equal(t, test.summary, chart.Summary())
			failIf(t, run.End != test.end, "expected the end %q, found %q", test.end, run.End)
		})
	}
}

// failing is a cycle of attempts that fail ten minutes after their start; D stands for the day. Only what ends is written.
var failing = []string{
	"D 06:10 failure 1, D 06:10", "D 06:20 failure 2, D 06:21", "D 06:31 failure 3, D 06:36", "D 06:46 failure 4, D 07:01",
	"D 07:11 failure 5, D 07:41", "D 07:51 failure 6, D 08:51", "D 09:01 failure 7, D 16:00", "D 09:01 exhausted 7, D 16:00",
	"D 16:10 failure 1, D 16:10", "D 16:20 failure 2, D 16:21", "D 16:31 failure 3, D 16:36", "D 16:46 failure 4, D 17:01",
	"D 17:11 failure 5, D 17:41", "D 17:51 failure 6, D 18:51", "D 19:01 failure 7, N 06:00", "D 19:01 exhausted 7, N 06:00",
}

// unanswered are two cycles without any answer; N stands for the day after D.
var unanswered = []string{
	"D 07:00 timeout 1, D 07:00", "D 08:00 timeout 2, D 08:01", "D 09:01 timeout 3, D 09:06", "D 10:06 timeout 4, D 10:21",
	"D 11:21 timeout 5, D 11:51", "D 12:51 timeout 6, D 13:51", "D 14:51 timeout 7, D 16:00", "D 14:51 exhausted 7, D 16:00",
	"D 17:00 timeout 1, D 17:00", "D 18:00 timeout 2, D 18:01", "D 19:01 timeout 3, D 19:06", "D 20:06 timeout 4, D 20:21",
	"D 21:21 timeout 5, D 21:51", "D 22:51 timeout 6, D 23:51", "N 00:51 timeout 7, N 06:00", "N 00:51 exhausted 7, N 06:00",
}

// TestAModelIsTurnedOffAfterOneWeek runs the two scenarios that last a week. The week counts from the first start.
func TestAModelIsTurnedOffAfterOneWeek(t *testing.T) {
	week := []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Mon"}
	dated := func(cycles []string, day int) []string {
		var texts []string
		for _, text := range cycles {
			texts = append(texts, strings.NewReplacer("D ", week[day]+" ", "N ", week[day+1]+" ").Replace(text))
		}
		return texts
	}
	for name, test := range map[string]struct {
		outcome  Outcome
		first    []string // the cycle that was started by hand
		each     []string // the cycles of a day
		later    int      // how many lines of each belong to the first day
		last     []string // replaces as many lines at the end
		attempts int
	}{
		// 15 cycles of 7 attempts. The last one ends on Sunday evening; the model does not wait for Monday 06:00.
		"with failures": {Outcome{Result: Failure, After: 10 * time.Minute}, []string{
			"Mon 00:10 failure 1, Mon 00:10", "Mon 00:20 failure 2, Mon 00:21", "Mon 00:31 failure 3, Mon 00:36",
			"Mon 00:46 failure 4, Mon 01:01", "Mon 01:11 failure 5, Mon 01:41", "Mon 01:51 failure 6, Mon 02:51",
			"Mon 03:01 failure 7, Mon 06:00", "Mon 03:01 exhausted 7, Mon 06:00",
		}, failing, 16, []string{"Sun 19:01 failure 7, Mon 00:00", "Sun 19:01 exhausted 7, Mon 00:00", "Mon 00:00 disabled 7, -"}, 105},

		// The first cycle runs into the morning: 05:51 would last beyond 06:00. The attempt of Sunday 23:51 was promised before
		// the end of the week, so it may run.
		"without responses": {Outcome{Result: Lost}, []string{
			"Mon 01:00 timeout 1, Mon 01:00", "Mon 02:00 timeout 2, Mon 02:01", "Mon 03:01 timeout 3, Mon 03:06",
			"Mon 04:06 timeout 4, Mon 04:21", "Mon 05:21 timeout 5, Mon 06:00", "Mon 07:00 timeout 6, Mon 08:00",
			"Mon 09:00 timeout 7, Mon 16:00", "Mon 09:00 exhausted 7, Mon 16:00",
		}, unanswered, 8, []string{"Mon 00:51 timeout 7, -", "Mon 00:51 disabled 7, -"}, 98},
	} {
		t.Run(name, func(t *testing.T) {
			want := append(test.first, dated(test.each, 0)[len(test.each)-test.later:]...)
			for day := 1; day < 7; day++ {
				want = append(want, dated(test.each, day)...)
			}
			want = append(want[:len(want)-2], test.last...)
			run := Simulate(at6And16(t, oneWeek), Always(test.outcome), Plan{Start: monday, Limit: 1000})
			var got []string
			for _, event := range run.Events {
				if event.Kind != chart.Start && event.Kind != chart.Retry {
					got = append(got, line(event))
				}
			}
			equal(t, want, got)
			failIf(t, run.Attempts != test.attempts || run.End != EndNothingPlanned,
				"expected %d attempts until nothing is planned, found %d until %s", test.attempts, run.Attempts, run.End)
		})
	}
}
