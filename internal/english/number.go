package english

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

var ones = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen " +
	"sixteen seventeen eighteen nineteen twenty")

var tens = map[string]int{"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}

var firsts = strings.Fields("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth " +
	"fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth")

// cardinals are the numbers that may be written as words: "a" is 1.
var cardinals = func() map[string]int {
	all := map[string]int{"a": 1, "an": 1}
	for n, word := range ones {
		all[word] = n
	}
	maps.Copy(all, tens)
	return all
}()

// ordinals are the words for 1 to 99: "first", "twenty-first", "ninetieth".
var ordinals = func() map[string]int {
	all := make(map[string]int)
	for i, word := range firsts {
		all[word] = i + 1
	}
	for word, ten := range tens {
		all[strings.TrimSuffix(word, "y")+"ieth"] = ten
	}
	for word, ten := range maps.Clone(cardinals) {
		if ten < 20 || ten%10 != 0 {
			continue
		}
		for one := 1; one <= 9; one++ {
			all[word+"-"+firsts[one-1]] = ten + one
		}
	}
	return all
}()

// alternatives joins words for a pattern, longer ones first, because the first alternative that fits is taken.
func alternatives(words map[string]int) string {
	sorted := slices.SortedFunc(maps.Keys(words), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return strings.Join(sorted, "|")
}

// readOrdinal reads "second", "twenty-first" or "21st"; false: none, or "22st", or 0th.
func readOrdinal(text string) (int, bool) {
	text = strings.ReplaceAll(strings.ToLower(text), " ", "-")
	if n, found := ordinals[text]; found {
		return n, true
	}
	n, err := strconv.Atoi(strings.TrimRight(text, "stndrh"))
	return n, err == nil && n > 0 && text == numbered(n)
}

// formatOrdinal is the inverse of readOrdinal: words up to twentieth, then 21st.
func formatOrdinal(n int) string {
	if n >= 1 && n <= len(firsts) {
		return firsts[n-1]
	}
	return numbered(n)
}

func numbered(n int) string {
	ending := "th"
	if tenth := n / 10 % 10; tenth != 1 {
		switch n % 10 {
		case 1:
			ending = "st"
		case 2:
			ending = "nd"
		case 3:
			ending = "rd"
		}
	}
	return strconv.Itoa(n) + ending
}

// readDuration reads what document.ParseDuration reads, and numbers in words: "one week", "half an hour", "an hour and a half".
func readDuration(text string) (string, error) {
	lower := strings.ToLower(text)
	lower, half := strings.CutSuffix(lower, " and a half")
	words := strings.Fields(lower)
	for i, word := range words {
		if n, found := cardinals[word]; found {
			words[i] = strconv.Itoa(n)
		}
	}
	if half && len(words) > 0 {
		words[0] += ".5"
	}
	if len(words) > 1 && words[0] == "half" {
		words = append([]string{"0.5"}, words[2:]...)
	}
	length, err := document.ParseDuration(strings.Join(words, " "))
	return document.FormatDuration(length), err
}

// formatDuration renders a canonical duration in words: "1h30m" is "1 hour 30 minutes".
func formatDuration(canonical string) string {
	length, err := document.ParseDuration(canonical)
	if err != nil {
		return canonical
	}
	if length == 0 {
		return "0 seconds"
	}
	var words []string
	for _, unit := range durationUnits {
		// Weeks only when they are whole, as in the canonical form.
		if n := length / unit.length; n > 0 && (unit.name != "week" || length%unit.length == 0) {
			words = append(words, plural(int(n), unit.name))
			length -= n * unit.length
		}
	}
	return strings.Join(words, " ")
}

var durationUnits = []struct {
	name   string
	length time.Duration
}{
	{"week", 7 * 24 * time.Hour}, {"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second},
	{"millisecond", time.Millisecond},
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
