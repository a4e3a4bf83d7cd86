package schedule

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/document"
)

// phrase is a schedule in English by the meaning of its words.
type phrase struct {
	phraseReader // words are those still to be taken; reason is set by a refusal: nothing counts behind it

	every     bool // also by "twice per"
	everyUnit bool // "every" has been taken before a day or a longer unit
	unit      string
	interval  int
	pace      string // hour, minute or second
	step      int    // of pace
	count     int    // "twice", 0 when nothing is said
	counted   string // the word for it

	ordinals []int // "1st and last"
	numbered bool  // they are "1st" and not "first"
	weekdays []int // those chosen, by ordinals or all
	group    bool  // they are a range, "weekday" or "weekend"
	workdays bool  // they are "weekday"
	behind   bool  // behind times: "every day at 6, 8 on weekends"
	months   []int
	span     bool // they are a range
	dates    []phraseDates
	clocks   []int // minutes since midnight, rising
	named    bool  // the sentence names them

	past         []int // minutes of each hour
	between      []int // the first and the last minute of the day
	first        []int // the minute of the day at which a pace starts; nil: it is not said
	exceptDays   []int
	exceptMonths []int
	nonstop      bool      // "all day"
	start        time.Time // wall clock
	once         bool      // at the start
	until        time.Time // likewise
	spread       time.Duration
	joined       bool // with "and" to the next

	rules []rrule.ROption // the meaning of all this
}

// phraseDates are the same days of some months.
type phraseDates struct{ days, months []int }

// takers take the first of the remaining words, the first taker whose kinds fit. Together they are the grammar of a schedule.
var takers = []taker{
	{grammar(`cD`), (*phrase).takeOnce},
	{grammar(`c`), func(p *phrase, run []phraseWord) { p.takeCount(run[0]) }},
	{grammar(`N`), func(p *phrase, _ []phraseWord) { p.nonstop = true }},
	{grammar(`XW(?:-?W)*`), func(p *phrase, run []phraseWord) { p.takeExcept(&p.exceptDays, run, 0, 6) }},
	{grammar(`XM(?:-?M)*`), func(p *phrase, run []phraseWord) { p.takeExcept(&p.exceptMonths, run, 1, 12) }},
	{grammar(`bD-?D`), func(p *phrase, run []phraseWord) { p.takeStart(run[:2]); p.takeEnd(run[2:]) }},
	{grammar(`[sf]W?D`), (*phrase).takeStart},
	{grammar(`-W?D`), (*phrase).takeEnd},
	{grammar(`(?:[sfb]?t-t|btt)+`), (*phrase).takeParts},
	{grammar(`st`), (*phrase).takeFirst},
	{grammar(`Ei?U|U`), (*phrase).takeUnit},
	{grammar(`f?(?:Ei?)?W(?:-W|E?W)*`), (*phrase).takeWeekdays},
	{grammar(`f?E?(?:[no]+M+)+|f?E?(?:M[no]+)+`), (*phrase).takeDates},
	{grammar(`f?E?M(?:-?M)*`), (*phrase).takeMonths},
	{grammar(`fo-oU?|o+(?:-o)?(?:U|W(?:-W|E?W)*)?`), (*phrase).takeOrdinals},
	{grammar(`E`), func(p *phrase, run []phraseWord) { p.takeEvery(run) }},
	{grammar(`t+`), func(p *phrase, run []phraseWord) { p.takeAll(&p.clocks, run); p.named = true }},
	{grammar(`p+`), func(p *phrase, run []phraseWord) { p.takeAll(&p.past, run) }},
}

type taker struct {
	kinds *regexp.Regexp
	take  func(*phrase, []phraseWord)
}

func grammar(kinds string) *regexp.Regexp { return regexp.MustCompile("^(?:" + kinds + ")") }

// reasons say why a word of a kind is left.
var reasons = map[byte]string{
	startWord: "a start is a date with its year, such as 1 March 2030", toWord: "an end is a date with its year, such as until 1 March 2030",
	exceptWord: "an exception is weekdays or months; other days are EXDATE lines", intervalWord: "a unit such as days is missing behind the interval",
	fromWord: `"from" has no end`, betweenWord: "a part of the day has two different ends, such as between 9:00 and 17:00",
}

const (
	twoKinds   = "days of two kinds need an RRULE line each"
	timesApart = "times of day that do not stand together need an RRULE line each"
)

func (p *phrase) parse() {
	if unknown := strings.IndexAny(kindsOf(p.words), "?!"); unknown >= 0 {
		p.refuseWord(p.words[unknown:])
	}
	for len(p.words) > 0 && p.reason == "" {
		kinds := kindsOf(p.words)
		found := slices.IndexFunc(takers, func(t taker) bool { return t.kinds.MatchString(kinds) })
		if found < 0 {
			p.refuseWord(p.words)
			return
		}
		run := p.words[:len(takers[found].kinds.FindString(kinds))]
		p.words = p.words[len(run):]
		takers[found].take(p, run)
	}
}

