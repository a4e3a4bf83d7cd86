package model

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/refreshd/refreshd/model/document"
)

// MaxLog bounds the kept end of a log, in bytes.
const MaxLog = 64 << 10

// Log is the log of an attempt, as the list <queue>:logs keeps it.
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

// KeptLog returns the end of a log, at most MaxLog bytes, without secrets and control characters. It is cut before secrets are masked, because that
// costs, and again afterwards, so that no cut shows half a secret.
func KeptLog(text string) string {
	text = newlines.Replace(escapeSequence.ReplaceAllString(cutLog(text, 2*MaxLog), ""))
	return cutLog(mask(strings.TrimRight(document.Harmless(text, "\n\t"), " \n\t")), MaxLog)
}

var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// cutLog is the end of a log. A longer one begins with a whole line, or at least with a whole character.
func cutLog(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	if line := strings.IndexByte(text, '\n'); line >= 0 && line < most/2 {
		return text[line+1:] // half a line might be half a secret
	}
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// escapeSequence colors the output of a program on a terminal, or moves its cursor (ECMA-48).
var escapeSequence = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\))")

// mask hides secrets. A pattern is tried only behind its first word, and only up to the end of that line: patterns are slow.
func mask(text string) string {
	if strings.Contains(text, "PRIVATE KEY") {
		text = restOfKey.ReplaceAllString(privateKey.ReplaceAllString(text, "***"), "***")
	}
	lower := strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, withoutDirectories(text)) // as long as the text
	var found [][2]int // from where to where
	for _, pattern := range secrets() {
		found = append(found, secretsOf(pattern, lower)...)
	}
	slices.SortFunc(found, func(a, b [2]int) int { return a[0] - b[0] })
	var masked strings.Builder
	done := 0
	for _, at := range found {
		if at[0] >= done {
			masked.WriteString(text[done:at[0]] + "***")
		}
		done = max(done, at[1])
	}
	return masked.String() + text[done:]
}

// directory matches the directory of a program in a printed environment. A connection string has a ; before its PWD, or nothing but PWD in small letters.
var directory = regexp.MustCompile(`(?m)(?:^[ \t]*|[^;\s][ \t]+|[{,][ \t]*)(?:export |declare -x )?["']?(?:OLD)?PWD["']?[ \t]*[:=][ \t]*["']?/`)

// withoutDirectories gives the names PWD and OLDPWD of directories others that are as long, so that what they hold is no secret.
func withoutDirectories(text string) string {
	if !strings.Contains(text, "PWD") {
		return text
	}
	return directory.ReplaceAllStringFunc(text, func(found string) string { return strings.Replace(found, "PWD", "DIR", 1) })
}

func secretsOf(pattern *regexp.Regexp, lower string) (found [][2]int) {
	word, _ := pattern.LiteralPrefix()
	for done := 0; ; {
		begin := strings.Index(lower[done:], word)
		if begin < 0 {
			return found
		}
		line, _, _ := strings.Cut(lower[done+begin:], "\n")
		for _, at := range pattern.FindAllStringSubmatchIndex(line, -1) {
			found = append(found, [2]int{done + begin + at[2], done + begin + at[3]})
		}
		done += begin + len(line)
	}
}

// privateKey is a key that ends, or is cut off, in the log; restOfKey is the rest of one whose begin was cut off.
var (
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|$)`)
	restOfKey  = regexp.MustCompile(`(?s)\A.*-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----`)
)

// secrets are patterns for a line in small letters. Each begins with a word; its first group is masked.
var secrets = sync.OnceValue(func() (all []*regexp.Regexp) {
	for _, form := range []struct{ words, rest string }{
		{`://`, `([^\s/"'<>]+|[^\s/:@"'<>]*:[^\s/"'<>]*[^\s/0-9"'<>][^\s/"'<>]*/[^\s"'<>]*)(?:@|…$)`}, // also if the end was cut
		{`authorization`, assigned + `\\*["']?((?:[a-z0-9-]+ )?[^\s"'\\]+)`},
		{`cookie`, `\\*["']?[ \t]*:[ \t]*\\*["']?([^"'\\]+)`},
		{`bearer`, ` ([a-z._~+/=-]*[0-9][a-z0-9._~+/=-]*|[a-z._~+/=-]{20,})`},
		{`password passwd passphrase pwd secret api[_-]?key access[_-]?key private[_-]?key`, named + assigned + `(` + quoted + `|` + word + `+)`},
		// prose has these too: "unexpected token: eof", "token: 51"
		{`token credential signature &sig \?sig`, named + assigned + `(` + quoted + `|` + letter + `+[0-9]` + word + `*|[0-9]+` + letter + word + `*|` + word + `{16,})`},
		{`token= credential= signature=`, `(` + word + `*` + letter + word + `*)`},
		{`--`, `(?:[a-z0-9]+-)*(?:passw(?:or)?d|passphrase|secret|token|(?:api|access|private)-?key)` + named + `[ \t]+("[^"]*"|'[^']*'|[^\s"'-][^\s"']*)`},
		{`\x20-u\x20 \x20-{2}user[=\x20]`, `["']?[^\s:"']+:([^\s"']+)`},
		{`(akia[0-9a-z]{16} (asia[0-9a-z]{16} (gh[pousr]_\w{36,} (github_pat_\w{22,} (glpat-[\w-]{20,} (sk_(?:live|test)_\w{16,} (aiza[\w-]{35} (xox[abprs]-[a-z0-9-]{10,} (eyj[\w-]{8,}\.[\w-]{8,}\.[\w-]+`, `)`},
	} {
		for word := range strings.FieldsSeq(form.words) {
			all = append(all, regexp.MustCompile(word+form.rest))
		}
	}
	return all
})

const (
	named    = `(?:[a-rt-z0-9_-][a-z0-9_-]*)?` // the rest of a name; several, such as tokens, are mostly counted
	assigned = `\\*["']?[ \t]*[:=][ \t]*`
	quoted   = `\\"(?:[^"\\]|\\\\(?:\\.|[^\\]))*\\"|\\+"[^"]*"|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\\*["'].*` // also in JSON within JSON, or without an end
	word     = `[^\s,;&"'\\]`
	letter   = `[^\s,;&"'\\0-9.]`
)

// logURL reads the address of a log that is kept elsewhere.
func logURL(doc *document.Reader, name string) string {
	text := doc.Text(name)
	at, err := url.Parse(text)
	if text != "" && (err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil || len(text) > document.MaxText || document.OneLine(text) != text) {
		doc.Refuse(name, "an http or https URL of at most 500 bytes, without a password", document.Found(text))
	}
	return Masked(text)
}
