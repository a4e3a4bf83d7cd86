package document

import (
	"strings"
	"unicode"
)

// TrimAddress takes off an address what a paste leaves around it and what cannot be part of a URL (RFC 3986, section 2): spaces, breaks, also as
// programs escape them, signs without a width, quotes and angle brackets.
func TrimAddress(text string) string {
	for {
		rest := strings.TrimFunc(text, isAround)
		for _, escaped := range []string{`\n`, `\r`, `\t`} {
			rest = strings.TrimSuffix(rest, escaped)
		}
		if inner, opens := strings.CutPrefix(rest, "'"); opens { // at the end alone it may be part of it
			rest = strings.TrimSuffix(inner, "'")
		}
		if rest == text {
			return text
		}
		text = rest
	}
}

func isAround(r rune) bool {
	return unicode.In(r, unicode.C, unicode.Z) || strings.ContainsRune("<>\"`“”„‘’«»", r)
}
