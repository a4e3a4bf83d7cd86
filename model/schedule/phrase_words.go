package schedule

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
	pastWord                     // ":15", minutes past each hour
	weekdayWord                  // "Monday"
	monthWord                    // "March"
	dateWord                     // "2030-03-01"
	countWord                    // "twice", "3 times"
	intervalWord                 // "other" and "2", as in "every 2 days"
)

var fillers = strings.Fields("refresh refreshes refreshed on the of in per a an and only o'clock")

// unclear are words that people use in different ways, or that name no time, with what to write instead.
var unclear = map[string]string{
	"bi": "every 2 weeks, or twice per week on Monday and Friday", "biweekly": "every 2 weeks, or twice per week on Monday and Friday", "bimonthly": "every 2 months, or twice per month on the 1st and 15th",
	"biannually": "every 2 years, or twice per year on January 1 and July 1", "or": "say one of them", "morning": "a time such as every day at 8:00", "nightly": "a time such as every day at 2:00",
	"night": "a time such as every day at 2:00", "evening": "a time such as every day at 18:00", "afternoon": "a time such as every day at 14:00",
	"tomorrow": "a date such as 2030-03-01", "today": "a date such as 2030-03-01", "now": "a date such as 2030-03-01", "next": "a date such as 2030-03-01",
	"est": "a city such as New York time", "pst": "a city such as Los Angeles time", "cet": "a city such as Berlin time", "time": "a city of the zone database, such as Berlin time",
	"holidays": "the days, or a calendar of the policy (closed)",
}

type phraseReader struct {
	fields  []string
	words   []phraseWord
	afterAt bool // a bare number is a time of day
	halves  bool // some time has AM or PM
	bare    bool // some time is only a number
	reason  string
}

const maxPhrase = 64

const monthPattern = `(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*`

// respellings write what takes several words, or has several spellings, in one way. Each is tried where its first text stands.
var respellings = sync.OnceValue(func() (all []respelling) {
	const time, moment = `((?:1[01]|[1-9])(?::\d\d)?)`, `(\d{1,2}(?::\d\d)? ?[ap]m)`
	list := []string{
		" - ", ` - `, `-`, "@", `@`, ` at `, "everyday", `\beveryday\b`, `every day`, " days ", `\b(?:7|seven) days (?:a|per) week\b`, `every day`,
		"day of", `\b(?:every|each) day of the (?:week|year)\b`, `every day`, "one time", `\bone time\b`, `once`, "day", `\b(?:working|business|week)[ -]days?\b`, `weekday`,
		"morning", `\b` + time + `(?: o'clock)? in the morning\b`, `$1 am`, "morning", `\b(?:every|each) morning at ` + time + `(?: ?am)?( |,|$)`, `every day at $1 am$2`,
		"morning", `(day)s? mornings? at ` + time + `(?: ?am)?( |,|$)`, `$1 at $2 am$3`, "evening", `(day)s? evenings? at ((?:1[01]|[5-9])(?::\d\d)?)(?: ?pm)?( |,|$)`, `$1 at $2 pm$3`,
		"evening", `\b((?:1[01]|[5-9])(?::\d\d)?)(?: o'clock)? in the evening\b`, `$1 pm`, "afternoon", `\b([1-6](?::\d\d)?)(?: o'clock)? in the afternoon\b`, `$1 pm`,
		"evening", `\b(?:every|each) evening at ((?:1[01]|[5-9])(?::\d\d)?)(?: ?pm)?( |,|$)`, `every day at $1 pm$2`,
		"night", `\b(?:nightly|(?:every|each) night) at ` + moment + `\b`, `every day at $1`,
		"", `\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? ` + monthPattern + `,? (\d{4})\b`, `date $3 $2 $1`, "", `\b` + monthPattern + ` (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})\b`, `date $3 $1 $2`,
		"past", `\bhalf past (\d{1,2})\b`, `$1:30`, "past", `\bquarter past\b`, `15 past`, "past", `\bhalf past\b`, `30 past`,
		"past", `\b(\d\d?)(?: minutes?)? past ((?:every|each) hour)\b`, `:$1 $2`, "past", `\b(\d\d?)(?: minutes?)? past(?: the hour)?\b`, `:$1`,
		"on the", `\bon the hour\b`, `:00`, "on the", `\bon the half[ -]hour\b`, `:30`, "at ", `\bat (\d{1,2})\.?(\d\d)( |,|$)`, `at $1:$2$3`,
		"half", `\b(?:half[ -]hourly|(?:every|each) half(?: an)? hour)\b`, `every 30 minutes`, "quarter", `\b(every|each) quarter(?: of an)? hour\b`, `every 15 minutes`,
		"hourly", `\b(\d+)[ -]hourly\b`, `every $1 hours`, "fortnight", `\b(?:fortnightly|(?:every|each) fortnight)\b`, `every 2 weeks`, "thrice", `\bthrice\b`, `3 times`,
		"exc", `\b(?:except for|excluding)\b`, `except`, "but", `\bbut not\b`, `except`, "but", `\bbut ((?:mon|tue|wed|thu|fri|sat|sun|week)[a-z]*)\b`, `except $1`, "not", `\bnot\b`, `except`,
		"ing", `\b(?:starting|beginning)(?: from)?\b`, `starting`, "as of", `\bas of\b`, `starting`,
	}
	for entry := range slices.Chunk(list, 3) {
		all = append(all, respelling{entry[0], regexp.MustCompile(entry[1]), entry[2]})
	}
	return all
})

