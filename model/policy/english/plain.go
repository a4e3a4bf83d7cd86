package english

import (
	_ "embed" // plain.txt
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/refreshd/refreshd/model/words"
)

//go:embed plain.txt
var plainText string

// thesaurus is the content of plain.txt.
type thesaurus struct {
	slots          *strings.Replacer
	words          map[string]string // phrase to the word of the forms
	order, several words.Respellings // of the parts of a sentence, and of a line that has several
}

var plainEnglish = sync.OnceValue(func() *thesaurus {
	t := &thesaurus{words: make(map[string]string)}
	slots := []string{"<length of time>", words.DurationPattern, "<number word>", words.NumberPattern,
		"<ordinal word>", words.OrdinalPattern, "<noun>", words.NounPattern}
	var lines []string
	for _, line := range words.Lines(plainText) {
		if slot, pattern, found := strings.Cut(line, "> = "); found {
			slots = append(slots, slot+">", pattern)
		} else {
			lines = append(lines, line)
		}
	}
	t.slots = strings.NewReplacer(slots...)
	for _, line := range lines {
		if several, text, found := strings.Cut(line, " ==> "); found {
			t.several.Add(t.withSlots(several), strings.ReplaceAll(text, `\n`, "\n"))
		} else if pattern, text, found := strings.Cut(line, " => "); found {
			t.order.Add(`(?i)`+t.withSlots(pattern), text)
		} else if word, others, found := strings.Cut(line, ":"); found {
			for phrase := range strings.SplitSeq(others, ",") {
				t.words[strings.TrimSpace(phrase)] = word
			}
		}
	}
	return t
})

// withSlots puts the pattern of each slot in its place. A slot may have others inside.
func (t *thesaurus) withSlots(pattern string) string {
	for range 4 {
		pattern = t.slots.Replace(pattern)
	}
	return pattern
}

const longestPhrase = 7 // words

// plain says a sentence in the words of the forms. Each step is one more way to say the same.
func plain(text string) string {
	var out []string
	for tokens := strings.Fields(text); len(tokens) > 0; {
		count, word := 1, tokens[0]
		for n := min(longestPhrase, len(tokens)); n > 0; n-- {
			phrase := strings.Join(tokens[:n], " ")
			bare := strings.TrimRight(phrase, ",:;")
			if plainWord, known := plainEnglish().words[strings.ToLower(bare)]; known {
				count, word = n, plainWord
				if plainWord != "" {
					word += phrase[len(bare):]
				}
				break
			}
		}
		if tokens = tokens[count:]; word != "" {
			out = append(out, word)
		}
	}
	return activeVoice(plainEnglish().order.Apply(strings.Join(out, " ")))
}

// participles may be in the passive voice: "A refresh without rows is doubted".
var participles = map[string]string{"retried": "retry", "doubted": "doubt", "cancelled": "cancel", "stopped": "cancel", "ended": "cancel", "limited": "limit", "skipped": "skip",
	"ignored": "skip", "dropped": "skip", "spread": "spread", "held": "hold", "notified": "notify", "told": "notify", "informed": "notify", "warned": "notify"}

var (
	passive = regexp.MustCompile(`(?i)^((?:if|when|after|on|once) [^,]+, )?(only )?([^,:;]+?) ((?:(?:must|may|will) )?(?:(?:never|only) )?(?:is|are|gets?|be) (?:(?:never|only) )?)(` +
		strings.Join(slices.Sorted(maps.Keys(participles)), "|") + `)\b(.*)$`)
	noSubject = regexp.MustCompile(`(?i)\b(?:never|not|only|when|if|while|until|unless|once|notify|e-mail|tell|that (?:the|it|its|refresh))\b`)
)

// activeVoice makes "retry timeouts" of "timeouts are retried".
func activeVoice(text string) string {
	found := passive.FindStringSubmatch(text)
	if found == nil || noSubject.MatchString(found[3]) {
		return text
	}
	condition, subject, verb, rest := found[1], " "+found[3], participles[strings.ToLower(found[5])], found[6]
	verbs := strings.ToLower(found[2] + found[4])
	never, only := strings.Count(verbs, "never"), strings.Count(verbs, "only")
	switch {
	case never+only > 1:
		return text
	case strings.EqualFold(subject, " nothing"):
		return condition + "never " + verb + rest
	case never > 0:
		verb = "never " + verb
	case only > 0:
		verb += " only"
	}
	return condition + verb + subject + rest
}
