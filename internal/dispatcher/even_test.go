package dispatcher

import (
	"testing"
	"time"
)

func TestAPauseOfTheRoundsBeginsTheLeaseAnew(t *testing.T) {
	const s = time.Second
	start := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		rounds []time.Duration // since start
		want   bool
	}{
		"the first":              {[]time.Duration{0}, false},
		"not yet a lease":        {[]time.Duration{0, s, 2 * s, 3 * s, 4 * s, 5*s - 1}, false},
		"a lease":                {[]time.Duration{0, s, 2 * s, 3 * s, 4 * s, 5 * s}, true},
		"some are lost":          {[]time.Duration{0, 2 * s, 4 * s, 6 * s}, true},
		"an outage":              {[]time.Duration{0, 2 * s, 4 * s, 6 * s, 60 * s}, false},
		"soon after an outage":   {[]time.Duration{0, 60 * s, 62 * s, 64 * s}, false},
		"a lease after":          {[]time.Duration{0, 60 * s, 62 * s, 64 * s, 65 * s}, true},
		"the clock was set back": {[]time.Duration{0, 2 * s, 4 * s, 6 * s, s, 2 * s, 4 * s}, false},
		"a lease after that":     {[]time.Duration{0, 2 * s, 4 * s, 6 * s, s, 2 * s, 4 * s, 6 * s}, true},
	} {
		var r rounds
		var got bool
		for _, at := range test.rounds {
			got = r.even(start.Add(at), 5*s)
		}
		if got != test.want {
			t.Errorf("%s: even is %v, want %v", name, got, test.want)
		}
	}
}
