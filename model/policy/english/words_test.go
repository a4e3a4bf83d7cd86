package english

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/words"
)

// fillers are the words that a sentence may have or not, without another meaning.
var fillers = strings.Fields("a an the this that these its it my our all each every any " + // articles
	"then finally afterwards and but please am a.m " + // joints, and "8 AM to noon"
	"error errors http unsuccessful failed final consecutive starting fixed old would next attempts immediately on at with for of " +
	strings.Join(words.Nouns, " ") + " refresh refreshes")

// fillingPhrases begin with a word that is a filler only before what follows it there.
var fillingPhrases = []string{
	"only if they are", "once if it is", "twice: after", "forever, every", "set no", "open no", "am in the time zone", "up to", "out of", "per day", "day at 6 am",
	"is disabled", "is stale", "gets disabled", "becomes stale", "has recovered", "when it recovers", "after a timeout", "after timeouts", "after networkerror", "after validationerror", "after second", "if that", "only 4 pm", "in every", "after 5 minutes", "after 10 minutes", "after 1 hour",
}

// negations are words that turn a sentence round.
var negations = strings.Fields("not never no don't without except hardly")

// wordChange is a text with one word more, or less.
type wordChange struct{ text, word, changed string }

// changes lists a text without each of its words, and with others before each of them.
func changes(text string, others func() []string) (all []wordChange) {
	for _, at := range aWord.FindAllStringIndex(text, -1) {
		if word := text[at[0]:at[1]]; !isFiller(word, text[at[0]:]) && saysMore.MatchString(word) {
			all = append(all, wordChange{text, word, text[:at[0]] + strings.TrimLeft(text[at[1]:], " ")})
		}
		for _, word := range others() {
			if !isFiller(word, word+" "+text[at[0]:]) && saysMore.MatchString(word) {
				all = append(all, wordChange{text, word, text[:at[0]] + word + " " + text[at[0]:]})
			}
		}
	}
	return all
}

var (
	aWord    = regexp.MustCompile(`\S+`)
	saysMore = regexp.MustCompile(`^[^#]*[A-Za-z]`) // no bullet, no number of a list, no mark
)

func isFiller(word, text string) bool {
	return slices.Contains(fillers, strings.ToLower(strings.Trim(word, ".,;:!`*\"“”'"))) ||
		slices.ContainsFunc(fillingPhrases, func(phrase string) bool { return strings.HasPrefix(strings.ToLower(text), phrase) })
}

// quickMeaning is readMeaning without a reason for a refusal, which takes its time.
func quickMeaning(t reporter, text string) string {
	t.Helper()
	d := readAll(text)
	if d.err != nil {
		return ""
	}
	return meaningOf(t, d.doc)
}

// check demands that a text with another word is refused, or means something else.
func (c wordChange) check(t reporter, meaning string) {
	t.Helper()
	if meaning != "" && quickMeaning(t, c.changed) == meaning {
		t.Fatalf("%q makes no difference:\n%s\n%s", c.word, c.text, c.changed)
	}
}

func TestAWordMoreOrLessChangesTheMeaningOrIsAFiller(t *testing.T) {
	var vocabulary []string
	for _, e := range corpus(t) {
		for _, word := range strings.Fields(e.text) {
			vocabulary = append(vocabulary, strings.Trim(word, ".,;:!"))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i, e := range corpus(t) {
		if i%long.Or(3, 1) != 0 {
			continue
		}
		meaning := quickMeaning(t, e.text)
		for _, c := range changes(e.text, func() []string {
			return append(negations[:2:2], negations[random.IntN(len(negations))], vocabulary[random.IntN(len(vocabulary))])
		}) {
			if meaning != "" {
				c.check(softly{t}, meaning)
			}
		}
	}
}

// softly lets a test go on after a failure.
type softly struct{ *testing.T }

func (s softly) Fatalf(format string, args ...any) {
	s.Helper()
	s.Errorf(format, args...)
}

// FuzzAWord is TestAWordMoreOrLessChangesTheMeaningOrIsAFiller with other texts and words.
func FuzzAWord(f *testing.F) {
	for _, form := range slices.Concat(sentences, actions) {
		f.Add(form.example, "not")
	}
	f.Fuzz(func(t *testing.T, text, word string) {
		if len(text) > 300 || strings.ContainsAny(text, "#`") || strings.ContainsAny(word, " \"`#“”*'") {
			t.Skip("a comment, a mark or a quote is no word")
		}
		meaning := quickMeaning(t, text)
		for _, c := range changes(text, func() []string { return []string{word} }) {
			c.check(t, meaning)
		}
	})
}
