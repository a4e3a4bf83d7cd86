package flow

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestTheUsesOfAKeyAreAddedUpInWhicheverOrderThePartsCome(t *testing.T) {
	pace := policy.Rate{Count: 1, Per: time.Second}
	plain := LimitUse{Key: "a=1", Running: 1, Parked: 2}
	limit := LimitUse{Key: "a=1", Set: true, Max: 4, Rate: pace, Until: noon, By: "ann", Reason: "they ask", Running: 3, Parked: 4}
	closedAt := func(after time.Duration, by string) LimitUse {
		return LimitUse{Key: "a=1", ClosedUntil: noon.Add(after), ClosedBy: by, Next: noon.Add(after)}
	}
	sum := limit
	sum.Running, sum.Parked = 4, 6
	for name, test := range map[string]struct{ first, second, want LimitUse }{
		"a key alone":                {LimitUse{}, plain, plain},
		"a limit alone":              {LimitUse{}, limit, limit},
		"a limit, then a key":        {limit, plain, sum},
		"a key, then a limit":        {plain, limit, sum},
		"both closed, second later":  {closedAt(1, "x"), closedAt(2, "y"), closedAt(2, "y")},
		"one is closed, then a key":  {closedAt(1, "x"), plain, LimitUse{Key: "a=1", Running: 1, Parked: 2, ClosedUntil: noon.Add(1), ClosedBy: "x", Next: noon.Add(1)}},
		"a key, then one is closed":  {plain, closedAt(1, "x"), LimitUse{Key: "a=1", Running: 1, Parked: 2, ClosedUntil: noon.Add(1), ClosedBy: "x", Next: noon.Add(1)}},
		"both closed, at an instant": {closedAt(1, "x"), closedAt(1, "y"), closedAt(1, "x")},
	} {
		got := test.first
		got.add(&test.second)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	got := closedAt(2, "y")
	got.add(new(closedAt(1, "x")))
	if !got.ClosedUntil.Equal(noon.Add(2)) || got.ClosedBy != "y" {
		t.Errorf("the first is closed longer: got %+v", got)
	}
}

func TestOfOpenCircuitsTheFirstOpeningIsShown(t *testing.T) {
	closed := KeyCircuit{Key: "a=1", Recent: "0", Opened: 1, Parked: 2}
	open := func(after time.Duration, by string) KeyCircuit {
		return KeyCircuit{Key: "a=1", CircuitState: model.CircuitState{OpenedAt: noon.Add(after), Probe: by}, Recent: "1", Opened: 3, Parked: 4, By: by, Reason: by}
	}
	sum := func(c KeyCircuit, recent string, opened, parked int64, parts int) KeyCircuit {
		c.Recent, c.Opened, c.Parked, c.OpenParts = recent, opened, parked, parts
		return c
	}
	for name, test := range map[string]struct {
		parts []KeyCircuit
		want  KeyCircuit
	}{
		"closed":                  {[]KeyCircuit{closed}, closed},
		"open":                    {[]KeyCircuit{open(1, "x")}, sum(open(1, "x"), "1", 3, 4, 1)},
		"open in the first":       {[]KeyCircuit{open(1, "x"), closed}, sum(open(1, "x"), "10", 4, 6, 1)},
		"open in the second":      {[]KeyCircuit{closed, open(1, "x")}, sum(open(1, "x"), "01", 4, 6, 1)},
		"first opened in the one": {[]KeyCircuit{open(1, "x"), open(2, "y")}, sum(open(1, "x"), "11", 6, 8, 2)},
		"first opened in another": {[]KeyCircuit{open(2, "x"), open(1, "y")}, sum(open(1, "y"), "11", 6, 8, 2)},
		"opened at one instant":   {[]KeyCircuit{open(1, "x"), open(1, "y")}, sum(open(1, "x"), "11", 6, 8, 2)},
	} {
		var got KeyCircuit
		for i := range test.parts {
			got.add(&test.parts[i])
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