// refuseWord says why the first word that is left belongs nowhere.
func (p *phrase) refuseWord(left []phraseWord) {
	word := left[0]
	instead, reason := english().instead[word.text], reasons[word.kind]
	switch {
	case instead != "":
		p.refuse(document.Found(word.text) + " could mean more than one thing; write " + instead)
	case reason != "":
		p.refuse(reason)
	case word.kind == unknownWord || word.kind == hedgeWord:
		p.refuse(document.Found(word.text) + " is not known")
	default:
		p.refuse(document.Found(word.text) + " does not belong there")
	}
}

// listOf returns the numbers of a list such as "Monday to Friday and Sunday", rising. Behind the last of all comes the first.
func (p *phrase) listOf(run []phraseWord, first, last int) (all []int) {
	for i, word := range run {
		// "Monday - Wednesday - Friday"
		p.refuseIf(word.kind == toWord && i > 1 && run[i-2].kind == toWord, document.Found(word.text)+" does not belong there")
		if word.kind == toWord || word.kind == everyWord {
			continue
		}
		p.refuseIf(slices.Contains(all, word.n), twice(word.text))
		for i > 0 && run[i-1].kind == toWord && word.n >= first {
			next := all[len(all)-1] + 1
			if next > last {
				next = first
			}
			if next == word.n {
				break
			}
			all = append(all, next)
		}
		all = append(all, word.n)
	}
	slices.Sort(all)
	return all
}

func twice(text string) string { return document.Found(text) + " stands there twice" }

func (p *phrase) takeAll(all *[]int, run []phraseWord) {
	p.refuseIf(len(*all) > 0, timesApart) // "Monday at 9:00 and Friday at 17:00" are two rules
	*all = p.listOf(run, 0, dayMinutes)
}

func (p *phrase) takeCount(word phraseWord) {
	p.refuseIf(p.count > 0, twice(word.text))
	p.count, p.counted, p.every = word.n, word.text, true
}

// takeEvery takes "every" and the interval behind it, and "from" before it.
func (p *phrase) takeEvery(run []phraseWord) (rest []phraseWord) {
	for i, word := range run {
		switch word.kind {
		case fromWord:
			p.refuseIf(i+2 >= len(run) || run[i+2].kind != toWord, reasons[fromWord])
		case everyWord:
			p.refuseIf(p.everyUnit, `"every" stands there twice`)
			p.every, p.everyUnit = true, true
		case intervalWord:
			p.interval = p.intervalOf(word)
		default:
			return run[i:]
		}
	}
	return nil
}

func (p *phrase) intervalOf(word phraseWord) int {
	p.refuseIf(word.n < 1 || word.n > maxInterval, "an interval is a number from 1 to "+strconv.Itoa(maxInterval))
	return word.n
}

func (p *phrase) takeExcept(all *[]int, run []phraseWord, first, last int) {
	p.refuseIf(len(p.exceptDays)+len(p.exceptMonths) > 0, reasons[exceptWord])
	*all = p.listOf(run[1:], first, last)
}

func (p *phrase) takeStart(run []phraseWord) {
	p.refuseIf(!p.start.IsZero() || p.first != nil, "it starts twice")
	p.start = p.dateIn(run)
}

// takeOnce takes "once on 1 March 2030".
func (p *phrase) takeOnce(run []phraseWord) {
	p.takeCount(run[0])
	p.takeStart(run[1:])
	p.once = true
}

func (p *phrase) takeEnd(run []phraseWord) {
	p.refuseIf(!p.until.IsZero(), reasons[toWord])
	p.until = p.dateIn(run).Add(daySeconds*time.Second - time.Second)
}

// dateIn returns the date at the end of a run. A day of the week before it belongs to the date.
func (p *phrase) dateIn(run []phraseWord) time.Time {
	last := len(run) - 1
	date, _ := time.Parse(time.DateOnly, run[last].text)
	p.refuseIf(date.Year() < 1970 || date.Year() > 2200, document.Found(run[last].text)+" is no date from 1970 to 2200")
	if last > 0 && run[last-1].kind == weekdayWord && run[last-1].n != weekdayOf(date) {
		p.refuse(document.Found(run[last].text) + " is a " + weekdayNames[weekdayOf(date)])
	}
	return date
}

func weekdayOf(date time.Time) int { return (int(date.Weekday()) + 6) % 7 }

// takeParts takes "9:00 to 17:00" or, behind "between", "9:00 and 17:00".
func (p *phrase) takeParts(run []phraseWord) {
	p.refuseIf(len(p.between) > 0, timesApart)
	for _, word := range run {
		if word.kind == clockWord {
			p.between = append(p.between, word.n)
		}
	}
	for part := range slices.Chunk(p.between, 2) {
		p.refuseIf(part[0] == part[1], reasons[betweenWord])
	}
}

