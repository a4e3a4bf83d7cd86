package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// starts are those of a model until noon, as clocks show them.
func starts(t *testing.T, m *model.Model, took time.Duration, holds ...model.Hold) string {
	t.Helper()
	var clocks []string
	NewWalker(seven, clock(t, "12:00:00"), model.Blockers{Holds: holds}).Starts(m, took, func(at time.Time) { clocks = append(clocks, strings.TrimSuffix(at.Format(time.TimeOnly), ":00")) })
	return strings.Join(clocks, " ")
}

func TestAForecastBeginsWithWhatAModelWaitsForAndGoesOnAsPlanned(t *testing.T) {
	started := func(m *model.Model) *model.Model {
		m.State = m.Start(seven, "a1").Next
		return m
	}
	everyHour := func(more string) *model.Model { return put(t, "m1", seven.Add(-30*time.Minute), hourlyRule+more) }
	failed := started(everyHour(""))
	failed.State = failed.Fail(policy.Failure{}, seven).Next
	again := started(everyHour(""))
	again.Again = true
	stopped := everyHour("")
	decision, _ := stopped.Disable("", "", seven)
	stopped.State = decision.Next
	phased := put(t, "m1", seven, hourlyRule)
	decision, _ = phased.Level(20*time.Minute, seven)
	phased.State = decision.Next
	tenMinutes := `"rrule":"FREQ=MINUTELY;INTERVAL=10","dtstart":"2026-01-01","policy":{"timeout":"2h","retries":["1m"]}`
	for name, test := range map[string]struct {
		m    *model.Model
		took time.Duration
		want string
	}{
		"planned at seven is due":              {everyHour(""), time.Minute, "07:00 08:00 09:00 10:00 11:00"},
		"planned at eight":                     {put(t, "m1", seven, hourlyRule), time.Minute, "08:00 09:00 10:00 11:00"},
		"a retry":                              {failed, time.Minute, "07:01 08:00 09:00 10:00 11:00"},
		"an attempt runs":                      {started(everyHour("")), time.Minute, "08:00 09:00 10:00 11:00"},
		"and was saved meanwhile":              {again, time.Minute, "07:01 08:00 09:00 10:00 11:00"},
		"disabled":                             {stopped, time.Minute, ""},
		"a phase":                              {phased, time.Minute, "08:20 09:20 10:20 11:20"},
		"a one-shot":                           {put(t, "m1", seven, `"policy":{"timeout":"5m"}`), time.Minute, "07:00"},
		"the last one":                         {put(t, "m1", seven, `"rrule":"FREQ=HOURLY;UNTIL=20260105T090000Z","dtstart":"2026-01-01"`), time.Minute, "08:00 09:00"},
		"an attempt lasts beyond the next one": {put(t, "m1", seven, tenMinutes), 65 * time.Minute, "07:10 08:20 09:30 10:40 11:50"},
	} {
		got := starts(t, test.m, test.took)
		failIf(t, got != test.want, "%s: %q, want %q", name, got, test.want)
	}
}

func TestASpreadFleetIsForecastAtTheTimesThatItsModelsPlan(t *testing.T) {
	for i := range 50 {
		m := put(t, fmt.Sprint("m", i), seven, `"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"timeout":"5m","retries":["1m"],"spread":"90m"}`)
		at := m.RefreshAt
		NewWalker(seven, seven.Add(12*time.Hour), model.Blockers{}).Starts(m, time.Minute, func(got time.Time) {
			failIf(t, !got.Equal(at), "m%d: %s, want %s", i, got, at)
			at = m.Planned(got.Add(time.Minute))
		})
		failIf(t, at.Before(seven.Add(12*time.Hour)), "m%d: ends before %s", i, at)
	}
}

func TestTheLengthOfAnAttemptMattersOnlyWhereItMayReachTheNextOne(t *testing.T) {
	w := NewWalker(seven, seven.Add(24*time.Hour), model.Blockers{})
	for fields, want := range map[string]bool{
		hourlyRule: false,
		`"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"timeout":"1h","retries":["1m"]}`:                 true,
		`"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"timeout":"50m","retries":["1m"],"spread":"10m"}`: true,
		`"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"timeout":"none","retries":["1m"]}`:               true,
		`"policy":{"timeout":"5m"}`: false,
	} {
		got := w.AsksLength(put(t, "m1", seven, fields))
		failIf(t, got != want, "%s: %v, want %v", fields, got, want)
	}
}

func TestASpreadThatIsTriedLeavesTheModelAsItIs(t *testing.T) {
	m, w := put(t, "m1", seven, hourlyRule), NewWalker(seven, seven.Add(3*time.Hour), model.Blockers{})
	before := *m
	other := *w.Spread(m, 0)
	by := other.RefreshAt.Sub(clock(t, "08:00:00"))
	failIf(t, by <= 0 || by >= 6*time.Minute || other.Policy.Spread != 6*time.Minute, "shifted by %v of %v", by, other.Policy.Spread)
	failIf(t, m.State != before.State || m.Policy.Spread != 0, "it has become %+v", m.State)
	far := w.Spread(m, 30*time.Minute)
	failIf(t, far.Policy.Spread != 30*time.Minute || !far.RefreshAt.After(other.RefreshAt), "by half an hour: at %s", far.RefreshAt)
}

