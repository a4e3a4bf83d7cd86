package english

import (
	"math"
	"slices"
	"strings"
	"sync"
)

// Bounds of what is compared, so that a hostile sentence costs little.
const (
	maxWords     = 25
	maxWordRunes = 25
)

// examples are one sentence of each form, and those of the retry list for each of the first ordinals.
var examples = sync.OnceValue(func() []string {
	var all []string
	for _, f := range slices.Concat(settings, retrying, errorClasses, actions) {
		all = append(all, f.example)
	}
	for _, ordinal := range firsts {
		all = append(all, "On the "+ordinal+" failure, retry immediately", "On the "+ordinal+" failure, retry after 1 minute")
	}
	return all
})

// nearest returns the example that is the fewest edits of words away from a sentence.
func nearest(text string) string {
	best, least := "", math.Inf(1)
	words := wordsOf(text)
	for _, example := range examples() {
		if distance := edits(words, wordsOf(example), wordChange); distance < least {
			best, least = example, distance
		}
	}
	return strings.ReplaceAll(best, `"`, `'`)
}

// wordsOf cuts a sentence into words without case and marks.
func wordsOf(text string) []string {
	words := strings.Fields(strings.ToLower(text[:min(len(text), maxWords*maxWordRunes)]))
	for i, word := range words {
		words[i] = strings.Trim(word, ",.:;!`'\"")
	}
	return words[:min(len(words), maxWords)]
}

// wordChange is the cost of taking one word for another, from 0 to 1. One number is as good as another.
func wordChange(a, b string) float64 {
	if a == b || isNumber(a) && isNumber(b) {
		return 0
	}
	ra, rb := shortRunes(a), shortRunes(b)
	return edits(ra, rb, runeChange) / float64(max(len(ra), len(rb), 1))
}

func isNumber(word string) bool {
	_, written := cardinals[word]
	return written || word != "" && strings.Trim(word, "0123456789.") == ""
}

func shortRunes(word string) []rune {
	runes := []rune(word)
	return runes[:min(len(runes), maxWordRunes)]
}

func runeChange(a, b rune) float64 {
	if a == b {
		return 0
	}
	return 1
}

// edits is the edit distance of two sequences, where change is the cost of taking one element for another and 1 that of
// leaving one out.
func edits[T any](a, b []T, change func(T, T) float64) float64 {
	row := make([]float64, len(b)+1)
	for j := range row {
		row[j] = float64(j)
	}
	for _, x := range a {
		diagonal := row[0]
		row[0]++
		for j, y := range b {
			cost := min(row[j+1]+1, row[j]+1, diagonal+change(x, y))
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
