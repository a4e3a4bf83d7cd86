package words

import (
	"regexp"
	"testing"
	"time"
)

func TestADurationMayHaveItsNumbersInWords(t *testing.T) {
	pattern := regexp.MustCompile(`(?i)^(?:` + DurationPattern + `)$`)
	for text, want := range map[string]time.Duration{
		"one week": 7 * 24 * time.Hour, "an hour": time.Hour, "half an hour": 30 * time.Minute, "Half a minute": 30 * time.Second, "half one hour": 30 * time.Minute,
		"an hour and a half": 90 * time.Minute, "two days and a half": 60 * time.Hour, "thirty minutes": 30 * time.Minute, "1 hour, thirty minutes": 90 * time.Minute,
		"1h30m": 90 * time.Minute, "PT5M": 5 * time.Minute, "1.5h": 90 * time.Minute, "90s": 90 * time.Second,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
		if !pattern.MatchString(text) {
			t.Errorf("%s: expected a match of the pattern, found none", text)
		}
	}
	for _, text := range []string{"half", "half an", "half hour", "and a half", "hour and a half", "a fortnight", "twenty-one days"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%s is read as %v", text, got)
		}
	}
}
