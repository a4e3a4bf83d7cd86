package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// Fingerprint is what failures of one cause have in common: error type and reason, without what differs from model to model and from time to
// time, such as "http_503: GET <url>: 503 Service Unavailable". At most MaxFingerprint bytes on one line.
type Fingerprint string

// Bounds of a fingerprint.
const (
	MaxFingerprint = 120  // bytes
	maxUnblanked   = 1000 // bytes of a text that are looked at
	fingerprintID  = 12   // hex digits
	shortestHex    = 8    // letters and digits; of letters alone twice as many
	longestCode    = 3    // digits of what is told apart: 503, exit code 137
	shortestToken  = 10   // letters and digits of an id that somebody has drawn
)

// OtherFingerprint is the id of all fingerprints beyond those that a queue keeps apart.
const OtherFingerprint = "other"

// FingerprintOf is the fingerprint of a failure of a model.
func FingerprintOf(uid, errorType, reason string) Fingerprint {
	codes := digits.FindAllString(errorType[:min(len(errorType), maxUnblanked)], -1)
	codes = slices.DeleteFunc(codes, func(code string) bool { return len(code) > longestCode })
	kind, text := blank(errorType, uid, codes), blank(reason, uid, codes)
	switch {
	case kind != "" && text != "" && kind != text:
		text = kind + ": " + text
	default:
		text = cmp.Or(text, kind, "no reason given")
	}
	return Fingerprint(document.Shorten(text, MaxFingerprint))
}

// ID is a short name of the fingerprint, 12 hex digits.
func (s Fingerprint) ID() string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:fingerprintID]
}

var fingerprintIDs = regexp.MustCompile(`^([0-9a-f]{12}|` + OtherFingerprint + `)$`)

// ValidateFingerprintID accepts the id of a fingerprint.
func ValidateFingerprintID(id string) error {
	if fingerprintIDs.MatchString(id) {
		return nil
	}
	return document.Refuse(SelectError, "the id of a fingerprint, 12 hex digits, or "+OtherFingerprint, document.Found(id))
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

type blanker struct {
	uid   string
	codes []string // numbers that stay
	alone bool     // there is nothing but one word
	out   strings.Builder
}

// blank replaces the values in a text by names, and runs of spaces by one.
func blank(text, uid string, codes []string) string {
	text = strings.Join(strings.Fields(document.OneLine(text[:min(len(text), maxUnblanked)])), " ")
	b := blanker{uid: uid, codes: codes, alone: wordPattern.FindString(text) == text}
	for at := 0; at < len(text); {
		if at > 0 && inWord(text[at-1]) { // no value begins here
			at += b.rest(text[at:])
		} else {
			at += b.next(text[at:])
		}
	}
	return b.out.String()
}

func inWord(c byte) bool {
	return c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// next writes the beginning of a text and returns its length.
func (b *blanker) next(text string) int {
	length, name := valueAt(text)
	if n := len(b.uid); n > 0 && n >= length && strings.HasPrefix(text, b.uid) && (n == len(text) || !inWord(text[n])) {
		length, name = n, "<uid>"
	}
	if length == 0 {
		return b.rest(text)
	}
	b.out.WriteString(name)
	return length
}

func (b *blanker) rest(text string) int {
	word := wordPattern.FindString(text)
	if word == "" {
		b.out.WriteByte(text[0])
		return 1
	}
	b.out.WriteString(b.word(word))
	return len(word)
}

func valueAt(text string) (length int, name string) {
	for _, one := range blanks {
		if length := len(one.pattern.FindString(text)); length > 0 {
			return length, one.name
		}
	}
	if length := quoted(text); length > 0 {
		return length, "<value>"
	}
	if number := numberPattern.FindString(text); len(number) > len(digits.FindString(number)) {
		return len(number), "#"
	}
	return 0, ""
}

// quoted returns the length of a quotation at the beginning of a text, or 0.
func quoted(text string) int {
	if strings.IndexByte("\"'`", text[0]) < 0 {
		return 0
	}
	for i := 1; i < len(text); i++ {
		if text[i] == text[0] && (i+1 == len(text) || !inWord(text[i+1])) {
			return i + 1
		}
	}
	return 0
}

// word replaces digits, except in a code: a number of the error type, one behind "status" or "code", or one that stands alone.
func (b *blanker) word(word string) string {
	groups := len(digits.FindAllString(word, -1))
	before := b.out.String()
	before = before[max(0, len(before)-20):]
	switch number := digits.FindString(word); {
	case number == word && len(word) <= longestCode && (b.alone || codeBefore.MatchString(before)):
		return word
	case number != word && groups > 0 && len(word) >= shortestHex && onlyHex.MatchString(word):
		return "<hex>"
	case groups > 1 && len(word) >= shortestToken:
		return "<id>"
	}
	return digits.ReplaceAllStringFunc(word, func(number string) string {
		if slices.Contains(b.codes, number) {
			return number
		}
		return "#"
	})
}