func TestWhatAHoldStopsStartsOnceAtItsEnd(t *testing.T) {
	hold := func(id, until, selector string) model.Hold {
		picks, err := model.ParseSelector(selector)
		must(t, err)
		h := model.Hold{ID: id, Since: seven, Selector: picks}
		if until != "" {
			h.Until = clock(t, until)
		}
		return h
	}
	parked := put(t, "m1", seven.Add(-30*time.Minute), hourlyRule)
	parked.State = parked.Park(model.NewBlocker(model.BlockerHold, "h1"), time.Time{}, seven).Next
	limited := put(t, "m1", seven.Add(-30*time.Minute), hourlyRule)
	limited.State = limited.Park(model.NewBlocker(model.BlockerLimit, "host=h"), time.Time{}, seven).Next
	for name, test := range map[string]struct {
		m     *model.Model
		holds []model.Hold
		want  string
	}{
		"until half past ten":        {put(t, "m1", seven, hourlyRule), []model.Hold{hold("h1", "10:30:00", "")}, "10:30 11:00"},
		"of other models":            {put(t, "m1", seven, hourlyRule), []model.Hold{hold("h1", "10:30:00", "uid=x*")}, "08:00 09:00 10:00 11:00"},
		"without an end":             {put(t, "m1", seven, hourlyRule), []model.Hold{hold("h1", "", "uid=m*")}, ""},
		"two, one behind the other":  {put(t, "m1", seven, hourlyRule), []model.Hold{hold("h1", "08:10:00", ""), hold("h2", "09:10:00", "")}, "09:10 10:00 11:00"},
		"it waits already":           {parked, []model.Hold{hold("h1", "08:30:00", "")}, "08:30 09:00 10:00 11:00"},
		"what it waited for is over": {parked, nil, "07:00 08:00 09:00 10:00 11:00"},
		"it waits for a limit":       {limited, nil, ""},
	} {
		got := starts(t, test.m, time.Minute, test.holds...)
		failIf(t, got != test.want, "%s: %q, want %q", name, got, test.want)
	}
}

func TestAForecastCountsWhatTheModelItselfPlansOneAfterTheOther(t *testing.T) {
	rules := rapid.SampledFrom([]string{
		"FREQ=HOURLY", "FREQ=HOURLY;INTERVAL=5", "FREQ=MINUTELY;INTERVAL=7", "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30",
		"FREQ=WEEKLY;BYDAY=TU", "FREQ=HOURLY;UNTIL=20260105T120000Z", "FREQ=YEARLY", "FREQ=DAILY;BYHOUR=9,10,11;BYMINUTE=0,1",
	})
	length := func(r *rapid.T, name string, most time.Duration) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(most)).Draw(r, name))
	}
	rapid.Check(t, func(r *rapid.T) {
		to := seven.Add(time.Minute + length(r, "ahead", 49*time.Hour))
		got, want, walker := NewCounts(seven, to), NewCounts(seven, to), NewWalker(seven, to, model.Blockers{})
		for i := range rapid.IntRange(1, 5).Draw(r, "models") {
			zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York"}).Draw(r, "zone")
			spread := rapid.SampledFrom([]string{"none", "5m", "90m"}).Draw(r, "spread")
			m := put(t, fmt.Sprint("m", i), seven, fmt.Sprintf(`"rrule":%q,"timezone":%q,"dtstart":"2026-01-01","policy":{"timeout":"10s","retries":["1m"],"spread":%q}`, rules.Draw(r, "rule"), zone, spread))
			m.Phase = length(r, "phase", 2*time.Hour).Truncate(time.Second) * time.Duration(rapid.IntRange(0, 1).Draw(r, "levelled"))
			took := length(r, "took", 3*time.Hour)
			var starts []time.Time
			walker.Starts(m, took, func(at time.Time) { starts = append(starts, at); got.Add(at) })
			for at, no := m.RefreshAt, 0; !at.IsZero() && at.Before(to); at, no = m.Planned(at.Add(took)), no+1 {
				if want.Add(at); no >= len(starts) || !starts[no].Equal(at) {
					r.Fatalf("start %d: want %s, got all of %v", no, at, starts)
				}
			}
		}
		if !slices.Equal(got.PerMinute, want.PerMinute) {
			r.Fatalf("want %v, got %v", want.PerMinute, got.PerMinute)
		}
	})
}

func TestAFreeHourIsForecastInBothOfTwoEqualHoursAndANamedOneOnce(t *testing.T) {
	from := time.Date(2026, 10, 24, 23, 30, 0, 0, time.UTC)
	for rule, want := range map[string]string{
		"0 * * * *":    "00:00 01:00 02:00 03:00",
		"0 0-23 * * *": "00:00 02:00 03:00",
	} {
		m := put(t, "m1", from, `"rrule":"`+rule+`","timezone":"Europe/London"`)
		var starts []string
		NewWalker(from, from.Add(4*time.Hour), model.Blockers{}).Starts(m, time.Minute, func(at time.Time) { starts = append(starts, at.Format("15:04")) })
		got := strings.Join(starts, " ")
		failIf(t, got != want, "%s: %s, want %s", rule, got, want)
	}
}
