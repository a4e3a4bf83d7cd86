package schedule

import (
	_ "embed" // english.txt
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/model/words"
)

// phraseWord is one word of a schedule in English, in one form for all its spellings.
type phraseWord struct {
	kind byte
	text string // as it was found; of a keyword its one form
	n    int    // of a time: minutes since midnight; of a weekday: 0 is Monday; of a month: 1 is January
	half string // of a time: the part of the day behind it
}

// Kinds of words that the code names; english.txt has all of them. A pattern of words is a regular expression over kinds.
const (
	everyWord    = 'E'
	intervalWord = 'i' // "other", and "2" in "every 2 days"
	unitWord     = 'U'
	numberWord   = 'n'
	ordinalWord  = 'o'
	countWord    = 'c' // "twice", "3 times"
	weekdayWord  = 'W'
	monthWord    = 'M'
	yearWord     = 'y' // four digits
	dateWord     = 'D' // "2030-03-01"
	clockWord    = 't' // "6 AM", "06:00", "noon"
	looseWord    = 'l' // "6", "7:30": a time of the first or of the second half of the day
	halfWord     = 'h' // "evening"
	pastWord     = 'p' // ":15", minutes past each hour
	toWord       = '-'
	fromWord     = 'f'
	betweenWord  = 'b'
	startWord    = 's'
	exceptWord   = 'X'
	commaWord    = ','
	endWord      = ';'
	fillerWord   = '_'
	nounWord     = '$'
	hedgeWord    = '!' // it changes the meaning
	unknownWord  = '?'
)

var (
	weekdayNames = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	monthNames   = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
)

//go:embed english.txt
var englishText string

// vocabulary is the content of english.txt.
type vocabulary struct {
	words       map[string][]phraseWord
	instead     map[string]string // of words that are not clear
	respellings words.Respellings
	conflicts   []conflict
}

type conflict struct {
	kinds  *regexp.Regexp
	reason string
}

var anyKinds = strings.NewReplacer("<g>", "[_aY]*", "<j>", "[,&+;]")

var english = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{make(map[string][]phraseWord), make(map[string]string), nil, nil}
	for _, noun := range words.Nouns {
		v.add(nounWord, 0, strings.Fields(noun)...)
	}
	for _, line := range words.Lines(englishText) {
		fields := strings.Fields(line)
		spellings, instead, _ := strings.Cut(line, ": ")
		pattern, text, several := strings.Cut(line, "=>")
		switch {
		case several:
			v.respellings.Add(`(?:\b|^)(?:`+strings.TrimSuffix(pattern, " ")+`)(?:\b|$)`, strings.TrimSpace(text))
		case fields[0] == "~":
			kinds := strings.Join(strings.Fields(anyKinds.Replace(instead)), "|")
			v.conflicts = append(v.conflicts, conflict{regexp.MustCompile(kinds), spellings[2:]})
		case fields[0] == "?":
			for _, word := range strings.Fields(spellings)[1:] {
				v.instead[word] = strings.TrimSpace(instead)
			}
		case fields[0] == "=":
			v.words[fields[1]] = slices.Concat(v.words["every"], v.words[fields[2]])
		default:
			v.add(fields[0][0], atoi(fields[1]), fields[2:]...)
		}
	}
	delete(v.words, "second") // an ordinal, which is a unit only at the end
	for name, first := range map[string]int{"weekday": 0, "weekend": 5} {
		v.words[name] = []phraseWord{{kind: weekdayWord, text: name, n: first}, {kind: toWord, text: "to"}, {kind: weekdayWord, text: name, n: min(first+4, 6)}}
		v.words[name+"s"] = v.words[name]
	}
	return v
})

func (v *vocabulary) add(kind byte, n int, names ...string) {
	for _, name := range names {
		v.words[name] = []phraseWord{{kind: kind, text: names[0], n: n}}
	}
}

