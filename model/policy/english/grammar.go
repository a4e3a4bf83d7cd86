package english

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/refreshd/refreshd/model/words"
)

// form is a pattern of sentences in plain words, and its meaning. No pattern accepts any word: each is known or is in a slot that is read on.
type form struct {
	patterns string // one fits, between slashes; with slots such as <duration>. Of "A => B", B may come first
	example  string // the suggestion of an error
	apply    func(d *draft, slots []string)
}

// lazy is a pattern that is compiled when it is first needed.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)` + plainEnglish().withSlots(pattern)) })
}

type compiled struct {
	*form
	words.Pattern
	turned int // so many slots at the end are the first ones: "B, A" of "A => B"
}

// take returns the slots of a text that fits, and the rest.
func (c compiled) take(text string) (slots []string, rest string, fits bool) {
	var found []int
	if c.Fits(text) {
		found = c.FindStringSubmatchIndex(text)
	}
	if found == nil {
		return nil, text, false
	}
	for i := 2; i < len(found); i += 2 {
		slots = append(slots, strings.TrimRight(text[max(0, found[i]):max(0, found[i+1])], ",:"))
	}
	first := len(slots) - c.turned
	return slices.Concat(slots[first:], slots[:first]), text[found[1]:], true
}

func compile(forms []form, end string) (all []compiled) {
	for i := range forms {
		for _, pattern := range betweenPatterns.Split(forms[i].patterns, -1) {
			condition, action, turns := strings.Cut(plainEnglish().withSlots(pattern), " => ")
			add := func(pattern string, turned int) {
				all = append(all, compiled{&forms[i], words.CompilePattern(`(?i)^(?:` + pattern + `)` + end), turned})
			}
			if !turns {
				add(condition, 0)
				continue
			}
			add(`(?:`+condition+`)[,:]? (?:`+action+`)`, 0)
			add(`(?:`+action+`),? (?:`+condition+`)`, regexp.MustCompile(condition).NumSubexp())
		}
	}
	return all
}

var betweenPatterns = regexp.MustCompile(`\s+/\s+`)

// apply applies the forms that fit until one understands the sentence.
func (d *draft) apply(grammar []compiled, text string) bool {
	for _, c := range grammar {
		if slots, _, fits := c.take(text); fits {
			before := d.copy()
			if c.apply(d, slots); d.known() {
				return true
			}
			*d = before
		}
	}
	return false
}

// applyAll applies the traits that a text has one behind the other, in any order, and reports whether nothing is left.
func (d *draft) applyAll(grammar []compiled, text string) bool {
	for text != "" && d.err == nil {
		before := len(text)
		for _, c := range grammar {
			if slots, rest, fits := c.take(text); fits && before > len(rest) {
				text = rest
				c.apply(d, slots)
				break
			}
		}
		if len(text) == before {
			return false
		}
	}
	return true
}

// The grammars are compiled when the first text is read: most runs of the program read none.
var (
	writtenGrammar  = sync.OnceValue(func() []compiled { return compile(asWritten, "$") })
	sentenceGrammar = sync.OnceValue(func() []compiled { return compile(sentences, "$") })
	actionGrammar   = sync.OnceValue(func() []compiled { return compile(actions, "$") })
	retryGrammar    = sync.OnceValue(func() []compiled { return compile(retryTraits, betweenTraits) })
	circuitGrammar  = sync.OnceValue(func() []compiled { return compile(circuitTraits, betweenTraits) })
)

const betweenTraits = `(?:[,:;]?(?: and then| and| but| then)? |[,:]?$)`

// knownSentences are those that a refusal may offer.
func knownSentences() []string {
	examples := []string{"On failure, retry after 5 minutes"}
	for _, f := range slices.Concat(asWritten, sentences, actions) {
		if f.example != "" {
			examples = append(examples, f.example)
		}
	}
	for _, ordinal := range words.Firsts {
		examples = append(examples, "On the "+ordinal+" failure, retry immediately", "On the "+ordinal+" failure, retry after 1 minute")
	}
	return examples
}
