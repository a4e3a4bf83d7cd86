// Package words has the English that schedules and policies share: it cuts a text into words, reads and writes numbers, ordinals,
// lengths of time, lists and counts, and finds the known sentence that is nearest to an unknown one.
package words

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
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

// NumberPattern and OrdinalPattern match, as alternatives of a regular expression, the words that Number and Ordinal read, without "a" and "an".
var (
	NumberPattern  = strings.TrimSuffix(alternatives(numbers), "|an|a")
	OrdinalPattern = strings.ReplaceAll(alternatives(ordinals), "-", "[- ]")
)

// alternatives joins words, longer ones first, because the first alternative that fits is taken.
func alternatives(words map[string]int) string {
	sorted := slices.SortedFunc(maps.Keys(words), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	return strings.Join(sorted, "|")
}

// Number reads the numbers of Digits, or a word in lower case: "zero" to "twenty", "thirty" to "ninety", "a" and "an".
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

// Count renders a number of things with these two names, as in 1 retry or 2 retries.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// ListOf writes a List of items, each in the words of say.
func ListOf[T any](items []T, say func(T) string) string {
	said := make([]string, len(items))
	for i, item := range items {
		said[i] = say(item)
	}
	return List(said)
}

// List writes "a", "a and b", "a, b and c".
func List(items []string) string {
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:last], ", ") + " and " + items[last]
}

// Distance says how far an instant is from now.
func Distance(at, now time.Time) string {
	away := at.Sub(now)
	switch {
	case away.Abs() < time.Second:
		return "now"
	case away < 0:
		return Roughly(-away.Truncate(time.Second)) + " ago"
	default:
		return "in " + Roughly(away.Truncate(time.Second))
	}
}

// Roughly renders a length of time without its small parts.
func Roughly(length time.Duration) string {
	switch {
	case length >= 24*time.Hour:
		length = length.Truncate(time.Hour)
	case length >= time.Hour:
		length = length.Truncate(time.Minute)
	case length >= time.Minute:
		length = length.Truncate(time.Second)
	}
	return document.FormatDuration(length)
}

// DurationPattern matches, in a regular expression that ignores case, the durations of ParseDuration.
var DurationPattern = amountPattern + `[a-z]+(?: and a half)?(?:(?:, and |, | and | )?` + amountPattern + `(?:weeks?|days?|hours?|hrs?|minutes?|mins?|(?:milli)?seconds?|m?secs?|m?s|[wdhm])\b)*|p[\dtwdhms.]*\d[\dtwdhms.]*`

var amountPattern = `(?:\d+(?:\.\d+)? ?|(?:half an?|half one|` + NumberPattern + `|an?) )`

// ParseDuration reads the durations of document.ParseDuration, and numbers in words: "one week", "half an hour", "an hour and a half".
func ParseDuration(text string) (time.Duration, error) {
	lower, half := strings.CutSuffix(strings.ToLower(text), " and a half")
	words := strings.Fields(lower)
	for i, word := range words {
		if n, isNumber := Number(word); isNumber {
			words[i] = strconv.Itoa(n)
		}
	}
	if half && len(words) > 0 {
		words[0] += ".5"
	}
	if len(words) > 2 && words[0] == "half" && words[1] == "1" {
		words = append([]string{"0.5"}, words[2:]...)
	}
	if Thousand.MatchString(lower) {
		return 0, &document.Error{Want: "a number without a mark in it, such as 1000, or 1.5", Found: document.Found(text) + " (1.000 may be 1 or 1000)"}
	}
	return document.ParseDuration(strings.Join(words, " "))
}

// Thousand matches a number that people read in two ways, such as 1.000.
var Thousand = regexp.MustCompile(`\b[1-9]\d{0,2}\.\d{3}\b`)

// Lines returns the lines of a table of words that are neither empty nor a comment.
func Lines(table string) []string {
	return slices.DeleteFunc(strings.Split(table, "\n"), func(line string) bool { return line == "" || line[0] == '#' })
}

// Nouns are the things that may be refreshed without a name of its own, in lower case.
var Nouns = strings.Split("big tables|big table|bigtables|bigtable|models|model|tables|table|banners|banner|thumbnails|thumbnail|thumbnailer service|service|"+
	"product feeds|product feed|feeds|feed|search indexes|search index|indexes|index|reports|report|pages|page|cache|catalog|data|datasets|dataset|"+
	"files|file|images|image|imports|import|exports|export|materialized views|materialized view|views|view|dashboards|dashboard|jobs|job|tasks|task|"+
	"products|prices|price list|lists|list|catalogs|catalogue|catalogues|inventory|statistics|stock|rates|databases|database|snapshots|snapshot|caches|queries|query|"+
	"newsletters|newsletter|menus|menu|leaderboards|leaderboard|recommendations|summaries|summary|rankings|"+
	"sitemap|sites|site|content|metrics|orders|customers|pipelines|pipeline|documents|document|everything|it|them", "|")

var articles = strings.Fields("the a an this these that its my our all each every")

// NounPattern matches, as alternatives of a regular expression, one of the nouns with an article or without.
var NounPattern = `(?:(?:` + strings.Join(articles, "|") + `) )?(?:` + strings.Join(Nouns, "|") + `)`

// CutSubject cuts off an optional article with a noun, one of the names, or texts in quotes, also beside a noun. Without one of them it cuts nothing.
func CutSubject(sentence []string, names ...string) []string {
	rest, found := sentence, false
	if len(rest) > 1 && slices.Contains(articles, strings.ToLower(rest[0])) {
		rest = rest[1:]
	}
	quoted := func() {
		for len(rest) > 0 && strings.HasPrefix(rest[0], `"`) {
			rest, found = rest[1:], true
			if len(rest) > 1 && rest[0] == "and" && strings.HasPrefix(rest[1], `"`) {
				rest = rest[1:]
			}
		}
	}
	quoted()
	for _, noun := range slices.Concat(names, Nouns) {
		words := strings.Fields(noun)
		if len(words) > 0 && len(rest) >= len(words) && strings.EqualFold(strings.Trim(strings.Join(rest[:len(words)], " "), ",:"), noun) {
			rest, found = rest[len(words):], true
			break
		}
	}
	quoted()
	if !found {
		return sentence
	}
	return rest
}