var (
	spelledLength = regexp.MustCompile(`\bevery (\d+(?:\.\d+)?) ?(hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?:(?: and | )?(\d+) ?(minutes?|mins?|m|seconds?|secs?|s))?\b`)
	spelledPast   = regexp.MustCompile(`\b(?:(?:every|each|a) )?(quarter|half|\d\d?)( minutes?)? (past|after|to|before) (\d\d?|noon|midnight)\b( ?[ap]\.?m\b)?`)
	// sharedPast may hold for each of a list: "5 and 10 past 6", "half past 6 and 7".
	sharedPast  = regexp.MustCompile(`\b\d\d?(?:,? and|,) \d\d?(?: minutes)? (?:past|after|to|before) (?:\d|noon|midnight)|\b(?:quarter|half|\d\d? minutes|\d\d?) (?:past|after|to|before) (?:\d\d?|noon|midnight)(?:,? and|,) \d\d?(?:,| and| ?[ap]\.?m|$)`)
	tensAndOnes = regexp.MustCompile(`\b(twenty|thirty|forty|fifty) (one|two|three|four|five|six|seven|eight|nine|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)\b`)
	inMinutes   = strings.NewReplacer("quarter", "15 minutes", "half past", "30 past", "noon", "12", "midnight", "00")
)

// respell returns a text in lower case and in one spelling.
func respell(text string) string {
	fields := strings.Fields(tensAndOnes.ReplaceAllString(strings.ToLower(text), "$1-$2"))
	for i, field := range fields {
		word := strings.TrimRight(field, ",.;:")
		ten, one, both := strings.Cut(word, "-") // "twenty-five"
		n, ok := words.Number(ten)
		unit, okUnit := words.Number(one)
		if ok && okUnit == both && word != "a" && word != "an" && !beginsWithDigit(word) && (!both || n >= 20 && unit < 10) {
			fields[i] = strconv.Itoa(n+unit) + field[len(word):]
		}
	}
	text = english().respellings.Apply(strings.Join(fields, " "))
	if !sharedPast.MatchString(text) {
		text = spelledPast.ReplaceAllStringFunc(text, respellPast)
	}
	text = strings.NewReplacer("quarter past", "15 past", "half past", "30 past").Replace(text)
	return spelledLength.ReplaceAllStringFunc(text, respellLength)
}

// respellPast writes "quarter past 6" as "at 6:15" and "10 minutes to 7" as "at 6:50". "5 to 7" may be a range, and
// "every 10 minutes to 7" is a pace.
func respellPast(past string) string {
	parts := spelledPast.FindStringSubmatch(inMinutes.Replace(past))
	if parts == nil || past[0] == 'e' || parts[3] != "past" && parts[2] == "" || atoi(parts[1]) > 59 || atoi(parts[4]) > 23 {
		return past
	}
	minute := atoi(parts[4])*60 + atoi(parts[1])
	if parts[3] == "to" || parts[3] == "before" {
		switch minute -= 2 * atoi(parts[1]); {
		case parts[4][0] == '0': // "quarter to 00"
			minute = (minute + dayMinutes) % dayMinutes
		case minute < 60: // "quarter to 1"
			minute += dayMinutes / 2
		case atoi(parts[4]) == 12: // "quarter to 12 AM" is before midnight
			parts[5] = strings.NewReplacer("a", "p", "p", "a").Replace(parts[5])
		}
	}
	return fmt.Sprintf("at %d:%02d%s", minute/60, minute%60, parts[5])
}

// respellLength writes "every 1h30m" and "every 1.5 hours" as "every 90 minutes".
func respellLength(every string) string {
	parts := spelledLength.FindStringSubmatch(every)
	length, err := words.ParseDuration(strings.TrimPrefix(every, "every "))
	if err == nil && length >= time.Second && (parts[3] != "" || len(parts[2]) == 1 || !strings.Contains(every, parts[1]+" ") || strings.Contains(parts[1], ".")) {
		for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
			if length%unit == 0 {
				return fmt.Sprintf("every %d %s", length/unit, []string{"hours", "minutes", "seconds"}[i])
			}
		}
	}
	return every
}

func atoi(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

func beginsWithDigit(text string) bool { return text[0] >= '0' && text[0] <= '9' }