type respelling struct {
	where   string
	pattern *regexp.Regexp
	text    string
}

var spelledDate = regexp.MustCompile(`date (\d{4}) ([a-z]{3})[a-z]* (\d{1,2})\b`)

// respell returns a text in lower case and in one spelling. A date becomes "2030-03-01", for the reader of words to check.
func respell(text string) string {
	text = strings.ToLower(text)
	for _, r := range respellings() {
		if strings.Contains(text, r.where) {
			text = r.pattern.ReplaceAllString(text, r.text)
		}
	}
	text = spelledDate.ReplaceAllStringFunc(text, func(date string) string {
		parts := strings.Fields(date)
		return fmt.Sprintf("%s-%02d-%02d", parts[1], phraseWords[parts[2][:3]][0].n, atoi(parts[3]))
	})
	return strings.TrimSpace(text)
}

func atoi(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

func readWords(text string) (read []phraseWord, reason string) {
	var r phraseReader
	for _, field := range words.Cut(strings.ReplaceAll(text, ": ", " ")) {
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
	known, isWord := phraseWords[field]
	ordinal, isOrdinal := words.Ordinal(field) // "second" too: it is a unit only where no day follows
	number, isNumber := words.Number(field)
	_, dateError := time.Parse(time.DateOnly, field)
	left, right, hyphen := strings.Cut(field, "-")
	switch minutes, past := strings.CutPrefix(field, ":"); {
	case field == "at", field == "from", field == "between":
		r.afterAt = true
		r.add(known...)
	case field == "and":
	case past && len(minutes) <= 2 && validMinute(minutes):
		r.add(phraseWord{pastWord, field, atoi(minutes)})
	case dateError == nil && field >= "1970" && field < "2201":
		r.add(phraseWord{dateWord, field, 0})
	case strings.Count(field, "/") > 0:
		r.fields = append(strings.Fields(strings.ReplaceAll(field, "/", " ")), r.fields...)
	case hyphen && !isOrdinal && left != "" && right != "" && !strings.Contains(right, "-"):
		r.fields = append([]string{left, "to", right}, r.fields...)
	case beginsWithDigit(field):
		r.readNumber(field)
	case field == "to" || isWord && known[0].text == "to":
		r.add(known...)
	case slices.Contains(fillers, field):
		r.afterAt = false
	case isOrdinal:
		r.afterAt = false
		r.add(phraseWord{ordinalWord, field, ordinal})
	case isNumber:
		r.afterAt = false
		r.add(phraseWord{numberWord, field, number})
	case field == "times" && len(r.words) > 0 && r.words[len(r.words)-1].kind == numberWord && r.words[len(r.words)-1].n > 0:
		last := &r.words[len(r.words)-1]
		*last = phraseWord{countWord, last.text + " times", last.n}
	case isWord:
		r.afterAt = false
		r.add(known...)
	default:
		r.reason = document.Found(field) + " is not known"
		if instead := unclear[field]; instead != "" {
			r.reason = document.Found(field) + " could mean more than one thing; write " + instead
		}
	}
}

func validMinute(text string) bool {
	n, ok := words.Digits(text)
	return ok && n < 60
}

// readNumber reads a field that begins with a digit. Before a unit or a month it is no time of day.
func (r *phraseReader) readNumber(field string) {
	digits := len(field) - len(strings.TrimLeft(field, "0123456789"))
	n, ok := words.Digits(field[:digits])
	if !ok {
		r.reason = document.Found(field) + " is too much"
		return
	}
	counts := len(r.fields) > 0 && (isUnit(r.fields[0]) || len(phraseWords[r.fields[0]]) > 0 && phraseWords[r.fields[0]][0].kind == monthWord)
	switch rest := strings.TrimSpace(field[digits:]); {
	case rest == "st", rest == "nd", rest == "rd", rest == "th": // 22th too
		r.add(phraseWord{ordinalWord, field, n})
	case rest != "" || r.afterAt && !counts:
		r.bare = r.bare || rest == ""
		minute := 0
		if after, colon := strings.CutPrefix(rest, ":"); colon {
			length := min(2, len(after))
			ok = length == 2 && validMinute(after[:length])
			minute, rest = atoi(after[:length]), strings.TrimSpace(after[length:])
		}
		if isHalf(rest) {
			r.halves = true
			ok = ok && n >= 1 && n <= 12
			n %= 12
			if rest == "pm" {
				n += 12
			}
			rest = ""
		}
		if !ok || rest != "" || n > 23 {
			r.reason = document.Found(field) + " is no time of day"
			return
		}
		r.add(phraseWord{clockWord, field, n*60 + minute})
	default:
		r.add(phraseWord{numberWord, field, n})
	}
}

// add appends words. A number right between "every" and a unit is an interval: "every second month", but not "every 2nd of the month".
func (r *phraseReader) add(read ...phraseWord) {
	if len(read) == 0 {
		return
	}
	kind, last := read[0].kind, len(r.words)-1
	if (kind == numberWord || kind == ordinalWord && read[0].n > 1) && last >= 0 && r.words[last].text == "every" && len(r.fields) > 0 && isUnit(r.fields[0]) {
		read = []phraseWord{{intervalWord, read[0].text, read[0].n}}
	}
	r.words = append(r.words, read...)
}

func isUnit(field string) bool {
	known := phraseWords[field]
	return field == "second" || len(known) == 1 && slices.Contains(phraseUnits, known[0].text)
}

var phraseUnits = []string{"second", "minute", "hour", "day", "week", "month", "quarter", "year"}

var phraseWords = func() map[string][]phraseWord {
	known := map[string][]phraseWord{
		"noon": {{clockWord, "noon", 12 * 60}}, "midday": {{clockWord, "midday", 12 * 60}}, "midnight": {{clockWord, "midnight", 0}},
		"other": {{intervalWord, "other", 2}}, "once": {{countWord, "once", 1}}, "twice": {{countWord, "twice", 2}}, "last": {{ordinalWord, "last", -1}},
	}
	every := phraseWord{plainWord, "every", 0}
	add := func(kind wordKind, n int, names ...string) {
		for _, name := range names {
			known[name] = []phraseWord{{kind, names[0], n}}
		}
	}
	for i, name := range weekdayNames {
		lower := strings.ToLower(name)
		add(weekdayWord, i, lower, lower+"s", lower[:3], lower[:4])
	}
	add(weekdayWord, 3, "thursday", "thur", "thurs")
	for i, name := range monthNames {
		lower := strings.ToLower(name)
		add(monthWord, i+1, lower, lower[:3])
	}
	add(monthWord, 9, "september", "sept")
	add(plainWord, 0, "every", "each")
	add(plainWord, 0, "to", "until", "till", "through", "thru")
	add(plainWord, 0, "from")
	add(plainWord, 0, "between")
	add(plainWord, 0, "starting")
	add(plainWord, 0, "except")
	add(plainWord, 0, "weekday", "weekdays", "workday", "workdays")
	add(plainWord, 0, "weekend", "weekends")
	for unit, adverb := range map[string]string{"second": "secondly", "minute": "minutely", "hour": "hourly", "day": "daily",
		"week": "weekly", "month": "monthly", "quarter": "quarterly", "year": "yearly"} {
		add(plainWord, 0, unit, unit+"s")
		known[adverb] = []phraseWord{every, {plainWord, unit, 0}}
	}
	add(plainWord, 0, "second", "sec", "secs", "seconds")
	add(plainWord, 0, "minute", "min", "mins", "minutes")
	add(plainWord, 0, "hour", "hr", "hrs", "hours")
	delete(known, "second") // an ordinal, which the parser takes for a unit at the end
	known["annually"] = known["yearly"]
	return known
}()

var (
	weekdayNames = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	monthNames   = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
)