func (p *phrase) takeFirst(run []phraseWord) {
	p.refuseIf(!p.start.IsZero() || p.first != nil, "it starts twice")
	p.first = []int{run[1].n}
}

// takeUnit takes "every 2 days", "every second week", "of the month".
func (p *phrase) takeUnit(run []phraseWord) {
	unit, every := run[len(run)-1].text, len(run) > 1
	_, elapsed := elapsedUnits[unit]
	before := &p.unit
	if elapsed {
		before = &p.pace
		if p.every = p.every || every; len(run) == 3 {
			p.step = p.intervalOf(run[1])
		}
	} else {
		p.takeEvery(run)
	}
	switch {
	case *before != "":
		p.refuse(document.Found(*before) + " and " + document.Found(unit) + " do not go together")
	case !every && p.count == 0 && (elapsed || unit == "day" || unit == "week" || len(p.ordinals)+len(p.weekdays) == 0):
		p.refuse(`"every" is missing before ` + document.Found(unit))
	}
	*before = unit
}

// takeOrdinals takes "1st and 15th", "last day", "from the 1st to the 5th", "first and third Monday".
func (p *phrase) takeOrdinals(run []phraseWord) {
	run = p.takeEvery(run)
	kinds := kindsOf(run)
	end := len(strings.TrimRight(kinds, "UWE-"))
	if left := run[end:]; len(left) > 0 && left[0].kind == weekdayWord {
		p.takeWeekdays(left)
		for i := 1; i < end; i++ {
			p.refuseIf(run[i-1].n > 5 || run[i].n > 0 && run[i].n < run[i-1].n, twoKinds) // "5th and first Monday", "20th and last weekday"
		}
	} else if len(left) > 0 && left[0].text != "day" {
		p.words = append(slices.Clone(left), p.words...)
	}
	p.refuseIf(len(p.ordinals) > 0 || len(p.weekdays) > 0 && !strings.Contains(kinds, "W") || strings.Contains(kinds, "WE"), twoKinds)
	p.numbered = beginsWithDigit(run[0].text)
	p.ordinals = p.listOf(run[:end], 1, 31)
	p.refuseIf(strings.Contains(kinds[:end], "-") && (end > 3 || run[0].n < 1 || run[0].n >= run[2].n), "days from one to another rise")
}

// takeWeekdays takes "every other Monday", "Monday and Friday", "weekdays and Saturday".
func (p *phrase) takeWeekdays(run []phraseWord) {
	p.refuseIf(len(p.ordinals)+len(p.weekdays) > 0, twoKinds)
	rest := p.takeEvery(run)
	isWorkdays := rest[0].text == "weekday"
	p.refuseIf(isWorkdays && strings.Contains(kindsOf(run), "i"), reasons[intervalWord])
	p.refuseIf(p.interval > 1 && strings.Contains(kindsOf(rest), "E"), twoKinds) // "every other Monday and every Tuesday"
	p.weekdays = p.listOf(rest, 0, 6)
	p.behind = p.named
	p.group, p.workdays = strings.Contains(kindsOf(rest), "-"), isWorkdays && len(rest) == 3
}

func (p *phrase) chooseMonths() {
	p.refuseIf(len(p.dates)+len(p.months) > 0, "months that do not stand together need an RRULE line each")
}

// takeDates takes "March 1 and 15", "1 January and 1 July", "the 1st of April and October".
func (p *phrase) takeDates(run []phraseWord) {
	p.chooseMonths()
	run = p.takeEvery(run)
	if len(run) == 2 && run[1].kind == ordinalWord && len(p.words) > 0 && p.words[0].kind == weekdayWord { // "January, on the second Monday"
		p.months, p.words = []int{run[0].n}, append(slices.Clone(run[1:]), p.words...)
		return
	}
	for _, found := range daysInMonths.FindAllStringIndex(kindsOf(run), -1) {
		var date phraseDates
		for _, word := range run[found[0]:found[1]] {
			if word.kind == monthWord {
				date.months = append(date.months, word.n)
			} else {
				date.days = append(date.days, word.n)
			}
		}
		for _, month := range date.months {
			day, last := slices.Max(date.days), time.Date(2000, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
			p.refuseIf(day > last, monthNames[month-1]+" has no day "+strconv.Itoa(day))
		}
		p.dates = append(p.dates, date)
	}
}

var daysInMonths = regexp.MustCompile(`[no]+M+|M[no]+`)

func (p *phrase) takeMonths(run []phraseWord) {
	p.chooseMonths()
	p.months, p.span = p.listOf(p.takeEvery(run), 1, 12), strings.Contains(kindsOf(run), "-")
}
