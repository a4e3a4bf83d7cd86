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
	looseWord                    // "6", "7:30": a time of the first or of the second half of the day
	halfWord                     // "evening"
	pastWord                     // ":15", minutes past each hour
	weekdayWord                  // "Monday"
	monthWord                    // "March"
	dateWord                     // "2030-03-01"
	countWord                    // "twice", "3 times"
	intervalWord                 // "other" and "2", as in "every 2 days"
)

var fillers = strings.Fields("refresh refreshes refreshed on the of in per a an and only during both")

// unclear are words that people use in different ways, or that name no time, with what to write instead.
var unclear = map[string]string{
	"bi": "every 2 weeks, or twice per week on Monday and Friday", "biweekly": "every 2 weeks, or twice per week on Monday and Friday", "bimonthly": "every 2 months, or twice per month on the 1st and 15th",
	"biannually": "every 2 years, or twice per year on January 1 and July 1", "or": "say one of them",
	"tomorrow": "a date such as 2030-03-01", "today": "a date such as 2030-03-01", "now": "a date such as 2030-03-01", "next": "a date such as 2030-03-01",
	"est": "a city such as New York time", "pst": "a city such as Los Angeles time", "cet": "a city such as Berlin time", "time": "a city of the zone database, such as Berlin time",
	"holidays": "the days, or a calendar of the policy (closed)",
}

type phraseReader struct {
	fields  []string
	words   []phraseWord
	afterAt bool // a bare number is a time of day
	halves  bool // some time has AM or PM
	bare    bool // some time is only a number above twelve
	nights  bool // a time of a night that began the day before
	late    bool // some time is said to be of the second half of the day
	plain   bool // some time is said without its half of the day
	reason  string
}

const maxPhrase = 64

const (
	monthPattern   = `(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?`
	weekdayPattern = `(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*`
)

