package document

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText bounds every text that a worker or an application may leave with a model, in bytes.
const MaxText = 500

// Shorten makes outside text fit to be stored and shown: one line, no control characters, valid UTF-8, at most limit bytes.
func Shorten(text string, limit int) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	clean = strings.TrimSpace(clean)
	if len(clean) <= limit {
		return clean
	}
	cut := limit - len("…")
	for !utf8.RuneStart(clean[cut]) {
		cut--
	}
	return clean[:cut] + "…"
}

// Quote renders a text as JSON.
func Quote(text string) string {
	quoted, _ := json.Marshal(text) // a string always marshals
	return string(quoted)
}
