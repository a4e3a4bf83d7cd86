package schedule

import (
	"fmt"
	"regexp"
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
	n    int    // of a time: minutes since midnight; of weekdays: a bit for each, Monday first; of a month: 1 is January
}

// Kinds of words. A pattern of words is a regular expression over them.
const (
	everyWord    = 'E'
	intervalWord = 'i' // "other", and "2" in "every 2 days"
	unitWord     = 'U'
	numberWord   = 'n'
	ordinalWord  = 'o' // "1st", "first", and -1 for "last"
	countWord    = 'c' // "twice", "3 times"
	timesWord    = 'x'
	weekdayWord  = 'W' // "Monday", "weekday"
	monthWord    = 'M'
	yearWord     = 'y' // four digits: a year, or a time such as 1800
	dateWord     = 'D' // "2030-03-01"
	clockWord    = 't' // "6 AM", "06:00", "noon"
	looseWord    = 'l' // "6", "7:30": a time of the first or of the second half of the day
	halfWord     = 'h' // "PM", "evening"
	pastWord     = 'p' // ":15", minutes past each hour
	behindWord   = 'P' // "past", as in "5 minutes past"
	beforeWord   = 'B'
	toWord       = '-'
	atWord       = '@' // and "from" and "between": a number behind it is a time
	fromWord     = 'f'
	betweenWord  = 'b'
	startWord    = 's'
	exceptWord   = 'X'
	nonstopWord  = 'N'
	andWord      = ','
	fillerWord   = '_'
	unknownWord  = '?'
)

// keywords have a line for each word that stands for itself: its kind, its number, and its spellings, of which the first is its one form.
const keywords = `
E 0 every each all
c 1 once
c 2 twice
x 0 times
i 2 other alternate
o -1 last final
o -2 penultimate
t 720 noon midday
t 0 midnight
h 0 am
h 0 pm
h 0 morning mornings
h 0 afternoon afternoons
h 0 evening evenings
h 0 night nights
W 31 weekday weekdays workday workdays
W 96 weekend weekends
M 9 september sept
- 0 to - until till through thru ending
@ 0 at @
f 0 from
b 0 between
s 0 starting
X 0 except
N 0 nonstop
U 0 second sec secs
U 0 minute min mins
U 0 hour hr hrs
P 0 past
B 0 before
, 0 and , ; / & + ( ) plus additionally again then
_ 0 on the of in per a an only during both refresh refreshes refreshed always inclusive included otherwise : .
`

// unclear are words that people use in different ways, or that name no time, with what to write instead.
var unclear = map[string]string{
	"bi": "every 2 weeks, or twice per week on Monday and Friday", "biweekly": "every 2 weeks, or twice per week on Monday and Friday", "bimonthly": "every 2 months, or twice per month on the 1st and 15th",
	"biannually": "every 2 years, or twice per year on January 1 and July 1", "or": "say one of them",
	"tomorrow": "a date such as 2030-03-01", "today": "a date such as 2030-03-01", "now": "a date such as 2030-03-01", "next": "a date such as 2030-03-01",
	"est": "a city such as New York time", "pst": "a city such as Los Angeles time", "cet": "a city such as Berlin time", "time": "a city of the zone database, such as Berlin time",
	"holidays": "the days, or a calendar of the policy (closed)",
}

var (
	weekdayNames = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	monthNames   = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	phraseUnits  = []string{"second", "minute", "hour", "day", "week", "month", "quarter", "year"}
	unitAdverbs  = strings.Fields("secondly minutely hourly daily weekly monthly quarterly yearly")
)

var phraseWords = sync.OnceValue(func() map[string][]phraseWord {
	known := make(map[string][]phraseWord)
	add := func(kind byte, n int, names ...string) {
		for _, name := range names {
			known[name] = []phraseWord{{kind, names[0], n}}
		}
	}
	for i, name := range weekdayNames {
		lower := strings.ToLower(name)
		add(weekdayWord, 1<<i, lower, lower+"s", lower[:3], lower[:4], lower[:3]+"s")
	}
	add(weekdayWord, 1<<3, "thursday", "thur", "thurs")
	for i, name := range monthNames {
		add(monthWord, i+1, strings.ToLower(name), strings.ToLower(name[:3]))
	}
	for i, unit := range phraseUnits {
		add(unitWord, 0, unit, unit+"s")
		known[unitAdverbs[i]] = []phraseWord{{everyWord, "every", 0}, {unitWord, unit, 0}}
	}
	for line := range strings.Lines(keywords[1:]) {
		fields := strings.Fields(line)
		n, _ := strconv.Atoi(fields[1])
		add(fields[0][0], n, fields[2:]...)
	}
	delete(known, "second") // an ordinal, which is a unit only at the end
	known["annually"], known["nightly"] = known["yearly"], []phraseWord{{everyWord, "every", 0}, {halfWord, "night", 0}}
	return known
})

