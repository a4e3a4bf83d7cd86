package schedule

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

type phrase struct {
	phraseReader // words are those still to be read; reason is that of a refusal: nothing counts behind it

	every    bool // also by "twice per"
	said     bool // "every" has been read before a day or a longer unit
	unit     string
	interval int
	pace     string // hour, minute or second
	step     int    // of pace
	count    int    // "twice", 0 when nothing is said
	counted  string // the word for it

	ordinals []int // "1st and last"
	numbered bool  // they are "1st" and not "first"
	weekdays []int // those chosen, by ordinals or all
	group    bool  // they are a range, "weekday" or "weekend"
	workdays bool  // they are "weekday"
	dates    []phraseDate
	clocks   []int // minutes since midnight, rising
	named    bool  // the sentence names them

	past         []int // minutes of each hour
	between      []int // the first and the last minute of the day
	first        []int // the minute of the day at which a pace starts; nil: it is not said
	open         bool  // "from" waits for its "to"
	exceptDays   []int
	exceptMonths []int
	nonstop      bool      // "all day"
	start        string    // dtstart
	until        time.Time // wall clock
	spread       time.Duration
}

type phraseDate struct {
	month int
	days  []int
}

func (p *phrase) refuse(reason string) { p.reason = cmp.Or(p.reason, reason) }

func (p *phrase) parse() {
	for len(p.words) > 0 && p.reason == "" {
		switch word := p.words[0]; {
		case takers[word.text] != nil:
			p.skip()
			takers[word.text](p)
		case p.atUnit():
			p.takeUnit(0, p.count > 0)
		case word.kind == ordinalWord, p.atWeekday():
			p.takeDays()
		case p.atDate():
			if len(p.dates) > 0 {
				p.refuse("months that do not stand together need an RRULE line each")
			}
			p.takeDates()
		case word.kind == clockWord && len(p.words) > 2 && p.words[1].text == "to" && p.words[2].kind == clockWord:
			p.takeBetween()
		case word.kind == clockWord: // "Monday at 9:00 and Friday at 17:00" are two rules
			if len(p.clocks) > 0 {
				p.refuse("times of day that do not stand together need an RRULE line each")
			}
			p.named = true
			p.clocks = p.takeAll(clockWord)
		case word.kind == pastWord && len(p.past) == 0:
			p.past = p.takeAll(pastWord)
		case word.kind == countWord && p.count == 0:
			p.skip()
			p.count, p.counted, p.every = word.n, word.text, true
		default:
			p.refuse(document.Found(word.text) + " does not belong there")
		}
	}
	if p.open {
		p.refuse(`"from" has no end`)
	}
}

var takers = map[string]func(*phrase){
	"every": (*phrase).takeEvery, "nonstop": func(p *phrase) { p.nonstop = true }, "starting": (*phrase).takeStart, "between": (*phrase).takeBetween,
	"from": func(p *phrase) {
		switch {
		case p.at(dateWord):
			p.takeStart()
		case p.at(clockWord):
			p.open = true
			p.takeBetween()
		default:
			p.open = true
		}
	},
	"to": (*phrase).takeUntil,
	"except": func(p *phrase) {
		group, workdays, before := p.group, p.workdays, len(p.exceptDays)+len(p.exceptMonths)
		for p.at(monthWord) {
			p.exceptMonths = append(p.exceptMonths, p.skip().n)
		}
		if p.exceptDays = p.takeWeekdays(); len(p.exceptDays)+len(p.exceptMonths) == 0 || before > 0 {
			p.refuse("an exception is weekdays or months; other days are EXDATE lines")
		}
		p.group, p.workdays = group, workdays
	},
}

func (p *phrase) skip() phraseWord {
	word := p.words[0]
	p.words = p.words[1:]
	return word
}

func (p *phrase) at(kind wordKind) bool { return len(p.words) > 0 && p.words[0].kind == kind }

func (p *phrase) atText(text string) bool { return len(p.words) > 0 && p.words[0].text == text }

func (p *phrase) takeTo(kind wordKind) bool {
	if !p.atText("to") || len(p.words) < 2 || p.words[1].kind != kind {
		return false
	}
	p.skip()
	p.open = false
	return true
}

func (p *phrase) takeAll(kind wordKind) (all []int) {
	for p.at(kind) {
		word := p.skip()
		if slices.Contains(all, word.n) {
			p.refuse(twice(word.text))
		}
		all = append(all, word.n)
	}
	slices.Sort(all)
	return all
}

func twice(text string) string { return document.Found(text) + " stands there twice" }

// takeBetween takes "9:00 to 17:00" or, behind "between", "9:00 and 17:00".
func (p *phrase) takeBetween() {
	if len(p.words) > 1 && p.at(dateWord) && p.words[1].kind == dateWord { // "between 1 March and 31 May 2027"
		p.takeStart()
		p.takeUntil()
		return
	}
	var ends []int
	for len(ends) < 2 && p.at(clockWord) {
		ends = append(ends, p.skip().n)
		p.takeTo(clockWord)
	}
	switch {
	case len(ends) < 2 || ends[0] == ends[1]:
		p.refuse("a part of the day has two different ends, such as between 9:00 and 17:00")
	}
	p.between = append(p.between, ends...)
}

