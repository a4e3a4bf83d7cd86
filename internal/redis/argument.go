package redis

import (
	"strconv"
	"time"
)

// Millis renders an instant as a score or script argument: Unix milliseconds, empty for a zero time.
func Millis(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMilli(), 10)
}

// Number renders a number; empty: 0.
func Number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Flag renders true as "1", and false as an empty text.
func Flag(set bool) string {
	if set {
		return "1"
	}
	return ""
}

// Anys are texts as arguments of a command.
func Anys(texts []string) []any { return Map(texts, func(text string) any { return text }) }