// respellings write what takes several words, or has several spellings, in one way: a pattern, and what stands for it.
const respellings = `
everyday|(?:7|seven) days (?:a|per) week|(?:every|each) day of the (?:week|year) => every day
each and every|(?:every|each) single => every
(\w+) days (?:a|per|each|every) week => $1 times per week
on an? (hourly|daily|weekly|monthly|quarterly|yearly) basis => $1
(^|[;,] )(?:frequency|days?|when): => $1
(^|[;,] )(?:refresh )?times?: => $1 at
(\d{1,2}(?::\d\d)?) o'?clock => at $1
12(?::00)? (noon|midnight) => $1
(\d\d:?\d\d) ?(?:hours|hrs|h) => at $1
at (\d{1,2}) ?h => at $1:00
(\d{1,2})h(\d\d) => at $1:$2
(?:in|during) the (morning|afternoon|evening|night) => $1
at nights? => night
at (\d{1,2})\.?(\d\d) => at $1:$2
at (\d{1,2}) (15|30|45) => at $1:$2
(\d{1,2}) (15|30|45) (morning|afternoon|evening|night) => $1:$2 $3
1 time => once
thrice => 3 times
(\d)x => $1 times
(?:working|business|week)[ -]days? => weekday
(weekdays?),? (?:mon|monday)(?:-| to | through )fri(?:day)? => $1
(weekends?),? sat(?:urday)?s?(?:,| and| &) sun(?:day)?s? => $1
weeknights? => weekday night
mo-fr => mon-fri
between ((?:mon|tue|wed|thu|fri|sat|sun)[a-z]*) and ((?:mon|tue|wed|thu|fri|sat|sun)) => $1 to $2
(?:at )?the top of (?:every|each) hour|(?:at )?(?:every|each) full hour => every hour :00
on the hour => :00
on the half[ -]hour => :30
as well as => and
(?:at|in|with) (?:an )?(?:regular )?intervals? of => every
once in (\d) => every $1
(?:every|each) (\d+) and a half (hour|minute) => every $1.5 $2
(?:every|each) (?:an )?(hour|minute) and a half => every 1.5 ${1}s
half[ -]hourly|(?:every|each) half(?: an)?[ -]hour => every 30 minutes
(?:every|each) quarter(?: of an)? hour => every 15 minutes
(\d+)[ -]hourly => every $1 hours
fortnightly|(?:every|each) fortnight => every 2 weeks
(?:2nd|second)-to-last|last but one => penultimate
around the clock|24 hours a day|24/7|all day(?: long)?|day and night => nonstop
up to and including|up to => until
except for|excluding|apart from|other than|with the exception of|but not|not|never => except
(\w),? without => $1 except
but ((?:mon|tue|wed|thu|fri|sat|sun|week)[a-z]*) => except $1
(except [^,;]*) or => $1 and
(?:starting|beginning|effective|as of|for the first time)(?: as of| from| on)? => starting
,? first on (\d) => starting $1
sharp|onwards? =>
`

type respelling struct {
	pattern *regexp.Regexp
	text    string
}

var compiledRespellings = sync.OnceValue(func() (all []respelling) {
	for line := range strings.Lines(respellings[1:]) {
		pattern, text, _ := strings.Cut(strings.TrimSpace(line), " =>")
		all = append(all, respelling{regexp.MustCompile(`(?:\b|^)(?:` + pattern + `)\b`), strings.TrimSpace(text)})
	}
	return all
})

var (
	spelledLength = regexp.MustCompile(`\bevery (\d+(?:\.\d+)?) ?(hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?:(?: and |, | )?(\d+) ?(minutes?|mins?|m|seconds?|secs?|s))?\b`)
	spelledPast   = regexp.MustCompile(`\b(?:(?:every|each|a) )?(quarter|half|\d\d?)( minutes?)? (past|after|to|before) (\d\d?|noon|midnight)\b( ?[ap]\.?m\b)?`)
	inMinutes     = strings.NewReplacer("quarter", "15 minutes", "half past", "30 past", "noon", "12", "midnight", "00")
)

// respell returns a text in lower case and in one spelling.
func respell(text string) string {
	fields := strings.Fields(strings.ToLower(text))
	for i, field := range fields {
		word := strings.TrimRight(field, ",.;:")
		if n, ok := words.Number(word); ok && word != "a" && word != "an" && !beginsWithDigit(word) {
			fields[i] = strconv.Itoa(n) + field[len(word):]
		}
	}
	text = strings.Join(fields, " ")
	for _, r := range compiledRespellings() {
		text = r.pattern.ReplaceAllString(text, r.text)
	}
	text = spelledPast.ReplaceAllStringFunc(text, respellPast)
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

func beginsWithDigit(text string) bool { return text[0] >= '0' && text[0] <= '9' }