// respellings write what takes several words, or has several spellings, in one way. Each is tried where its first text stands.
var respellings = sync.OnceValue(func() (all []respelling) {
	list := []string{
		" - ", ` - `, `-`, "@", `@`, ` at `, "(", `[()]`, `, `, "everyday", `\beveryday\b`, `every day`, "", `\b(?:each and every|(every|each) single)\b`, `every`, " days ", `\b(?:7|seven) days (?:a|per) week\b`, `every day`,
		"clock", `\b(\d{1,2}(?::\d\d)?) o['’]?clock\b`, `at $1`, "12", `\b12 (noon|midnight)\b`, `$1`, " sharp", ` sharp\b`, ``, "h", `(\d\d:?\d\d) ?(?:hours|hrs|h)\b`, `$1`,
		"h", `\bat (\d{1,2}) ?h\b`, `at $1:00`, "h", `\b(\d{1,2})h(\d\d)( |,|$)`, `at $1:$2$3`, "the ", `\b(?:in|during) the (morning|afternoon|evening|night)`, `$1`, " night", ` at nights?\b`, ` night`,
		"day of", `\b(?:every|each) day of the (?:week|year)\b`, `every day`, "1 time", `\b1 time\b`, `once`, "day", `\b(?:working|business|week)[ -]days?\b`, `weekday`,
		"weekday", `\b(weekdays?),? (?:mon|monday)(?:-| to | through )fri(?:day)?\b`, `$1`, "weekend", `\b(weekends?),? sat(?:urday)?s?(?:,| and| &) sun(?:day)?s?\b`, `$1`,
		"", `\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? ` + monthPattern + `,? (\d{4})\b`, `date $3 $2 $1`, "", `\b` + monthPattern + ` (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})\b`, `date $3 $1 $2`,
		"top of", `\b(?:at )?the top of (every|each) hour\b`, `$1 hour :00`, "weeknight", `\bweeknights?\b`, `weekday night`, "mo-fr", `\bmo-fr\b`, `mon-fri`,
		"on the", `\bon the hour\b`, `:00`, "on the", `\bon the half[ -]hour\b`, `:30`, "at ", `\bat (\d{1,2})\.?(\d\d)( |,|$)`, `at $1:$2$3`, "at ", `\bat (\d{1,2}) (15|30|45)( |,|$)`, `at $1:$2$3`,
		"x ", `\b(\d)x\b`, `$1 times`, "full hour", `\b(?:at )?(every|each) full hour\b`, `$1 hour :00`, "onward", ` onwards?\b`, ``, "as well", `,? as well as\b`, ` and`,
		"between", `\bbetween (` + weekdayPattern + `) and (` + weekdayPattern + `)`, `$1 to $2`,
		"interval", `\b(?:at|in|with) (?:an )?(?:regular )?intervals? of\b`, `every`, "once in", `\bonce in (\d)`, `every $1`, "and a half", `\bevery (\d+) and a half (hour|minute)`, `every $1.5 $2`,
		"and a half", `\b(every|each) (?:an )?(hour|minute) and a half\b`, `every 1.5 ${2}s`,
		"half", `\b(?:half[ -]hourly|(?:every|each) half(?: an)?[ -]hour)\b`, `every 30 minutes`, "quarter", `\b(every|each) quarter(?: of an)? hour\b`, `every 15 minutes`,
		"hourly", `\b(\d+)[ -]hourly\b`, `every $1 hours`, "fortnight", `\b(?:fortnightly|(?:every|each) fortnight)\b`, `every 2 weeks`, "thrice", `\bthrice\b`, `3 times`,
		"", `\b(?:around the clock|24 hours a day|24/7|all day(?: long)?)\b`, `nonstop`, "ing", `\b(?:up to and including|up to)\b`, `until`,
		"", `\b(?:except for|excluding|apart from|other than|with the exception of|but not|not|never)\b`, `except`, "but", `\bbut (` + weekdayPattern + `|week[a-z]*)\b`, `except $1`,
		"", `\b(?:starting|beginning|effective|as of)(?: as of| from)?\b`, `starting`,
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

var (
	spelledDate   = regexp.MustCompile(`date (\d{4}) ([a-z]{3})[a-z]*\.? (\d{1,2})\b`)
	spelledLength = regexp.MustCompile(`\bevery (\d+(?:\.\d+)?) ?(hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?:(?: and |, | )?(\d+) ?(minutes?|mins?|m|seconds?|secs?|s))?\b`)
	spelledPast   = regexp.MustCompile(`\b(?:a |(?:every|each) )?(quarter|half|\d\d?)( minutes?)? (past|to) (\d\d?)\b( ?[ap]\.?m\b)?`)
	spelledMinute = regexp.MustCompile(`\b(?:at|on) minutes? ((?:\d\d?(?:,? and|,)?(?: |$))+)`)
	spelledPasts  = regexp.MustCompile(`\b(?:a )?((?:(?:quarter|half|\d\d?)(?:,? and|,)? )+)(?:minutes? )?past(?: ((?:every|each) hour)| the hour)?( |,|$)`)
	pastNames     = strings.NewReplacer("quarter", ":15", "half", ":30", ",", "", "and ", "")
	aNumber       = regexp.MustCompile(`(?:^| )(\d)`)
)

// respell returns a text in lower case and in one spelling. A date becomes "2030-03-01", for the reader of words to check.
func respell(text string) string {
	fields := strings.Fields(strings.ToLower(text))
	for i, field := range fields {
		word := strings.TrimRight(field, ",.;:")
		ten, one, _ := strings.Cut(word, "-")
		if n, ok := words.Number(ten); ok && ten != "a" && ten != "an" && !beginsWithDigit(ten) {
			if unit, ok := words.Number(one); ok && n >= 20 && unit < 10 {
				n, one = n+unit, ""
			}
			if one == "" {
				fields[i] = strconv.Itoa(n) + field[len(word):]
			}
		}
	}
	text = strings.Join(fields, " ")
	for _, r := range respellings() {
		if strings.Contains(text, r.where) {
			text = r.pattern.ReplaceAllString(text, r.text)
		}
	}
	text = spelledDate.ReplaceAllStringFunc(text, func(date string) string {
		parts := strings.Fields(date)
		return fmt.Sprintf("%s-%02d-%02d", parts[1], phraseWords[parts[2][:3]][0].n, atoi(parts[3]))
	})
	text = spelledPast.ReplaceAllStringFunc(text, respellPast)
	for _, list := range []*regexp.Regexp{spelledMinute, spelledPasts} { // "at minutes 5 and 35", "5 and 35 minutes past every hour"
		text = list.ReplaceAllStringFunc(text, func(past string) string {
			parts := list.FindStringSubmatch(past)
			return aNumber.ReplaceAllString(pastNames.Replace(parts[1]), " :$1") + strings.Join(parts[2:], "")
		})
	}
	return strings.TrimSpace(spelledLength.ReplaceAllStringFunc(text, respellLength))
}

// respellPast writes "quarter past 6" as "at 6:15" and "10 minutes to 7" as "at 6:50". "5 to 7" may be a range, and
// "every 10 minutes to 7" is a pace.
func respellPast(past string) string {
	parts := spelledPast.FindStringSubmatch(strings.NewReplacer("quarter", "15 minutes", "half past", "30 past").Replace(past))
	if parts == nil || past[0] == 'e' || parts[3] == "to" && parts[2] == "" || atoi(parts[1]) > 59 || atoi(parts[4]) > 23 {
		return past
	}
	minute := atoi(parts[4])*60 + atoi(parts[1])
	if parts[3] == "to" {
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
	if err == nil && length >= time.Second && (parts[3] != "" || len(parts[2]) == 1 || strings.Contains(parts[1], ".")) {
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

func readWords(text string) (r phraseReader) {
	for _, field := range words.Cut(strings.ReplaceAll(text, ": ", " ")) {
		if last := len(r.fields) - 1; isHalf(field) && last >= 0 && beginsWithDigit(r.fields[last]) {
			r.fields[last] += " " + field
		} else {
			r.fields = append(r.fields, field)
		}
	}
	if len(r.fields) > maxPhrase {
		r.reason, r.fields = "more than "+strconv.Itoa(maxPhrase)+" words", nil
	}
	for len(r.fields) > 0 && r.reason == "" {
		r.read()
	}
	if r.settle(); r.reason == "" && r.halves && r.bare {
		r.reason = "AM or PM is needed at each time or at none"
	}
	return r
}

func isHalf(text string) bool { return text == "am" || text == "pm" }

func beginsWithDigit(text string) bool { return text[0] >= '0' && text[0] <= '9' }

func (r *phraseReader) read() {
	field := r.fields[0]
	r.fields = r.fields[1:]
	known, isWord := phraseWords[field]
	ordinal, isOrdinal := words.Ordinal(field) // "second" too: it is a unit only where no day follows
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
		_, leftNumber := words.Digits(left)
		_, rightNumber := words.Digits(right)
		if last := len(r.words) - 1; leftNumber && rightNumber && last >= 0 && r.words[last].text != "every" && r.words[last].kind != monthWord && !r.counts() {
			r.afterAt = true // "hourly 9-17"
		}
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

// counts tells whether a number before what follows is no time of day.
func (r *phraseReader) counts() bool {
	return len(r.fields) > 0 && (isUnit(r.fields[0]) || len(phraseWords[r.fields[0]]) > 0 && phraseWords[r.fields[0]][0].kind == monthWord)
}

// readNumber reads a field that begins with a digit. Before a unit or a month it is no time of day.
func (r *phraseReader) readNumber(field string) {
	digits := len(field) - len(strings.TrimLeft(field, "0123456789"))
	n, ok := words.Digits(field[:digits])
	if !ok {
		r.reason = document.Found(field) + " is too much"
		return
	}
	counts := r.counts()
	switch rest := strings.TrimSpace(field[digits:]); {
	case rest == "st", rest == "nd", rest == "rd", rest == "th": // 22th too
		r.add(phraseWord{ordinalWord, field, n})
	case rest != "" || r.afterAt && !counts:
		minute, kind := 0, looseWord
		r.bare = r.bare || rest == "" && n > 12 && n < 24
		if rest == "" && digits == 4 { // "1800"
			n, minute, kind = n/100, n%100, clockWord
			ok = minute < 60
		}
		if after, colon := strings.CutPrefix(rest, ":"); colon {
			length := min(2, len(after))
			ok = length == 2 && validMinute(after[:length])
			minute, rest = atoi(after[:length]), strings.TrimSpace(after[length:])
		}
		if isHalf(rest) {
			kind, r.halves = clockWord, true
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
		if n == 0 || n > 12 || field[0] == '0' {
			kind = clockWord
		}
		r.add(phraseWord{kind, field, n*60 + minute})
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
	add(plainWord, 0, "every", "each", "all")
	for _, part := range []string{"morning", "afternoon", "evening", "night"} {
		add(halfWord, 0, part, part+"s")
	}
	add(plainWord, 0, "to", "until", "till", "through", "thru")
	add(plainWord, 0, "from")
	add(plainWord, 0, "nonstop")
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
	known["annually"], known["nightly"] = known["yearly"], []phraseWord{every, {halfWord, "night", 0}}
	return known
}()

var (
	weekdayNames = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	monthNames   = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
)
