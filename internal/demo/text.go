package demo

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// plain makes outside text harmless to a terminal: one line of printable characters. Feeds and applications must not be
// able to move the cursor, change the title or turn the direction of writing.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// fit cuts a text to width characters and, when it is shorter, fills it with spaces.
func fit(text string, width int) string {
	length := utf8.RuneCountInString(text)
	if length <= width {
		return text + strings.Repeat(" ", width-length)
	}
	return cut(text, width)
}

// cut shortens a text to at most width characters.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}

// until renders how long it is from now to an instant.
func until(at, now time.Time) string {
	switch left := at.Sub(now); {
	case left <= 0:
		return "now"
	case left < time.Minute:
		return fmt.Sprintf("+%.1fs", left.Seconds())
	case left < time.Hour:
		return fmt.Sprintf("+%dm", int(left.Minutes()))
	default:
		return fmt.Sprintf("+%dh", int(left.Hours()))
	}
}
