package schedule

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

type phraseReader struct {
	words  []phraseWord
	halves bool // some time has AM or PM
	bare   bool // some time is only a number above twelve
	nights bool // a time of a night that began the day before
	halved bool // some time is said with its half of the day
	falls  bool // a time is earlier than the one before it
	late   bool // some time is said to be of the second half of the day
	plain  bool // some time is said without its half of the day
	reason string
}

const maxPhrase = 64

var (
	phraseFields = regexp.MustCompile(`\d{4}-\d\d-\d\d(?:t[\d:]+)?|:\d+|\d[\w:.]*(?: ?[ap]\.?m\b\.?)?|[a-z][a-z']*(?:-[a-z]+)*\.?|\S`)
	clockField   = regexp.MustCompile(`^(\d{1,2})(?:[:.h](\d\d))?h? ?([ap]m)?$`)
)

func (r *phraseReader) refuse(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
}

// refuseIf refuses the phrase if something is wrong.
func (r *phraseReader) refuseIf(wrong bool, reason string) {
	if wrong {
		r.refuse(reason)
	}
}

// readWords cuts a text that respell wrote into words.
func readWords(text string) (r phraseReader) {
	for _, field := range phraseFields.FindAllString(text, -1) {
		r.read(field)
	}
	if len(r.words) > maxPhrase {
		r.refuse("more than " + strconv.Itoa(maxPhrase) + " words")
		r.words = nil
	}
	if last := len(r.words) - 1; last >= 0 && r.words[last].text == "second" {
		r.words[last].kind = unitWord
	}
	for _, conflict := range english().conflicts {
		r.refuseIf(conflict.kinds.MatchString(kindsOf(r.words)), conflict.reason)
	}
	for _, rewriting := range rewritings {
		r.words = rewriting.apply(r.words)
	}
	r.cutAsked()
	return r
}

func (r *phraseReader) read(field string) {
	stop := len(field) > 1 && strings.HasSuffix(field, ".")
	if stop {
		field = strings.TrimSuffix(field, ".")
	}
	if stop && len(field) > 4 && !beginsWithDigit(field) { // no abbreviation
		defer r.add(endWord, ";", 0)
	}
	known, isWord := english().words[field]
	ordinal, isOrdinal := words.Ordinal(field)
	_, dateError := time.Parse(time.DateOnly, field)
	left, right, hyphen := strings.Cut(field, "-")
	switch {
	case isWord:
		r.words = append(r.words, known...)
	case isOrdinal: // "second" too: it is a unit only at the end
		r.add(ordinalWord, field, ordinal)
	case dateError == nil:
		r.add(dateWord, field, 0)
	case field[0] == ':' && atoi(field[1:]) < 60:
		r.add(pastWord, field, atoi(field[1:]))
	case beginsWithDigit(field):
		r.readNumber(field)
	case hyphen:
		r.read(left)
		r.read("-")
		r.read(right)
	case strings.HasSuffix(field, "ly"), english().instead[field] != "": // "roughly"
		r.add(hedgeWord, field, 0)
	default:
		r.add(unknownWord, field, 0)
	}
}

func (r *phraseReader) add(kind byte, text string, n int) {
	r.words = append(r.words, phraseWord{kind: kind, text: text, n: n})
}

// readNumber reads a field that begins with a digit.
func (r *phraseReader) readNumber(field string) {
	field = strings.Replace(field, ".m", "m", 1)
	digits := field[:len(field)-len(strings.TrimLeft(field, "0123456789"))]
	n, isNumber := words.Digits(digits)
	clock := clockField.FindStringSubmatch(field)
	switch {
	case isNumber && slices.Contains([]string{"st", "nd", "rd", "th"}, field[len(digits):]): // 22th too
		r.add(ordinalWord, field, n)
	case isNumber && digits == field && len(field) == 4:
		r.add(yearWord, field, n)
	case isNumber && digits == field:
		r.add(numberWord, field, n)
	case strings.Trim(field, "0123456789") == "":
		r.refuse(document.Found(field) + " is too much")
	case clock == nil:
		r.refuse(document.Found(field) + " is no time of day")
	default:
		r.addClock(field, clock[1], clock[2], clock[3])
	}
}

func (r *phraseReader) addClock(text, hour, minute, half string) {
	h, m, kind := atoi(hour), atoi(minute), looseWord
	if half == "" && (h == 0 || h > 12 || hour[0] == '0') {
		kind = clockWord
	}
	r.refuseIf(h > 23 || m > 59 || half != "" && (h < 1 || h > 12), document.Found(text)+" is no time of day")
	if half != "" {
		kind, r.halves = clockWord, true
		h %= 12
		if half == "pm" {
			h += 12
		}
	}
	r.words = append(r.words, phraseWord{byte(kind), text, h*60 + m, half})
}

// A rewriting replaces each run of words that fits the first group of a pattern of kinds.
type rewriting struct {
	pattern *regexp.Regexp
	with    func(run []phraseWord) []phraseWord
}

