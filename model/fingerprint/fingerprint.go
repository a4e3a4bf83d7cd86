// Package fingerprint groups failures that have the same cause.
package fingerprint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// Text is what failures of one cause have in common: error type and reason, without what differs from model to model and from time to
// time, such as "http_503: GET <url>: 503 Service Unavailable". At most Max bytes on one line.
type Text string

// Max is how long a fingerprint may be, in bytes.
const Max = 120

const (
	maxUnblanked  = 1000 // bytes of a text that are looked at
	idLength      = 12   // hex digits
	shortestHex   = 8    // letters and digits; of letters alone twice as many
	longestCode   = 3    // digits that distinguish fingerprints: 503, exit code 137
	shortestToken = 10   // letters and digits of an id that somebody has drawn
)

// Other is the id of all fingerprints beyond the limit of a queue.
const Other = "other"

// Of is the fingerprint of a failure of a model.
func Of(uid, errorType, reason string) Text {
	codes := digits.FindAllString(errorType[:min(len(errorType), maxUnblanked)], -1)
	codes = slices.DeleteFunc(codes, func(code string) bool { return len(code) > longestCode })
	reason = strings.TrimPrefix(reason, errorType+": ") // some workers say it twice
	kind, text := blank(errorType, uid, codes), blank(reason, uid, codes)
	switch {
	case kind != "" && text != "" && kind != text:
		text = kind + ": " + text
	default:
		text = cmp.Or(text, kind, "no reason given")
	}
	return Text(document.Shorten(text, Max))
}

// ID is a short name of the fingerprint, 12 hex digits.
func (s Text) ID() string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:idLength]
}

var ids = regexp.MustCompile(`^([0-9a-f]{12}|` + Other + `)$`)

// ValidateID accepts the id of a fingerprint.
func ValidateID(id string) error {
	if ids.MatchString(id) {
		return nil
	}
	return document.Refuse("error", "the id of a fingerprint, 12 hex digits, or "+Other, document.Found(id))
}

// blanks replace values at the beginning of a word. The first match wins.
var blanks = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>` + "`" + `]*[^\s"'<>` + "`" + `.,;:!?)\]}]`), "<url>"},
	{regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b`), "<uuid>"},
	{regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{1,3}){3}(:[0-9]{1,5})?\b`), "<ip>"},
	{regexp.MustCompile(`^[0-9A-Fa-f]{1,4}(:[0-9A-Fa-f]{1,4}){7}\b`), "<ip>"},
	{regexp.MustCompile(`^[0-9A-Fa-f:]*::[0-9A-Fa-f:]*[0-9]\b`), "<ip>"},
	{regexp.MustCompile(`^0[xX][0-9A-Fa-f]+\b`), "<hex>"},
	{regexp.MustCompile(`^[0-9A-Fa-f]{16,}\b`), "<hex>"},
}

var (
	numberPattern = regexp.MustCompile(`^[0-9]+([.,:][0-9]+)*\b`)
	wordPattern   = regexp.MustCompile(`^[A-Za-z0-9]+`)
	onlyHex       = regexp.MustCompile(`^[0-9A-Fa-f]+$`)
	digits        = regexp.MustCompile(`[0-9]+`)
	codeBefore    = regexp.MustCompile(`(?i)\b(http(/#)?|status|code)[ :=]{1,2}$`)
)

// blank replaces the values in a text by names, and runs of spaces by one. codes are numbers that stay.
func blank(text, uid string, codes []string) string {
	text = strings.Join(strings.Fields(document.OneLine(text[:min(len(text), maxUnblanked)])), " ")
	var out strings.Builder
	for at := 0; at < len(text); {
		rest := text[at:]
		if at == 0 || !inWord(text[at-1]) { // a value may begin here
			if length, name := valueAt(rest, uid); length > 0 {
				out.WriteString(name)
				at += length
				continue
			}
		}
		word := wordPattern.FindString(rest)
		if word == "" {
			out.WriteByte(rest[0])
			at++
			continue
		}
		out.WriteString(blankWord(word, out.String(), word == text, codes))
		at += len(word)
	}
	return out.String()
}

// valueAt finds a value at the beginning of a text; 0: there is none.
func valueAt(text, uid string) (length int, name string) {
	for _, one := range blanks {
		if length = len(one.pattern.FindString(text)); length > 0 {
			name = one.name
			break
		}
	}
	for i := 1; length == 0 && strings.IndexByte("\"'`", text[0]) >= 0 && i < len(text); i++ { // a text in quotes
		if text[i] == text[0] && (i+1 == len(text) || !inWord(text[i+1])) {
			length, name = i+1, "<value>"
		}
	}
	if length == 0 {
		if number := numberPattern.FindString(text); len(number) > len(digits.FindString(number)) {
			length, name = len(number), "#"
		}
	}
	if n := len(uid); n > 0 && n >= length && strings.HasPrefix(text, uid) && (n == len(text) || !inWord(text[n])) {
		length, name = n, "<uid>"
	}
	return length, name
}

// blankWord replaces digits, except in a code: a number of the error type, one behind "status" or "code", or a number alone.
func blankWord(word, before string, alone bool, codes []string) string {
	groups := len(digits.FindAllString(word, -1))
	switch number := digits.FindString(word); {
	case number == word && len(word) <= longestCode && (alone || codeBefore.MatchString(before[max(0, len(before)-20):])):
		return word
	case number != word && groups > 0 && len(word) >= shortestHex && onlyHex.MatchString(word):
		return "<hex>"
	case groups > 1 && len(word) >= shortestToken:
		return "<id>"
	}
	return digits.ReplaceAllStringFunc(word, func(number string) string {
		if slices.Contains(codes, number) {
			return number
		}
		return "#"
	})
}

func inWord(c byte) bool {
	return c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
