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

	maxJoined, maxChained = 32, 1 << 10 // sentences of a line that commas join, and bytes of it: each costs a look at the whole line
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
	content = elided.ReplaceAllString(ifThatFails.ReplaceAllString(content, ", then $1"), "; on the $1 failure, $2")
	content = elidedRetry.ReplaceAllString(content, "$1 retry $2")
	if waits.MatchString(content) { // "wait 1 minute before the first retry, 5 minutes before the second"
		content = strings.TrimPrefix(wait.ReplaceAllString(content, "; on the $2 failure, retry after $1"), "; ")
	}
	content = withTimeout.ReplaceAllString(content, "; timeout ")
	for joined := 0; joined < maxJoined && len(content) < maxChained && chain.MatchString(content); joined++ {
		content = chain.ReplaceAllString(content, "$1; $2")
	}
	var all []sentence
	for _, text := range splitSentences(strings.Join(strings.Fields(content), " ")) {
		s := first
		s.said = strings.TrimRight(text, ":")
		s.opens = s.said != text
		if lower := strings.ToLower(s.said); !strings.HasSuffix(lower, "a.m.") && !strings.HasSuffix(lower, "p.m.") { // their full stop belongs to the hour
			s.said = strings.TrimRight(s.said, " .,;!")
		}
		s.text = s.said
		for _, spelling := range spellings {
			s.text = spelling.pattern.ReplaceAllString(s.text, spelling.to)
		}
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
	// elided is the next failure of a list, without its "failure": "on the first failure retry after 1 minute, on the second after 5 minutes".
	elided      = regexp.MustCompile(`(?i), (?:and )?(?:(?:on|after) )?(?:the )?(` + someOrdinal + `)(?: failure)?,? ((?:retry|wait|give|disable|after|in|immediately)\b)`)
	elidedRetry = regexp.MustCompile(`(?i)(; on the (?:` + someOrdinal + `) failure,) (after|in|immediately)\b`)
	wait        = regexp.MustCompile(`(?i)(?:^wait |, (?:and )?| and )(\d+ [a-z]+) (?:before|after) the (` + someOrdinal + `)(?: (?:retry|failure))?\b`)
	withTimeout = regexp.MustCompile(`(?i),? (?:with|using) an? (?:timeout|time limit) of `)
	waits       = regexp.MustCompile(`(?i)^wait \d+ [a-z]+ (?:before|after) the first `)
	ifThatFails = regexp.MustCompile(`(?i)[.;,] (?:if|when) (?:that|it|this)(?: also)? fails(?: too| again)?,? (?:retry|try again) (after|in|immediately)\b`)
	// chain are sentences that a person joins with commas, as none of them has one.
	chain     = regexp.MustCompile(`(?i)^((?:.*[;.] )?(?:refresh|allow|retry|keep) [^;.]*?)(?:,(?: and)?| and) ((?:allow|timeout (?:of )?\d|retry (?:up to|at most|every|after|only|immediately|once|twice|\S+ times)|do not retry|never|give up|notify|tell|e-?mail|keep|time out|skip) ?.*)$`)
	halfOfDay = regexp.MustCompile(`(?i)[ap]\.m$`)
	dayFirst  = regexp.MustCompile(`(?i)^` + someDay + `\b`)
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

// spellings are other ways to say a word, before any form is looked for.
var spellings = []struct {
	pattern *regexp.Regexp
	to      string
}{
	{regexp.MustCompile(`(?i)\bdon't\b`), "do not"},
	{regexp.MustCompile(`(?i)^please `), ""},
	{regexp.MustCompile(`(?i)^only retry\b`), "retry only"},
	{regexp.MustCompile(`(?i)\btry(ing)? again\b`), "retry$1"},
	{regexp.MustCompile(`(?i)\bretry (?:it|them|failed (?:attempts|refreshes)|a failed (?:attempt|refresh))\b`), "retry"},
	{regexp.MustCompile(`(?i)^(?:allow )?retries (?:(?:are|may|can|should|must) )?(?:(?:be )?(?:start|run|happen|made|allowed) )?only(?: (?:be )?(?:start|run|allowed|made))?\b|^only (?:allow|start|make) retries\b`), "retry only"},
	{regexp.MustCompile(`(?i)^keep (?:re)?trying\b`), "retry"},
	{regexp.MustCompile(`(?i)^first,? (retry [^,]+, then )`), "$1"},
	{regexp.MustCompile(`(?i)^(?:alert|inform|notify|warn|tell) (\S+@\S+)`), "email $1"},
	{regexp.MustCompile(`(?i)^no retries (on|between|from|before|after|during|at)\b`), "do not retry $1"},
	{regexp.MustCompile(`(?i)^(?:(?:make|do|allow) )?((?:up to|at most|no more than|a maximum of) (?:` + someCount + `)) (?:retries|retry attempts)\b`), "retry $1 times"},
	{regexp.MustCompile(`(?i)^let (.+) know\b`), "notify $1"},
	{regexp.MustCompile(`(?i)\b(?:inform|warn|alert) (the|its)\b`), "notify $1"},
	{regexp.MustCompile(`(?i)^(notify .+) only (when|if)\b`), "$1 $2"},
	{regexp.MustCompile(`(?i)^back off exponentially\b`), "use exponential backoff"},
	{regexp.MustCompile(`(?i)^(?:if|when) (?:it|an attempt|a refresh) times out\b`), "on timeout"},
	{regexp.MustCompile(`(?i)^((?:on|after) the (?:` + someOrdinal + `))(?: one)?, (retry|wait|give|disable|do)`), "$1 failure, $2"},
	{regexp.MustCompile(`(?i)^(?:the )?(` + someOrdinal + `) retry (?:(?:is|comes|starts|runs) )?(immediate|after|in)`), "on the $1 failure, retry $2"},
	{regexp.MustCompile(`(?i)\bretry immediate$`), "retry immediately"},
	{regexp.MustCompile(`(?i)\berrors of (?:the )?type `), ""},
	{regexp.MustCompile(`(?i)(?:(,) )?\((\d+ [a-z]+ to \d+ [a-z]+)\)`), "from $2"},
	{regexp.MustCompile(`(?i)^(` + someOrdinal + `) failure\b`), "on the $1 failure"},
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
