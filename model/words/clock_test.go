package words

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

func TestAClockNamesTheDayOnlyIfItIsNotToday(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	check.Must(t, err)
	now := time.Date(2026, 11, 24, 19, 5, 0, 0, time.UTC)
	for away, want := range map[time.Duration]string{
		0: "20:05", 3*time.Hour + 54*time.Minute: "23:59", 4 * time.Hour: "00:05 tomorrow", -21 * time.Hour: "23:05 yesterday",
		72 * time.Hour: "20:05 on Fri 27 Nov", 60 * 24 * time.Hour: "20:05 on 23 Jan 2027",
	} {
		got := Clock(now.Add(away), now, berlin)
		failIf(t, got != want, "%s away: expected %q, found %q", away, want, got)
	}
	for away, want := range map[time.Duration]string{
		0: "now", time.Second: "in 1 second", 59 * time.Second: "in 59 seconds", time.Minute: "at 20:06", -time.Second: "at 20:04", time.Second - 1: "now", -1: "at 20:04",
	} {
		got := At(now.Add(away), now, berlin)
		failIf(t, got != want, "%s away: expected %q, found %q", away, want, got)
	}
}

func TestASentenceBeginsWithACapitalLetterAndEndsOnce(t *testing.T) {
	for text, want := range map[string]string{"": "", "no worker": "No worker.", "Done.": "Done.", "cut…": "Cut…", "why?": "Why?", "éclair": "Éclair."} {
		got := Sentence(text)
		failIf(t, got != want, "expected %q, found %q", want, got)
	}
	failIf(t, Clause("Next try.") != "next try.", "found %q", Clause("Next try."))
}
