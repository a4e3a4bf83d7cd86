package words

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

var upToTwenty = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen " +
	"sixteen seventeen eighteen nineteen twenty")

var tens = strings.Fields("twenty thirty forty fifty sixty seventy eighty ninety")

// Firsts are the ordinals from first to twentieth: those that FormatOrdinal writes as words.
var Firsts = strings.Fields("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth " +
	"fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth")

var numbers = func() map[string]int {
	all := map[string]int{"a": 1, "an": 1}
	for i, word := range tens {
		all[word] = 10 * (i + 2)
	}
	for n, word := range upToTwenty {
		all[word] = n
	}
	return all
}()

// ordinals are the words for 1 to 99: "first", "twenty-first", "ninetieth".
var ordinals = func() map[string]int {
	all := make(map[string]int)
	for i, word := range tens {
		ten := 10 * (i + 2)
		all[strings.TrimSuffix(word, "y")+"ieth"] = ten
		for one := 1; one <= 9; one++ {
			all[word+"-"+Firsts[one-1]] = ten + one
		}
	}
	for i, word := range Firsts {
		all[word] = i + 1
	}
	return all
}()

// NumberPattern and OrdinalPattern match, as alternatives of a regular expression, the words that Number and Ordinal read.
var (
	NumberPattern  = alternatives(numbers)
	OrdinalPattern = strings.ReplaceAll(alternatives(ordinals), "-", "[- ]")
)

// alternatives joins words, longer ones first, because the first alternative that fits is taken.
func alternatives(words map[string]int) string {
	sorted := slices.SortedFunc(maps.Keys(words), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	return strings.Join(sorted, "|")
}

// Number reads what Digits reads, or a word in lower case: "zero" to "twenty", "thirty" to "ninety", "a" and "an".
func Number(word string) (n int, ok bool) {
	if n, ok = numbers[word]; ok {
		return n, true
	}
	return Digits(word)
}

// Digits reads a whole number of at most seven digits, without a sign.
func Digits(text string) (n int, ok bool) {
	if text == "" || len(text) > 7 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// Ordinal reads "second", "twenty-first", "Twenty first" or "21st"; not "22st", and nothing below 1.
func Ordinal(text string) (n int, ok bool) {
	text = strings.ReplaceAll(strings.ToLower(text), " ", "-")
	if n, ok = ordinals[text]; ok {
		return n, true
	}
	n, err := strconv.Atoi(strings.TrimRight(text, "stndrh"))
	return n, err == nil && n > 0 && text == ShortOrdinal(n)
}

// FormatOrdinal is the inverse of Ordinal: a word up to "twentieth", then "21st".
func FormatOrdinal(n int) string {
	if n >= 1 && n <= len(Firsts) {
		return Firsts[n-1]
	}
	return ShortOrdinal(n)
}

// ShortOrdinal writes "1st", "22nd", "113th".
func ShortOrdinal(n int) string {
	ending := "th"
	if n/10%10 != 1 && n%10 >= 1 && n%10 <= 3 {
		ending = []string{"st", "nd", "rd"}[n%10-1]
	}
	return strconv.Itoa(n) + ending
}

// Count says how many there are of what has these two names, as in 1 retry or 2 retries.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// List writes "a", "a and b", "a, b and c".
func List(items []string) string {
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:last], ", ") + " and " + items[last]
}
