package policy

import (
	"math"
	"time"
)

// Share is the rate of one of several parts, which have it together.
func (r Rate) Share(parts int) Rate {
	if per := r.Per * time.Duration(parts); per <= maxRatePer {
		return Rate{r.Count, per}
	}
	return Rate{max(1, r.Count/parts), r.Per}
}

// Allow returns how many may start at now, when the next may from an instant on. What was not used is made up for as far as behind reaches back.
func (r Rate) Allow(next, now time.Time, behind time.Duration) int {
	if r.Count == 0 {
		return math.MaxInt
	}
	waited := now.Sub(earliest(next, now, behind))
	if waited < 0 {
		return 0
	}
	return int(waited/r.Interval()) + 1
}

// Spend returns from when on the next may start behind n that start at now. It is rounded up to milliseconds, so that the rate holds as it is stored.
func (r Rate) Spend(next, now time.Time, behind time.Duration, n int) time.Time {
	if r.Count == 0 {
		return time.Time{}
	}
	return earliest(next, now, behind).Add(time.Duration(n)*r.Interval() + time.Millisecond - 1).Truncate(time.Millisecond)
}

func earliest(next, now time.Time, behind time.Duration) time.Time {
	if least := now.Add(-behind); next.Before(least) {
		return least
	}
	return next
}
