package chart

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain makes a text from outside harmless to a terminal: one line, no control characters, no turned direction.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
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

// columns is how wide a terminal shows a text.
func columns(text string) int {
	n := 0
	for _, r := range text {
		switch {
		case r == '\ufe0f': // shows the letter before it as an emoji
			n++
		case unicode.Is(unicode.Mn, r) || r == '\u200d':
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide: a letter of East Asia or an emoji. The blocks are coarse; a miss costs one column of alignment.
func wide(r rune) bool {
	switch {
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff,
		r >= 0x20000 && r <= 0x3fffd:
		return true
	}
	return strings.ContainsRune("⏰⏳⏩⏪⌛✅✋❌", r)
}

// sentence joins the parts that are not empty.
func sentence(parts ...string) string {
	var filled []string
	for _, part := range parts {
		if part != "" {
			filled = append(filled, part)
		}
	}
	return strings.Join(filled, ": ")
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
