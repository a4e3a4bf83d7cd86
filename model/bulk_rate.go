package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// BulkRate bounds how many models a bulk changes in a time. The zero value bounds nothing.
type BulkRate struct {
	Count int           // 1 to a million
	Per   time.Duration // 1 s to a day
}

// Bounds of a rate.
const (
	maxRateCount = 1_000_000
	maxRatePer   = 24 * time.Hour
)

// ParseBulkRate reads a rate such as "50/s", "1/m" or "60/10m". An empty text is no bound.
func ParseBulkRate(text string) (BulkRate, error) {
	if text == "" {
		return BulkRate{}, nil
	}
	refused := document.Refuse("rate", fmt.Sprintf("1 to %d in 1s to 24h, as in 50/s or 60/10m", maxRateCount), document.Found(text))
	number, unit, _ := strings.Cut(text, "/")
	count, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil || count < 1 || count > maxRateCount {
		return BulkRate{}, refused
	}
	unit = strings.TrimSpace(unit)
	if unit != "" && strings.Trim(unit, "abcdefghijklmnopqrstuvwxyz") == "" {
		unit = "1" + unit
	}
	per, err := document.ParseDuration(unit)
	if err != nil || per < time.Second || per > maxRatePer {
		return BulkRate{}, refused
	}
	return BulkRate{count, per}, nil
}

// String is the rate as it was read; empty: there is none.
func (r BulkRate) String() string {
	if r.Count == 0 {
		return ""
	}
	per := document.FormatDuration(r.Per)
	if len(per) == 2 {
		per = strings.TrimPrefix(per, "1")
	}
	return strconv.Itoa(r.Count) + "/" + per
}

// Share is the rate of one of several parts, which have it together.
func (r BulkRate) Share(parts int) BulkRate {
	if per := r.Per * time.Duration(parts); per <= maxRatePer {
		return BulkRate{r.Count, per}
	}
	return BulkRate{max(1, r.Count/parts), r.Per}
}

// Allow returns how many models may be changed at now, when the next may be from an instant on. What was not used is made up for as far as
// behind reaches back.
func (r BulkRate) Allow(next, now time.Time, behind time.Duration) int {
	if r.Count == 0 {
		return math.MaxInt
	}
	waited := now.Sub(r.from(next, now, behind))
	if waited < 0 {
		return 0
	}
	return int(waited/r.interval()) + 1
}

// Spend returns from when on the next may be changed behind n that are changed at now. It is rounded up to milliseconds, so that the rate holds
// as it is stored.
func (r BulkRate) Spend(next, now time.Time, behind time.Duration, n int) time.Time {
	if r.Count == 0 {
		return time.Time{}
	}
	return r.from(next, now, behind).Add(time.Duration(n)*r.interval() + time.Millisecond - 1).Truncate(time.Millisecond)
}

func (r BulkRate) interval() time.Duration { return r.Per / time.Duration(r.Count) }

func (r BulkRate) from(next, now time.Time, behind time.Duration) time.Time {
	if earliest := now.Add(-behind); next.Before(earliest) {
		return earliest
	}
	return next
}
