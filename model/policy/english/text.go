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

	maxJoined, maxChained = 8, 1 << 10 // places where a sentence may be cut, and bytes of it: each costs a look at the whole sentence
)

type sentence struct {
	line   int
	level  level
	text   string   // each quoted part replaced by its index in quotes, in quotes: `mark the banner with "0"`
	said   string   // text as it was written
	ticked []string // words that stood in backticks
	quotes []string // what stood in quotes
	opens  bool     // it ended with a colon
}

type level struct {
	indent int
	marker byte // of the bullet: '-', '*', '1' for all numbers; 0: none
}

func readText(text string) ([]sentence, error) {
	if len(text) > maxBytes {
		return nil, refuse(0, fmt.Sprintf("at most %d bytes", maxBytes), strconv.Itoa(len(text)))
	}
	if lines := strings.Count(text, "\n") + 1; lines > maxLines {
		return nil, refuse(0, fmt.Sprintf("at most %d lines", maxLines), strconv.Itoa(lines))
	}
	var all []sentence
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

func readLine(number int, line string) ([]sentence, error) {
	content := strings.TrimSpace(line)
	if content == "" || content[0] == '#' || strings.HasPrefix(content, "```") {
		return nil, nil
	}
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	first := sentence{line: number, level: level{indent: indent}}
	bullet, rest, _ := strings.Cut(content, " ")
	digits := strings.TrimRight(bullet, ".)")
	switch {
	case bullet == "-" || bullet == "*" || bullet == "+" || bullet == "•":
		first.level.marker, content = bullet[0], strings.TrimSpace(rest)
	case len(digits) == len(bullet)-1 && digits != "" && strings.Trim(digits, "0123456789") == "":
		first.level.marker, content = '1', strings.TrimSpace(rest)
	}
	content, err := first.takeQuotes(content)
	if err != nil {
		return nil, err
	}
	for _, found := range inTicks.FindAllStringSubmatch(content, -1) {
		first.ticked = append(first.ticked, found[1])
	}
	content = strings.NewReplacer("`", "", "**", "", "’", "'").Replace(content)
	content = ifThatFails.ReplaceAllString(content, ", then $1")
	content = heldIf.ReplaceAllString(failedIf.ReplaceAllString(content, "doubt $1 and fail it"), "doubt $2 and $1 it")
	var all []sentence
	for _, text := range splitSentences(strings.Join(strings.Fields(content), " ")) {
		s := first
		s.said = strings.TrimRight(text, ":")
		s.opens = s.said != text
		if lower := strings.ToLower(s.said); !strings.HasSuffix(lower, "a.m.") && !strings.HasSuffix(lower, "p.m.") { // their full stop belongs to the hour
			s.said = strings.TrimRight(s.said, " .,;!")
		}
		s.text = s.said
		if s.text != "" {
			all = append(all, s)
		}
	}
	return all, nil
}

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

var (
	inTicks = regexp.MustCompile("`([^`\\s]+)`")
	// betweenSentences matches to the first word of a sentence. Behind "then" only an end may follow.
	betweenSentences = regexp.MustCompile(`(\. )[A-Z]|(; )[A-Za-z']+ |(,? and |,? )then,? (?i:give|disable|wait (?:until|for the|for next)|panic|stop|tell|notify|email)\b`)
	ifThatFails      = regexp.MustCompile(`(?i)(?: and)?[.;,] (?:if|when) (?:that|it|this)(?: also)? fails(?: too| again| as well)?,? (?:retry|try again|once more|again) (after|in|immediately|at once)\b`)
	failedIf         = regexp.MustCompile(`(?i)\b(?:treat|consider|count) (an? (?:refresh|success|result) (?:with|without|whose) [^.;]+) as (?:failed|a failure)\b`)
	heldIf           = regexp.MustCompile(`(?i)\b(hold|fail) (an? (?:refresh|success|result) (?:with|without|whose) [^.;,]+)`)
	halfOfDay        = regexp.MustCompile(`(?i)[ap]\.m$`)
	dayFirst         = regexp.MustCompile(`(?i)^` + someDay + `\b`)
)

// splitSentences splits a line, but not "6 a.m. Monday".
func splitSentences(text string) (all []string) {
	for from := 0; ; {
		found := betweenSentences.FindStringSubmatchIndex(text[from:])
		if found == nil {
			return append(all, text)
		}
		begin, end := from+found[0], from+max(found[3], found[5], found[7])
		if from = end; halfOfDay.MatchString(text[:begin]) && dayFirst.MatchString(text[end:]) {
			continue
		}
		all = append(all, text[:begin+1])
		text, from = text[end:], 0
	}
}

// value returns what a captured word stands for: the text in quotes, or itself.
func (s *sentence) value(captured string) string {
	if len(captured) > 2 && captured[0] == '"' {
		if i, err := strconv.Atoi(captured[1 : len(captured)-1]); err == nil && i < len(s.quotes) {
			return s.quotes[i]
		}
	}
	return captured
}

func (s *sentence) original() string {
	parts := strings.Split(cmp.Or(s.said, s.text), `"`)
	for i := 1; i < len(parts); i += 2 {
		parts[i] = strconv.Quote(s.value(`"` + parts[i] + `"`))
	}
	return strings.Join(parts, "")
}

func (s *sentence) restore(captured string) string {
	parts := strings.Split(captured, `"`)
	for i := 1; i < len(parts); i += 2 {
		parts[i] = s.value(`"` + parts[i] + `"`)
	}
	return strings.Join(parts, "")
}
