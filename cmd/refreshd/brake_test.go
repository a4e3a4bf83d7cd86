package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestTheBrakeIsOffUntilItIsSwitchedOnAndTuned(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		want := map[string]any{
			"on": false, "engaged": false, "engaged_at": "", "share": 0.5, "window": "5m", "min": 20.0,
			"successes": 0.0, "failures": 0.0, "incidents": 0.0,
		}
		expect := func(step string, args ...string) {
			t.Helper()
			if diff := cmp.Diff(want, c.object(append([]string{"brake"}, args...)...)); diff != "" {
				t.Errorf("%s: -want +got\n%s", step, diff)
			}
		}
		expect("before", "status")
		want["on"], want["share"], want["window"] = true, 0.8, "10m"
		expect("tuned", "on", "--share", "80%", "--window", "10m")
		want["min"] = 5.0
		expect("what is not named stays", "on", "--min", "5")
		expect("released without being engaged", "release")
		want["on"] = false
		expect("switched off", "off")
		expectContains(t, c.do("brake", "status"), "brake      off", "when 80% of at least 5 attempts within 10m fail")
	})
}

func TestABrakeOutOfRangeIsWrongUsage(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	for want, args := range map[string][]string{
		`--share: expected a share such as 50% or 0.5, found "half"`: {"--share", "half"},
		"--share: expected 5% to 100%, found 3":                      {"--share", "300%"},
		"--window: expected 10s to 1d, found 1s":                     {"--window", "1s"},
		"--min: expected 1 to 1000000 attempts, found -1":            {"--min", "-1"},
	} {
		expectContains(t, c.fail(2, append([]string{"brake", "on"}, args...)...), want)
	}
}
