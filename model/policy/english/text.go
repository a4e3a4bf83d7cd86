package english

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

const (
	maxBytes = 256 << 10
	maxLines = 1000

	maxSentence = 8 << 10 // bytes

	maxLooks = 3000 // at a sentence, whole or in part

	maxJoined, maxChained = 8, 1 << 10 // places where a sentence may be cut, and bytes of it: each costs a look at the whole sentence
)

type sentence struct {
	line    int
	level   level
	text    string   // each quoted part replaced by its index in quotes, in quotes: `mark the banner with "0"`
	written string   // text as it was written
	ticked  []string // words in backticks
	quotes  []string // texts in quotes
	opens   bool     // it ended with a colon
}

type level struct {
	indent int
	marker string // of the bullet: "-", "*", "1" for all numbers; empty: none
}

func readText(text string) (all []sentence, err error) {
	if lines := strings.Count(text, "\n") + 1; len(text) > maxBytes {
		return nil, refuse(0, fmt.Sprintf("at most %d bytes", maxBytes), strconv.Itoa(len(text)))
	} else if lines > maxLines {
		return nil, refuse(0, fmt.Sprintf("at most %d lines", maxLines), strconv.Itoa(lines))
	}
	for i, line := range strings.Split(text, "\n") {
		sentences, err := readLine(i+1, line)
		if err != nil {
			return nil, err
		}
		all = append(all, sentences...)
	}
	return all, nil
}

func refuse(line int, want, found string) error {
	return &Error{Line: line, FieldError: &document.Error{Want: want, Found: found}}
}

func readLine(number int, line string) (all []sentence, err error) {
	content := strings.TrimSpace(line)
	if content == "" || content[0] == '#' || strings.HasPrefix(content, "```") {
		return nil, nil
	}
	first := sentence{line: number, level: level{indent: len(line) - len(strings.TrimLeft(line, " \t"))}}
	if bullet := bullets.FindStringSubmatch(content); bullet != nil {
		content = content[len(bullet[0]):]
		first.level.marker = cmp.Or(bullet[1], "1")
	}
	if content, err = first.takeQuotes(content); err != nil {
		return nil, err
	}
	if strings.Contains(content, "...") || strings.Contains(content, "…") {
		return nil, refuse(number, "all that is meant", document.Found(content))
	}
	for _, found := range inTicks.FindAllStringSubmatch(content, -1) {
		first.ticked = append(first.ticked, found[1])
	}
	content = strings.Join(strings.Fields(strings.NewReplacer("`", "", "**", "", "’", "'").Replace(content)), " ")
	for text := range strings.SplitSeq(plainEnglish().several.Apply(content), "\n") {
		s := first
		s.written = strings.TrimRight(text, ":")
		s.opens = s.written != text
		if lower := strings.ToLower(s.written); !strings.HasSuffix(lower, "a.m.") && !strings.HasSuffix(lower, "p.m.") { // their full stop belongs to the hour
			s.written = strings.TrimRight(s.written, " .,;!")
		}
		if len(s.written) > maxSentence {
			return nil, refuse(number, fmt.Sprintf("a sentence of at most %d bytes", maxSentence), strconv.Itoa(len(s.written)))
		}
		if s.text = s.written; s.text != "" {
			all = append(all, s)
		}
	}
	return all, nil
}

var (
	bullets = regexp.MustCompile(`^(?:([-*+•])|\d+[.)])(?: +|$)`)
	inTicks = regexp.MustCompile("`([^`\\s]+)`")
)

// takeQuotes moves all quoted parts of a line to quotes. Straight quotes have the escapes of Go and JSON; curly ones none.
func (s *sentence) takeQuotes(line string) (string, error) {
	var out strings.Builder
	for {
		at := strings.IndexAny(line, `"“`)
		if at < 0 {
			return out.String() + line, nil
		}
		prefix, err := strconv.QuotedPrefix(line[at:])
		quoted, _ := strconv.Unquote(prefix)
		rest := line[at+len(prefix):]
		if curly, found := strings.CutPrefix(line[at:], "“"); found {
			if quoted, rest, found = strings.Cut(curly, "”"); found {
				err = nil
			}
		}
		if err != nil {
			return "", refuse(s.line, `a text in quotes, with \" for a quote in it and \\ for a backslash`, document.Found(line[at:]))
		}
		out.WriteString(line[:at] + `"` + strconv.Itoa(len(s.quotes)) + `"`)
		s.quotes = append(s.quotes, quoted)
		line = rest
	}
}

// value returns the meaning of a captured word: the text in quotes, or itself.
func (s *sentence) value(captured string) string {
	if len(captured) > 2 && captured[0] == '"' {
		if i, err := strconv.Atoi(captured[1 : len(captured)-1]); err == nil && i < len(s.quotes) {
			return s.quotes[i]
		}
	}
	return captured
}

func (s *sentence) original() string { return s.restore(s.written, strconv.Quote) }

// restore puts the quoted text back in its place.
func (s *sentence) restore(captured string, quote func(string) string) string {
	parts := strings.Split(captured, `"`)
	for i := 1; i < len(parts); i += 2 {
		parts[i] = quote(s.value(`"` + parts[i] + `"`))
	}
	return strings.Join(parts, "")
}

func asItIs(text string) string { return text }
