package words

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Clock writes an instant as people read it in a zone: 20:14, and the day behind it if that is not today.
func Clock(at, now time.Time, zone *time.Location) string {
	at, now = at.In(zone), now.In(zone)
	text, day := at.Format("15:04"), func(t time.Time) string { return t.Format(time.DateOnly) }
	switch day(at) {
	case day(now):
		return text
	case day(now.AddDate(0, 0, 1)):
		return text + " tomorrow"
	case day(now.AddDate(0, 0, -1)):
		return text + " yesterday"
	}
	if at.Year() == now.Year() {
		return text + at.Format(" on Mon 2 Jan")
	}
	return text + at.Format(" on 2 Jan 2006")
}

// At says when something happens next: "at 20:14", or within a minute "in 12 seconds".
func At(at, now time.Time, zone *time.Location) string {
	switch away := at.Sub(now); {
	case away < 0 || away >= time.Minute:
		return "at " + Clock(at, now, zone)
	case away < time.Second:
		return "now"
	default:
		return "in " + Count(int(away/time.Second), "second", "seconds")
	}
}

// Sentence begins a text with a capital letter and ends it with a full stop.
func Sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	text = string(unicode.ToUpper(first)) + text[size:]
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "…") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// Clause begins a sentence with a small letter, so that it may follow a colon.
func Clause(sentence string) string {
	first, size := utf8.DecodeRuneInString(sentence)
	return string(unicode.ToLower(first)) + sentence[size:]
}