func (p *phrase) takeUntil() {
	if p.at(clockWord) && p.first != nil {
		p.between, p.first = []int{p.first[0], p.skip().n}, nil
		return
	}
	if !p.at(dateWord) || !p.until.IsZero() {
		p.refuse("an end is a date with its year, such as until 1 March 2030")
		return
	}
	day, _ := time.Parse(time.DateOnly, p.skip().text)
	p.until = day.Add(daySeconds*time.Second - time.Second)
}

func (p *phrase) takeStart() {
	switch {
	case p.start != "" || p.first != nil:
		p.refuse("it starts twice")
	case p.at(dateWord):
		p.start = p.skip().text + "T00:00:00"
	case p.at(clockWord) && len(p.words) > 2 && p.words[1].text == "to" && p.words[2].kind == clockWord:
		p.takeBetween()
	case p.at(clockWord):
		p.first = []int{p.skip().n}
	default:
		p.refuse("a start is a date with its year, such as 1 March 2030")
	}
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

func (p *phrase) atDate() bool {
	other := slices.IndexFunc(p.words, func(word phraseWord) bool { return word.kind != numberWord })
	return other >= 0 && p.words[other].kind == monthWord
}

// takeEvery takes "every 2 days", "every other Monday" or "every second week".
func (p *phrase) takeEvery() {
	interval := 0
	if p.at(intervalWord) {
		if interval = p.skip().n; interval < 1 || interval > maxInterval {
			p.refuse("an interval is a number from 1 to " + strconv.Itoa(maxInterval))
		}
		if !p.atUnit() && !p.at(weekdayWord) && !p.atText("weekend") {
			p.refuse("a unit such as days is missing behind the interval")
		}
	}
	p.every = true
	if !p.atUnit() || elapsedUnits[p.words[0].text] == 0 {
		if p.said {
			p.refuse(`"every" stands there twice`)
		}
		p.said, p.interval = true, interval
	}
	if p.atUnit() {
		p.takeUnit(interval, true)
	}
}

func (p *phrase) takeUnit(interval int, every bool) {
	unit := p.skip().text
	_, elapsed := elapsedUnits[unit]
	before := &p.unit
	if elapsed {
		before, p.step = &p.pace, interval
	}
	switch {
	case *before != "":
		p.refuse(document.Found(*before) + " and " + document.Found(unit) + " do not go together")
	case !every && (elapsed || unit == "day" || unit == "week" || len(p.ordinals)+len(p.weekdays) == 0):
		p.refuse(`"every" is missing before ` + document.Found(unit))
	}
	*before = unit
}

// takeDays takes "1st and 15th", "last day", "first and third Monday" or "Monday and Friday".
func (p *phrase) takeDays() {
	if len(p.ordinals)+len(p.weekdays) > 0 {
		p.refuse("days of two kinds need an RRULE line each")
	}
	p.numbered = beginsWithDigit(p.words[0].text)
	p.ordinals = p.takeAll(ordinalWord)
	if len(p.ordinals) == 1 && p.ordinals[0] > 0 && p.takeTo(ordinalWord) { // "from the 1st to the 5th"
		from, to := p.ordinals[0], p.skip().n
		if to <= from || to > 31 {
			p.refuse("days from one to another rise")
		}
		for from < min(to, 31) {
			from++
			p.ordinals = append(p.ordinals, from)
		}
	}
	if len(p.ordinals) > 0 && p.atText("day") {
		p.skip()
		return
	}
	p.weekdays = p.takeWeekdays()
}

// takeWeekdays takes "Monday and Friday", "Monday to Friday", "weekdays and Saturday". It sets what kind of list it was.
func (p *phrase) takeWeekdays() (days []int) {
	p.workdays = p.atText("weekday")
	for p.atWeekday() {
		word := p.skip()
		from, to := word.n, word.n
		switch {
		case word.text == "weekday":
			from, to = 0, 4
		case word.text == "weekend":
			from, to = 5, 6
		case p.takeTo(weekdayWord):
			to = p.skip().n
		}
		if to < from {
			to += 7
		}
		p.group, p.workdays = p.group || to != from, p.workdays && len(days) == 0
		for day := from; day <= to; day++ {
			if slices.Contains(days, day%7) {
				p.refuse(twice(weekdayNames[day%7]))
			}
			days = append(days, day%7)
		}
		if p.atText("every") && len(p.words) > 1 && p.words[1].kind == weekdayWord {
			p.skip()
		}
	}
	slices.Sort(days)
	return days
}

// takeDates takes "March 1", "1 January and 1 July", "June to August" and the month of "1st of March".
func (p *phrase) takeDates() {
	for p.atDate() {
		days := p.takeAll(numberWord)
		p.addDate(p.skip().n, days)
		if len(days) == 0 && p.takeTo(monthWord) {
			for to := p.skip().n; p.dates[len(p.dates)-1].month != to; {
				p.addDate(p.dates[len(p.dates)-1].month%12+1, nil)
			}
		}
		last := &p.dates[len(p.dates)-1]
		for len(days) == 0 && (p.at(numberWord) || p.at(ordinalWord) && p.words[0].n > 0) {
			last.days = append(last.days, p.skip().n)
		}
		slices.Sort(last.days)
	}
}

func (p *phrase) addDate(month int, days []int) {
	if slices.ContainsFunc(p.dates, func(before phraseDate) bool { return before.month == month }) {
		p.refuse(twice(monthNames[month-1]))
	}
	p.dates = append(p.dates, phraseDate{month, days})
}
