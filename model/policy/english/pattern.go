package english

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/refreshd/refreshd/model/words"
)

// form is one form of a sentence: what it says, and what that means.
type form struct {
	first   string // the words with which it begins, one of several: "call|name"
	rest    string // a pattern of what follows, with slots such as <duration>
	example string // what an error suggests
	apply   func(d *draft, slots []string) error
}

// slotPatterns are the parts of a pattern that a form captures. Those that begin with a quote have been cut out by takeQuotes.
var slotPatterns = strings.NewReplacer(
	"<duration>", `(`+words.DurationPattern+`)`,
	"<ordinal>", `(\d{1,4}(?:st|nd|rd|th)|(?:`+words.OrdinalPattern+`))`,
	"<number>", `(\d+(?:\.\d+)?)`,
	"<text>", `("\d+")`,
	"<value>", `("\d+"|[^\s"]+)`,
	"<names>", `(`+someName+`(?:(?:, and |, or |, | and | or )`+someName+`)*)`,
	"<name>", `(`+someName+`)`,
	"<key>", `(\{[^{}"]*\})`,
	"<planned>", `(?:until|for) (?:the )?next (?:scheduled|planned) refresh`,
	"<else>", `(?:,? (?:or|and) give up (?:if|when) (?:there is none|none is (?:scheduled|planned)))?`,
	"<the model>", `(?:auto-?refresh|refresh(?:ing)?|(?:the|this|its) [\w-]+|it)`,
	"<mailbox>", `(`+someMailbox+`)`,
	"<reader>", `(?:(?:the|its) )?(?:customer|owner|user|client)`,
)

// someMailbox is who gets e-mail: a field of the payload, a label or an address.
const someMailbox = `[a-z_][\w-]* of (?:the|its) payload|(?:the|its) label [a-z][\w.-]*|\{(?:payload|label): ?[\w.-]+\}|"\d+"|[^\s"{}]+@[^\s"]+`

const someName = `(?:"\d+"|[a-z_][\w.:/-]*)`

// grammar finds the form of a sentence by its first word, and then by the first pattern that fits.
type grammar struct {
	byWord map[string][]compiled
}

type compiled struct {
	form
	pattern *regexp.Regexp
}

func newGrammar(forms []form) *grammar {
	g := &grammar{byWord: make(map[string][]compiled)}
	for _, f := range forms {
		rest := strings.TrimSuffix(" "+slotPatterns.Replace(f.rest), " ")
		pattern := regexp.MustCompile(`(?i)^(?:` + f.first + `)` + rest + `$`)
		for word := range strings.SplitSeq(f.first, "|") {
			word, _, _ = strings.Cut(word, " ")
			g.byWord[word] = append(g.byWord[word], compiled{f, pattern})
		}
	}
	return g
}

// match returns the form of a text and what its slots hold; false: there is none.
func (g *grammar) match(text string) (form, []string, bool) {
	word, _, _ := strings.Cut(text, " ")
	for _, c := range g.byWord[strings.ToLower(word)] {
		if found := c.pattern.FindStringSubmatch(text); found != nil {
			return c.form, found[1:], true
		}
	}
	return form{}, nil, false
}

// The grammars are compiled when the first text is read: most runs of the program read none.
var (
	sentenceGrammar = sync.OnceValue(func() *grammar { return newGrammar(slices.Concat(headings, settings, retrying, errorClasses)) })
	actionGrammar   = sync.OnceValue(func() *grammar { return newGrammar(actions) })
)

// beginsSentence reports whether sentences begin with a word, which is in lower case.
func beginsSentence(word string) bool {
	return len(sentenceGrammar().byWord[word])+len(actionGrammar().byWord[word]) > 0
}

// knownSentences are one sentence of each form, and those of the retry list for each of the first ordinals.
var knownSentences = sync.OnceValue(func() *words.Phrasebook {
	var examples []string
	for _, f := range slices.Concat(settings, retrying, errorClasses, actions) {
		examples = append(examples, f.example)
	}
	for _, ordinal := range words.Firsts {
		examples = append(examples, "On the "+ordinal+" failure, retry immediately", "On the "+ordinal+" failure, retry after 1 minute")
	}
	return words.NewPhrasebook(examples)
})
