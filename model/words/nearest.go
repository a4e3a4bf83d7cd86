package words

import (
	"math"
	"slices"
	"strings"
)

// maxLength bounds the words of a sentence and the letters of a word that are compared, so that a hostile sentence costs little.
const maxLength = 25

// The costs of making a known sentence from the text. Authors rather leave words out than add some, and a sentence is
// known by its first word.
const (
	costOfAdding   = 0.3
	costOfRemoving = 1
)

// Nearest returns the known sentence that a text becomes with the fewest changes of words.
func Nearest(text string, sentences []string) string {
	found, changes := comparableWords(text), make(map[[2]string]float64)
	change := func(from, to string) float64 {
		cost, known := changes[[2]string{from, to}]
		if !known {
			cost = wordChange(from, to)
			changes[[2]string{from, to}] = cost
		}
		return cost
	}
	best, least := "", math.Inf(1)
	for _, sentence := range sentences {
		words := comparableWords(sentence)
		cost := edits(len(found), len(words), costOfRemoving, costOfAdding, func(i, j int) float64 { return change(found[i], words[j]) })
		if len(found) > 0 {
			cost += change(found[0], words[0])
		}
		if cost < least {
			best, least = sentence, cost
		}
	}
	return best
}

// Near is Nearest for a text that may be nonsense: empty unless more than a third of its words are in that sentence, but for misspelt letters.
func Near(text string, sentences []string) string {
	best := Nearest(text, sentences)
	words, known := comparableWords(text), comparableWords(best)
	shared := 0
	for _, word := range words {
		if slices.ContainsFunc(known, func(other string) bool { return wordChange(word, other) <= misspelt }) {
			shared++
		}
	}
	if 3*shared <= len(words) {
		return ""
	}
	return best
}

const misspelt = 1.0 / 3

var marks = strings.NewReplacer("a.m.", "am", "p.m.", "pm", ",", " ", "&", " ", ";", " ")

// Cut cuts a sentence into its words, in lower case. Marks that separate words or end the sentence are left out; "6 a.m." is "6 am".
func Cut(sentence string) []string {
	return strings.Fields(strings.TrimRight(marks.Replace(strings.ToLower(sentence)), " .!\t\r\n"))
}

// comparableWords cuts a sentence into words without the marks around them, and without words that every sentence may have.
func comparableWords(text string) (words []string) {
	for _, word := range Cut(text[:min(len(text), maxLength*maxLength)]) {
		if word != "and" && word != "am" && word != "pm" && len(words) < maxLength {
			words = append(words, strings.Trim(word, ".:!`'\""))
		}
	}
	return words
}

// wordChange is the cost of taking one word for another, from 0 to 1. One number or time of day is as good as another.
func wordChange(a, b string) float64 {
	if a == b || isNumber(a) && isNumber(b) {
		return 0
	}
	ra, rb := []rune(a), []rune(b)
	ra, rb = ra[:min(len(ra), maxLength)], rb[:min(len(rb), maxLength)]
	distance := edits(len(ra), len(rb), 1, 1, func(i, j int) float64 {
		if ra[i] == rb[j] {
			return 0
		}
		return 1
	})
	return distance / float64(max(len(ra), len(rb), 1))
}

func isNumber(word string) bool {
	_, written := numbers[word]
	return written || word != "" && strings.Trim(word, "0123456789.:") == ""
}

// edits is the edit distance of two sequences of at most maxLength elements.
func edits(from, to int, removing, adding float64, change func(i, j int) float64) float64 {
	var row [maxLength + 1]float64
	for j := range to + 1 {
		row[j] = float64(j) * adding
	}
	for i := range from {
		diagonal := row[0]
		row[0] += removing
		for j := range to {
			cost := min(row[j+1]+removing, row[j]+adding, diagonal+change(i, j))
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[to]
}

// maxChange is how much of a word may be mistyped.
const maxChange = 0.34

// NearestWord returns the known word that a mistyped one was most likely meant to be; empty: it is like none of them.
func NearestWord(mistyped string, known []string) string {
	best, least := "", maxChange
	for _, word := range known {
		change := wordChange(mistyped, word)
		// The rest was left out, or letters were swapped.
		if len(mistyped) > 2 && (strings.HasPrefix(word, mistyped) || letters(word) == letters(mistyped) && word[0] == mistyped[0]) {
			change = min(change, maxChange-0.01)
		}
		if change < least {
			best, least = word, change
		}
	}
	return best
}

func letters(word string) string {
	all := []byte(word)
	slices.Sort(all)
	return string(all)
}
