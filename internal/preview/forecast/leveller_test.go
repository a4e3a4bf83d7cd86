package forecast

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/model"
)

type fleet []*model.Model

func (f fleet) plan(now time.Time, within time.Duration, movable func(*model.Model) bool) *Plan {
	l := NewLeveller(now, now.Add(24*time.Hour), within)
	for _, m := range f {
		l.Add(m, movable(m))
	}
	return l.Plan()
}

func all(*model.Model) bool { return true }

func (f fleet) apply(t testing.TB, p *Plan, now time.Time) (moved int) {
	t.Helper()
	for _, m := range f {
		decision, outcome := m.Level(p.Phase(m), now)
		switch outcome {
		case model.Applied:
			moved++
			m.State = decision.Next
		case model.Busy:
			t.Errorf("%s: busy", m.UID)
		}
	}
	return moved
}

// planned counts the planned refreshes of a day as the models tell them, those that begin within it.
func (f fleet) planned(now time.Time) *Counts {
	c := NewCounts(now, now.Add(24*time.Hour))
	for _, m := range f {
		for at := m.Planned(now); !at.IsZero() && at.Before(now.Add(27*time.Hour)); at = m.Planned(at) {
			if begun, _, _ := m.Spread().Occurrence(at); begun.After(now) && begun.Before(now.Add(24*time.Hour)) {
				c.addAnyway(at, 1)
			}
		}
	}
	return c
}

func manyOf(t testing.TB, count int, fields string) (f fleet) {
	for i := range count {
		f = append(f, put(t, fmt.Sprintf("%x-m%d", len(fields), i), seven, fmt.Sprintf(`"payload":{"input_url":"http://h%d/"},`, i%20)+fields))
	}
	return f
}

func TestAThousandModelsAreLevelledNearlyEvenly(t *testing.T) {
	f := manyOf(t, 1000, hourlyRule)
	p := f.plan(seven, 10*time.Minute, all)
	failIf(t, p.Before.Most() != 1000 || p.Models != 1000, "before: a peak of %d, %d models", p.Before.Most(), p.Models)
	ideal := 1000.0 / 10
	failIf(t, float64(p.After.Most()) > 1.5*ideal, "after: a peak of %d, the ideal is %v", p.After.Most(), ideal)
	moved := f.apply(t, p, seven)
	if now := f.planned(seven); now.Most() != p.After.Most() || now.Total() != p.After.Total() || now.Total() != p.Before.Total() {
		t.Errorf("the models plan a peak of %d of %d, the plan tells %d of %d", now.Most(), now.Total(), p.After.Most(), p.After.Total())
	}
	failIf(t, moved != p.Moved || moved < 950, "%d moved, the plan tells %d", moved, p.Moved)
}

func TestToLevelAgainMovesNothing(t *testing.T) {
	f := append(manyOf(t, 500, hourlyRule), manyOf(t, 300, dailyRule)...)
	f.apply(t, f.plan(seven, 10*time.Minute, all), seven)
	again := f.plan(seven, 10*time.Minute, all)
	failIf(t, again.Moved != 0, "%d move again", again.Moved)
	later := seven.Add(90 * time.Second)
	again = f.plan(later, 10*time.Minute, all)
	failIf(t, again.Moved > 8, "%d move again a while later", again.Moved)
	f = append(f, put(t, "new", seven, hourlyRule))
	again = f.plan(seven, 10*time.Minute, all)
	failIf(t, again.Moved > 1, "%d move for one new model", again.Moved)
}

func TestThePlanIsTheSameInWhateverOrderTheModelsCome(t *testing.T) {
	f := append(manyOf(t, 100, hourlyRule), manyOf(t, 100, dailyRule)...)
	p, backwards := f.plan(seven, 5*time.Minute, all), fleet{}
	for i := range f {
		backwards = append(backwards, f[len(f)-1-i])
	}
	q := backwards.plan(seven, 5*time.Minute, all)
	for _, m := range f {
		failIf(t, p.Phase(m) != q.Phase(m), "%s: %v and %v", m.UID, p.Phase(m), q.Phase(m))
	}
}

func TestModelsOfOneHostGetPhasesFarApart(t *testing.T) {
	f := manyOf(t, 1000, hourlyRule) // 50 of each of 20 hosts, in 60 steps
	p := f.plan(seven, 10*time.Minute, all)
	together := map[string]int{}
	for _, m := range f {
		key := hostOf(m) + p.Phase(m).String()
		if together[key]++; together[key] > 2 {
			t.Errorf("%s starts %d at once at %v", hostOf(m), together[key], p.Phase(m))
		}
	}
}

