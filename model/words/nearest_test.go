package words

import (
	"strings"
	"testing"
)

func TestTheNearestSentenceNeedsTheFewestChanges(t *testing.T) {
	book := NewPhrasebook([]string{"every day at 6 AM and 4 PM", "every 2 hours", "every weekday at 8:00", "panic"})
	for text, want := range map[string]string{
		"every 2 hours": "every 2 hours", "every twelve hours": "every 2 hours", "evry 2 hours": "every 2 hours",
		"every day at 25:00": "every day at 6 AM and 4 PM", "Every WEEKDAY, at 9:00.": "every weekday at 8:00", "pannic": "panic", "`panic`!": "panic",
	} {
		if got := book.Nearest(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"", " . ", strings.Repeat("x", 100_000), strings.Repeat("every ", 100_000), "\xff\xfe"} {
		if got := book.Nearest(text); got == "" {
			t.Errorf("%.20q: expected any sentence, found none", text)
		}
	}
	if got := NewPhrasebook(nil).Nearest("panic"); got != "" {
		t.Errorf("no sentence is known, and %q is the nearest", got)
	}
}
