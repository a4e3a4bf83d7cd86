package words

import "strings"

// mostChange is how much of a word may be mistyped before another one was meant.
const mostChange = 0.34

// NearestWord returns the known word that a mistyped one was most likely meant to be; empty: it is like none of them.
func NearestWord(mistyped string, known []string) string {
	best, least := "", mostChange
	for _, word := range known {
		change := wordChange(mistyped, word)
		if len(mistyped) > 2 && strings.HasPrefix(word, mistyped) { // the rest was left out
			change = min(change, mostChange-0.01)
		}
		if change < least {
			best, least = word, change
		}
	}
	return best
}
