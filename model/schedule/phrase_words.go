package schedule

import (
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// phraseWord is one word of a schedule in English, in one form for all its spellings.
type phraseWord struct {
	kind wordKind
	text string // as it was found; of a plain word its one form
	n    int    // of a clock: minutes since midnight; of a weekday: 0 is Monday; of a month: 1 is January
}

type wordKind int

const (
	plainWord    wordKind = iota // "every", "day", "weekday"
	numberWord                   // "2", "two"
	ordinalWord                  // "1st", "first", and -1 for "last"
	clockWord                    // "6 AM", "06:00", "noon"
	weekdayWord                  // "Monday"
	monthWord                    // "March"
	countWord                    // "twice"
	intervalWord                 // "other" and "2", as in "every 2 days"
)

// phraseReader turns the text of a phrase into words. A reason is why it cannot.
type phraseReader struct {
	fields  []string
	words   []phraseWord
	afterAt bool // a bare number is a time of day
	halves  bool // some time has AM or PM
	bare    bool // some time is only a number
	reason  string
}

// maxPhrase bounds a phrase, in words.
const maxPhrase = 64

// readPhrase leaves out what carries no meaning: "refresh", "at", "on", "and", "the", commas.
func readPhrase(text string) (read []phraseWord, reason string) {
	var r phraseReader
	for _, field := range words.Cut(text) {
		if last := len(r.fields) - 1; isHalf(field) && last >= 0 && beginsWithDigit(r.fields[last]) {
			r.fields[last] += " " + field
		} else {
			r.fields = append(r.fields, field)
		}
	}
	if len(r.fields) > maxPhrase {
		return nil, "more than " + strconv.Itoa(maxPhrase) + " words"
	}
	for len(r.fields) > 0 && r.reason == "" {
		r.read()
	}
	if r.reason == "" && r.halves && r.bare {
		r.reason = "AM or PM is needed at each time or at none"
	}
	return r.words, r.reason
}

func isHalf(text string) bool { return text == "am" || text == "pm" }

func beginsWithDigit(text string) bool { return text[0] >= '0' && text[0] <= '9' }

func (r *phraseReader) read() {
	field := r.fields[0]
	r.fields = r.fields[1:]
	switch field {
	case "at":
		r.afterAt = true
		return
	case "and":
		return
	}
	if beginsWithDigit(field) {
		r.readNumber(field)
		return
	}
	r.afterAt = false
	if slices.Contains(noiseWords, field) {
		return
	}
	if n, ok := words.Ordinal(field); ok { // "second" too: it is a unit only where no day follows
		r.add(phraseWord{ordinalWord, field, n})
	} else if n, ok := words.Number(field); ok {
		r.add(phraseWord{numberWord, field, n})
	} else if known, ok := phraseWords[field]; ok {
		r.add(known...)
	} else {
		r.reason = document.Found(field) + " is not known"
	}
}

// readNumber reads a field that begins with a digit.
func (r *phraseReader) readNumber(field string) {
	digits := len(field) - len(strings.TrimLeft(field, "0123456789"))
	n, ok := words.Digits(field[:digits])
	if !ok {
		r.reason = document.Found(field) + " is too much"
		return
	}
	switch rest := strings.TrimSpace(field[digits:]); {
	case rest == "st", rest == "nd", rest == "rd", rest == "th": // 22th too
		r.add(phraseWord{ordinalWord, field, n})
	case rest != "" || r.afterAt:
		r.bare = r.bare || rest == ""
		r.readClock(field, n, rest)
	default:
		r.add(phraseWord{numberWord, field, n})
	}
}

// readClock reads what follows an hour: ":30", "pm", ":30 pm" or nothing.
func (r *phraseReader) readClock(field string, hour int, rest string) {
	minute, ok := 0, true
	if after, colon := strings.CutPrefix(rest, ":"); colon {
		length := min(2, len(after))
		minute, ok = words.Digits(after[:length])
		ok, rest = ok && length == 2 && minute < 60, strings.TrimSpace(after[length:])
	}
	if isHalf(rest) {
		r.halves = true
		ok = ok && hour >= 1 && hour <= 12
		hour %= 12
		if rest == "pm" {
			hour += 12
		}
		rest = ""
	}
	if !ok || rest != "" || hour > 23 {
		r.reason = document.Found(field) + " is no time of day"
		return
	}
	r.add(phraseWord{clockWord, field, hour*60 + minute})
}

// add appends words. A number right between "every" and a unit is an interval: "every second month", but not "every 2nd of
// the month".
func (r *phraseReader) add(read ...phraseWord) {
	kind, last := read[0].kind, len(r.words)-1
	if (kind == numberWord || kind == ordinalWord && read[0].n > 1) && last >= 0 && r.words[last].text == "every" &&
		len(r.fields) > 0 && slices.Contains(phraseUnits, strings.TrimSuffix(r.fields[0], "s")) {
		read = []phraseWord{{intervalWord, read[0].text, read[0].n}}
	}
	r.words = append(r.words, read...)
}

var phraseUnits = []string{"second", "minute", "hour", "day", "week", "month", "quarter", "year"}

var noiseWords = []string{"refresh", "refreshes", "refreshed", "on", "the", "of", "in", "per", "a", "an", "o'clock"}

// phraseWords knows every word that means something, by all its spellings.
var phraseWords = func() map[string][]phraseWord {
	known := map[string][]phraseWord{
		"noon": {{clockWord, "noon", 12 * 60}}, "midday": {{clockWord, "midday", 12 * 60}}, "midnight": {{clockWord, "midnight", 0}},
		"other": {{intervalWord, "other", 2}}, "times": {{countWord, "times", 0}}, "once": {{countWord, "once", 1}},
		"twice": {{countWord, "twice", 2}}, "last": {{ordinalWord, "last", -1}},
	}
	every := phraseWord{plainWord, "every", 0}
	add := func(kind wordKind, n int, names ...string) {
		for _, name := range names {
			known[name] = []phraseWord{{kind, names[0], n}}
		}
	}
	for i, name := range weekdayNames {
		lower := strings.ToLower(name)
		add(weekdayWord, i, lower, lower+"s", lower[:3])
	}
	for i, name := range monthNames {
		lower := strings.ToLower(name)
		add(monthWord, i+1, lower, lower[:3])
	}
	add(plainWord, 0, "every", "each")
	add(plainWord, 0, "weekday", "weekdays", "workday", "workdays")
	add(plainWord, 0, "weekend", "weekends")
	for unit, adverb := range map[string]string{"second": "secondly", "minute": "minutely", "hour": "hourly", "day": "daily",
		"week": "weekly", "month": "monthly", "quarter": "quarterly", "year": "yearly"} {
		add(plainWord, 0, unit, unit+"s")
		known[adverb] = []phraseWord{every, {plainWord, unit, 0}}
	}
	known["annually"] = known["yearly"]
	return known
}()

var (
	weekdayNames = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	monthNames   = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
)
