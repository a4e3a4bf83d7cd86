package schedule

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"

	"github.com/teambition/rrule-go"
)

// phraseRule converts English.
func phraseRule(text string) (string, error) {
	var p phrase
	var lines []rrule.ROption
	read, reason := readPhrase(text)
	if reason == "" {
		if reason = p.parse(read); reason == "" {
			lines, reason = p.lines()
		}
	}
	if reason == "" {
		return ruleOf(lines...), nil
	}
	if rule, ok := lengthRule(text); ok {
		return rule, nil
	}
	want := `RRULE such as "FREQ=DAILY;BYHOUR=6", cron, or English such as "` + phrasebook().Nearest(text) + `"`
	return "", refuseRule(want, document.Found(text)+" ("+reason+")")
}

// lengthRule reads "every 15m" and "every 1 hour 30 minutes". Whole days are days of the calendar and not lengths.
func lengthRule(text string) (rule string, ok bool) {
	length, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(text)), "every ")
	if _, unitless := words.Number(length); !ok || unitless || !strings.ContainsAny(length, "hms") {
		return "", false
	}
	every, err := words.ParseDuration(length)
	if err != nil || every%(24*time.Hour) == 0 {
		return "", false
	}
	return elapsedRule(every)
}

// phrase is a schedule in English, taken apart.
type phrase struct {
	words []phraseWord // those still to be read

	every    bool   // also by "twice per"
	said     bool   // "every" has been read
	unit     string // "" when days stand for it
	interval int
	count    int    // "twice", 0 when nothing is said
	counted  string // the word for it

	ordinals []int // "1st and last"
	weekdays []int // those chosen, by ordinals or all
	dates    []phraseDate
	clocks   []int // minutes since midnight, rising
}

// phraseDate is a month with the days that follow it: "March 1 and 15".
type phraseDate struct {
	month int
	days  []int
}

// parse reads the words in any order that keeps together what belongs together. It returns the reason of a refusal, or "".
func (p *phrase) parse(read []phraseWord) (reason string) {
	p.words = read
	reason = p.takeClocks()
	p.takeCount()
	for len(p.words) > 0 && reason == "" {
		word := p.words[0]
		switch {
		case word.text == "every":
			reason = p.takeEvery()
		case p.atUnit():
			reason = p.takeUnit()
		case word.kind == ordinalWord, p.atWeekday():
			reason = p.takeDays()
		case word.kind == monthWord:
			reason = p.takeDates()
		default:
			reason = document.Found(word.text) + " does not belong there"
		}
	}
	return reason
}

func (p *phrase) skip() phraseWord {
	word := p.words[0]
	p.words = p.words[1:]
	return word
}

// at tells whether the next word is of a kind.
func (p *phrase) at(kind wordKind) bool { return len(p.words) > 0 && p.words[0].kind == kind }

// atText tells whether a word comes next.
func (p *phrase) atText(text string) bool { return len(p.words) > 0 && p.words[0].text == text }

func isClock(word phraseWord) bool { return word.kind == clockWord }

// takeClocks takes the times of day out of the words. They must stand together: "Monday at 9:00 and Friday at 17:00" are two rules.
func (p *phrase) takeClocks() (reason string) {
	from := slices.IndexFunc(p.words, isClock)
	if from < 0 {
		return ""
	}
	to := from
	for to < len(p.words) && isClock(p.words[to]) {
		p.clocks = append(p.clocks, p.words[to].n)
		to++
	}
	if slices.ContainsFunc(p.words[to:], isClock) {
		return "times of day that do not stand together need an RRULE line each"
	}
	p.words = append(slices.Clone(p.words[:from]), p.words[to:]...)
	slices.Sort(p.clocks)
	p.clocks = slices.Compact(p.clocks)
	return ""
}

