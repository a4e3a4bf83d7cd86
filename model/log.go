package model

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/refreshd/refreshd/model/document"
)

// MaxLog bounds what is kept of the log of an attempt, in bytes: its end.
const MaxLog = 64 << 10

// Log is what an attempt has said, as the list <queue>:logs keeps it.
type Log struct {
	UID        string `json:"uid"`
	AttemptUID string `json:"attempt_uid"`
	At         string `json:"at"` // when the attempt ended
	Text       string `json:"log"`
}

// Entry renders the entry of the list.
func (l Log) Entry() string {
	text, _ := plainJSON(l) // texts only
	return string(text)
}

// ParseLog reads an entry of the list.
func ParseLog(entry string) (l Log, err error) {
	err = json.Unmarshal([]byte(entry), &l)
	return l, err
}

// CutLog is the end of a log, of at most MaxLog bytes. A longer one begins with a whole line, or at least with a whole character.
func CutLog(text string) string {
	if len(text) <= MaxLog {
		return text
	}
	text = text[len(text)-MaxLog:]
	if line := strings.IndexByte(text, '\n'); line >= 0 && line < MaxLog/2 {
		return text[line+1:] // half a line might be half a secret
	}
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// keptLog is what is kept of a log: its end, without secrets, and without characters that do something to a terminal.
func keptLog(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
			return ' '
		}
		return r
	}, escapeSequence.ReplaceAllString(text, ""))
	for _, secret := range secrets {
		text = secret.pattern.ReplaceAllString(text, secret.shown)
	}
	return CutLog(strings.TrimRight(text, " \n\t"))
}

// escapeSequence is what colors the output of a program on a terminal, or moves its cursor (ECMA-48).
var escapeSequence = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\))")

// secrets are what is masked in a log, and what is shown instead.
var secrets = []struct {
	pattern *regexp.Regexp
	shown   string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`), "***"},
	{regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@]*@`), "$1***@"},
	{regexp.MustCompile(`(?i)\b((?:proxy-)?authorization["']?\s*[:=]\s*["']?)(?:[a-z]+ )?[^\s"']+`), "$1***"},
	{regexp.MustCompile(`(?i)\b(bearer )[a-z0-9._~+/=-]{8,}`), "$1***"},
	{regexp.MustCompile(`(?i)([a-z0-9_-]*(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|credential)[a-z0-9_-]*["']?\s*[:=]\s*)(?:"[^"\n]*"|'[^'\n]*'|[^\s,;&"']+)`), "$1***"},
	{regexp.MustCompile(`\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36,}|xox[abprs]-[A-Za-z0-9-]{10,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+)`), "***"},
}

// logURL reads where the log of an attempt stands instead.
func logURL(doc *document.Reader, name string) string {
	text := doc.Text(name)
	at, err := url.Parse(text)
	if text != "" && (err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil || len(text) > document.MaxText || document.OneLine(text) != text) {
		doc.Refuse(name, "an http or https URL of at most 500 bytes, without a password", document.Found(text))
	}
	return text
}