var rewritings = []rewriting{
	{regexp.MustCompile(`(Y)`), func([]phraseWord) []phraseWord { return []phraseWord{{kind: fillerWord, text: "only"}} }},
	{regexp.MustCompile(`([()])`), func([]phraseWord) []phraseWord { return []phraseWord{{kind: commaWord, text: ","}} }},
	{regexp.MustCompile(`(A)[_a]*[W$?]`), func([]phraseWord) []phraseWord { return []phraseWord{{kind: everyWord, text: "every"}} }},
	{regexp.MustCompile(`(nx)`), func(run []phraseWord) []phraseWord { // "3 times"
		return []phraseWord{{kind: countWord, text: run[0].text + " times", n: run[0].n}}
	}},
	{regexp.MustCompile(`E([no])U`), func(run []phraseWord) []phraseWord { // "every second month", but not "every 2nd of the month"
		if run[0].kind == ordinalWord && run[0].n < 2 {
			return run
		}
		return []phraseWord{{kind: intervalWord, text: run[0].text, n: run[0].n}}
	}},
	{regexp.MustCompile(`E(h)`), func(run []phraseWord) []phraseWord { // "every evening"
		return []phraseWord{{kind: unitWord, text: "day"}, run[0]}
	}},
	{regexp.MustCompile(`([no][_a]*M[_,]*y|M[_a]*[no][_,]*y)`), yearDate},
	{regexp.MustCompile(`(?:[@_]|^)(U(?:n[,&+;_-]*)*n)`), func(run []phraseWord) []phraseWord { // "at minutes 5 and 35", "on days 1 and 15"
		kind := map[string]byte{"minute": pastWord, "day": ordinalWord}[run[0].text]
		if kind == 0 {
			return run
		}
		return numbersAs(kind, run)
	}},
	{regexp.MustCompile(`((?:n[,&+;_]*)*nU?[PB](?:[_a]*U)?)`), func(run []phraseWord) []phraseWord { // "5 and 35 minutes past the hour"
		for _, word := range run {
			if word.kind == unitWord && word.text != "minute" && word.text != "hour" {
				return run
			}
		}
		return numbersAs(pastWord, run)
	}},
}

func (r rewriting) apply(words []phraseWord) (all []phraseWord) {
	last := 0
	for _, found := range r.pattern.FindAllStringSubmatchIndex(kindsOf(words), -1) {
		all = append(append(all, words[last:found[2]]...), r.with(words[found[2]:found[3]])...)
		last = found[3]
	}
	return append(all, words[last:]...)
}

func kindsOf(words []phraseWord) string {
	kinds := make([]byte, len(words))
	for i, word := range words {
		kinds[i] = word.kind
	}
	return string(kinds)
}

// numbersAs gives the numbers of a run another kind. Minutes before the hour are counted from the hour before.
func numbersAs(kind byte, run []phraseWord) (all []phraseWord) {
	before := strings.Contains(kindsOf(run), "B")
	for _, word := range run {
		switch word.kind {
		case numberWord:
			if before {
				word.n = 60 - word.n
			}
			all = append(all, phraseWord{kind: kind, text: word.text, n: word.n})
		case toWord:
			all = append(all, word)
		}
	}
	return all
}

func yearDate(run []phraseWord) []phraseWord {
	part := make(map[byte]int)
	for _, word := range run {
		part[word.kind] = word.n
	}
	date := fmt.Sprintf("%04d-%02d-%02d", part[yearWord], part[monthWord], part[numberWord]+part[ordinalWord])
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		return run
	}
	return []phraseWord{{kind: dateWord, text: date}}
}

// readTimes takes a number for a time of day behind "at", "from" or "between", beside a time or before a part of the day,
// but not before a unit or a month. It leaves out the words that say nothing more.
func (r *phraseReader) readTimes() {
	at, before := false, byte(0)
	read := r.words
	r.words = nil
	for i, word := range read {
		next := strings.TrimLeft(kindsOf(read[i+1:]), "_a") + "."
		after := strings.TrimLeft(next[1:], "_a") + "."
		counts := strings.ContainsAny(next[:1], "UMx")
		ranges := next[0] == toWord && strings.ContainsAny(after[:1], "ntl") && !strings.ContainsAny(after[1:2], "UM")
		switch {
		case word.kind == numberWord && !counts && (at || (ranges || next[0] == halfWord && word.n < 24) && !strings.ContainsAny(string(before), "EMi")):
			if at = true; word.n > 12 && word.n < 24 {
				r.bare = true
			}
			r.addClock(word.text, word.text, "", "")
		case word.kind == toWord && word.text == "-" && !sameKind(before, next[0]): // a dash
		case strings.IndexByte("@_a,&+;", word.kind) < 0:
			r.words = append(r.words, word)
		}
		at = strings.IndexByte("@fbstl", word.kind) >= 0 || at && (strings.IndexByte(",&+;-h", word.kind) >= 0 || word.kind == numberWord && !counts)
		if strings.IndexByte("_a,&+;", word.kind) < 0 {
			before = word.kind
		}
	}
	r.settle()
	r.refuseIf(r.halves && r.bare, "AM or PM is needed at each time or at none")
}

func sameKind(before, next byte) bool {
	return before == next || strings.IndexByte("tln", before) >= 0 && strings.IndexByte("tln", next) >= 0
}
