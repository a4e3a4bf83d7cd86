package simulate

import (
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// ParseShare reads a percentage such as "5%" or "5" as a share from 0 to 1. An error is a *document.Error.
func ParseShare(text string) (float64, error) {
	number, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "%")), 64)
	if err != nil || !(number >= 0 && number <= 100) {
		return 0, &document.Error{Want: "a percentage such as 5%", Found: document.Found(text)}
	}
	return number / 100, nil
}

// ParseLengths reads a duration, or a range of them such as "1m-5m". An error is a *document.Error.
func ParseLengths(text string) (shortest, longest time.Duration, err error) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	if shortest, err = document.ParseDuration(from); err == nil {
		longest, err = document.ParseDuration(to)
	}
	if err != nil || shortest > longest {
		err = &document.Error{Want: "a duration or a range such as 1m-5m", Found: document.Found(text)}
	}
	return shortest, longest, err
}

var timeLayouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "20060102T150405", time.DateOnly}

// ParseTime reads a time from 1970 to 2200: in RFC 3339, or a wall clock time in zone, of two equal ones the first. An error is a *document.Error.
func ParseTime(text string, zone *time.Location) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	for _, layout := range timeLayouts {
		if err == nil {
			break
		}
		if at, err = time.Parse(layout, text); err == nil {
			at = schedule.Shown(at, zone)
		}
	}
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		return at, &document.Error{Want: "a time such as 2026-11-21T06:00 or 2026-11-21T06:00:00Z, from 1970 to 2200", Found: document.Found(text)}
	}
	return at.UTC().Truncate(time.Millisecond), nil
}
