package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Rate is how many may start in a length of time: Count from 1 to 1,000,000, Per from 1 second to 1 day. The zero value is no bound.
type Rate struct {
	Count int
	Per   time.Duration
}

const (
	maxRateCount = 1_000_000
	minRatePer   = time.Second
	maxRatePer   = 24 * time.Hour
)

const wantRate = `a number from 1 to 1000000, a slash and a time from 1s to 1d, such as "60/1m" or "10/s"`

// ParseRate reads a rate such as "60/1m", "10/s" or "5/1h". A refusal is a *document.Error without a field.
func ParseRate(text string) (Rate, error) {
	count, per, _ := strings.Cut(text, "/")
	per = strings.TrimSpace(per)
	if per != "" && strings.IndexByte("0123456789pP", per[0]) < 0 {
		per = "1" + per
	}
	n, failed := strconv.Atoi(strings.TrimSpace(count))
	length, err := document.ParseDuration(per)
	if failed != nil || err != nil || n < 1 || n > maxRateCount || length < minRatePer || length > maxRatePer {
		return Rate{}, document.Refuse("", wantRate, document.Found(text))
	}
	return Rate{n, length}, nil
}

// String is the shortest form of a rate, such as "60/m" or "5/1h30m", which ParseRate reads back; empty for the zero value.
func (r Rate) String() string {
	if r == (Rate{}) {
		return ""
	}
	per := document.FormatDuration(r.Per)
	if unit := strings.TrimPrefix(per, "1"); strings.Trim(unit, "smhd") == "" {
		per = unit
	}
	return fmt.Sprintf("%d/%s", r.Count, per)
}

// Interval is the time from one start to the next at an even pace; 0 for the zero value.
func (r Rate) Interval() time.Duration {
	if r.Count == 0 {
		return 0
	}
	return r.Per / time.Duration(r.Count)
}

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