func TestModelsThatAreNotPickedKeepTheirTimesAndTheOthersGoAround(t *testing.T) {
	f := append(manyOf(t, 600, dailyRule), manyOf(t, 60, hourlyRule)...)
	picked := func(m *model.Model) bool { return m.Policy.Timeout > 0 && m.Rule == "FREQ=HOURLY" }
	p := f.plan(seven, 10*time.Minute, picked)
	failIf(t, p.Models != 60 || p.After.Most() != 600, "%d may move, and the peak is %d then", p.Models, p.After.Most())
	for _, m := range f {
		stopIf(t, !picked(m) && p.Phase(m) != 0, "%s moves by %v", m.UID, p.Phase(m))
	}
}

// A fleet that is spread over an hour already would be squeezed into ten minutes.
func TestWhatIsNoBetterIsNotProposed(t *testing.T) {
	f := manyOf(t, 500, `"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"timeout":"5m","retries":["1m"],"spread":"1h"}`)
	p := f.plan(seven, 10*time.Minute, all)
	failIf(t, p.Moved != 0 || p.After.Most() != p.Before.Most() || p.Phase(f[0]) != 0,
		"%d move, from a peak of %d to %d", p.Moved, p.Before.Most(), p.After.Most())
	if wider := f.plan(seven, 59*time.Minute, all); wider.Moved == 0 || wider.After.Most() > wider.Before.Most() {
		t.Errorf("over 59 minutes %d move, from a peak of %d to %d", wider.Moved, wider.Before.Most(), wider.After.Most())
	}
}

func TestLevellingChangesNoCountShiftsNotTooFarAndRaisesNoPeak(t *testing.T) {
	rules := rapid.SampledFrom([]string{
		"FREQ=HOURLY", "FREQ=HOURLY;INTERVAL=2", "FREQ=MINUTELY;INTERVAL=7", "FREQ=MINUTELY;INTERVAL=2", "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0",
		"FREQ=DAILY;BYHOUR=9,10,11;BYMINUTE=0,1", "FREQ=WEEKLY;BYDAY=TU", "FREQ=HOURLY;UNTIL=20260105T120000Z", "FREQ=YEARLY",
	})
	rapid.Check(t, func(r *rapid.T) {
		within := time.Duration(rapid.IntRange(2, 3*3600).Draw(r, "within")) * time.Second
		var f fleet
		for kind := range rapid.IntRange(1, 3).Draw(r, "kinds") {
			spread := rapid.SampledFrom([]string{"none", "5m", "2h"}).Draw(r, "spread")
			fields := fmt.Sprintf(`"rrule":%q,"dtstart":"2026-01-01","policy":{"timeout":"10s","retries":["1m"],"spread":%q}`, rules.Draw(r, "rule"), spread)
			for i := range rapid.IntRange(1, 12).Draw(r, "count") {
				f = append(f, put(t, fmt.Sprint(kind, "-", i), seven, fields))
			}
		}
		picked := func(m *model.Model) bool { return len(m.UID)%2 == 1 || rapid.Bool().Draw(r, "picked") }
		before, p := f.planned(seven), f.plan(seven, within, picked)
		perModel := map[string]int{}
		for _, m := range f {
			perModel[m.UID] = fleet{m}.planned(seven).Total()
		}
		if p.Before.Total() != before.Total() || p.Before.Most() != before.Most() {
			r.Fatalf("before: %d, peak %d; the models plan %d, peak %d", p.Before.Total(), p.Before.Most(), before.Total(), before.Most())
		}
		f.apply(t, p, seven)
		after := f.planned(seven)
		if after.Most() != p.After.Most() || after.Most() > before.Most() || after.Total() != before.Total() {
			r.Fatalf("the peak goes from %d to %d, as planned to %d; %d starts, %d before", before.Most(), after.Most(), p.After.Most(), after.Total(), before.Total())
		}
		for _, m := range f {
			if got := (fleet{m}).planned(seven).Total(); got != perModel[m.UID] || m.Phase >= within || m.Phase < 0 {
				r.Fatalf("%s by %v: %d starts, %d before", m.UID, m.Phase, got, perModel[m.UID])
			}
		}
	})
}