// takeCount takes "twice" or "3 times". What follows is a period, with or without "every".
func (p *phrase) takeCount() {
	switch {
	case p.at(countWord) && p.words[0].n > 0:
		word := p.skip()
		p.count, p.counted = word.n, word.text
	case p.at(numberWord) && p.words[0].n > 0 && len(p.words) > 1 && p.words[1].text == "times":
		word := p.skip()
		p.count, p.counted = word.n, word.text+" "+p.skip().text
	default:
		return
	}
	p.every = true
}

// atUnit tells whether a unit follows. "second" is one at the end of a phrase, else it is an ordinal.
func (p *phrase) atUnit() bool {
	if len(p.words) == 0 || !slices.Contains(phraseUnits, p.words[0].text) {
		return false
	}
	return p.words[0].kind == plainWord || len(p.words) == 1
}

func (p *phrase) atWeekday() bool {
	return p.at(weekdayWord) || p.atText("weekday") || p.atText("weekend")
}

// takeEvery takes "every", "every 2 days", "every other Monday" or "every second week".
func (p *phrase) takeEvery() (reason string) {
	p.skip()
	if p.said {
		return `"every" stands there twice`
	}
	p.every, p.said = true, true
	if !p.at(intervalWord) {
		return ""
	}
	p.interval = p.skip().n
	if p.interval < 1 || p.interval > maxInterval {
		return "an interval is a number from 1 to " + strconv.Itoa(maxInterval)
	}
	if !p.atUnit() && !p.at(weekdayWord) && !p.atText("weekend") {
		return "a unit such as days is missing behind the interval"
	}
	return ""
}

func (p *phrase) takeUnit() (reason string) {
	unit := p.skip().text
	if p.unit != "" && p.unit != unit {
		return document.Found(p.unit) + " and " + document.Found(unit) + " do not go together"
	}
	p.unit = unit
	return ""
}

// takeDays takes "1st and 15th", "last day", "first and third Monday" or "Monday and Friday".
func (p *phrase) takeDays() (reason string) {
	if len(p.ordinals)+len(p.weekdays) > 0 {
		return "days of two kinds need an RRULE line each"
	}
	for p.at(ordinalWord) {
		p.ordinals = append(p.ordinals, p.skip().n)
	}
	if len(p.ordinals) > 0 && p.atText("day") {
		p.skip()
		return ""
	}
	for p.atWeekday() {
		switch word := p.skip(); word.text {
		case "weekday":
			p.weekdays = append(p.weekdays, 0, 1, 2, 3, 4)
		case "weekend":
			p.weekdays = append(p.weekdays, 5, 6)
		default:
			p.weekdays = append(p.weekdays, word.n)
		}
	}
	slices.Sort(p.weekdays)
	p.weekdays = slices.Compact(p.weekdays)
	return ""
}

// takeDates takes "March 1", "January 1 and July 1", and the month of "1st of March".
func (p *phrase) takeDates() (reason string) {
	if len(p.dates) > 0 {
		return "months that do not stand together need an RRULE line each"
	}
	for p.at(monthWord) {
		date := phraseDate{month: p.skip().n}
		for p.at(numberWord) || p.at(ordinalWord) && p.words[0].n > 0 {
			date.days = append(date.days, p.skip().n)
		}
		p.dates = append(p.dates, date)
	}
	return ""
}

// phraseExamples are what a refused phrase may have meant.
var phraseExamples = []string{
	"every day at 6 AM and 4 PM", "every 2 hours", "every 30 minutes", "every hour", "twice per day at 6 AM and 4 PM", "every 2 days at 6:00",
	"every Monday, Wednesday and Friday at 9:00 and 17:30", "every weekday at 8:00", "every weekend at noon", "every 2 weeks on Monday at 9:00",
	"on the last Friday of the month at 18:00", "on the first Monday of every month at 9 AM", "on the 1st and 15th of the month at 06:00",
	"on the last day of the month at midnight", "every year on March 1 at noon", "every quarter on the 1st at 6:00",
}

// phrasebook is made of them when the first phrase is refused.
var phrasebook = sync.OnceValue(func() *words.Phrasebook { return words.NewPhrasebook(phraseExamples) })
