package schedule

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/document"
)

// phrase is a schedule in English by what its words say.
type phrase struct {
	phraseReader // words are those still to be taken; reason is that of a refusal: nothing counts behind it

	every    bool // also by "twice per"
	said     bool // "every" has been taken before a day or a longer unit
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
	months   []int
	dates    []phraseDate
	clocks   []int // minutes since midnight, rising
	named    bool  // the sentence names them

	past         []int // minutes of each hour
	between      []int // the first and the last minute of the day
	first        []int // the minute of the day at which a pace starts; nil: it is not said
	exceptDays   []int
	exceptMonths []int
	nonstop      bool      // "all day"
	start        string    // dtstart
	until        time.Time // wall clock
	spread       time.Duration

	rules []rrule.ROption // what all this means
}

type phraseDate struct {
	month int
	days  []int
}

// takers take the words at the beginning of what is left, the first whose pattern of kinds fits. Together they are the grammar of a schedule.
var takers []taker

type taker struct {
	pattern *regexp.Regexp
	take    func(*phrase, []phraseWord)
}

func init() {
	for _, known := range []struct {
		kinds string
		take  func(*phrase, []phraseWord)
	}{
		{`c`, (*phrase).takeCount},
		{`N`, func(p *phrase, _ []phraseWord) { p.nonstop = true }},
		{`X(?:E?W|M|-)+`, (*phrase).takeExcept},
		{`bD-?D`, func(p *phrase, run []phraseWord) { p.takeStart(run[:2]); p.takeEnd(run[2:]) }},
		{`[sf]W?D`, (*phrase).takeStart},
		{`-W?D`, (*phrase).takeEnd},
		{`[sfb]?t-t|bt+`, (*phrase).takePart},
		{`[sf]t`, (*phrase).takeFirst},
		{`-t`, (*phrase).takeLast},
		{`Ei?U|U`, (*phrase).takeUnit},
		{`f?(?:Ei?)?W(?:-?E?W)*`, (*phrase).takeWeekdays},
		{`f?E?(?:[no]+M+)+|f?E?(?:M[no]+)+`, (*phrase).takeDates},
		{`f?E?M(?:-?M)*`, (*phrase).takeMonths},
		{`f?o+(?:-o)?`, (*phrase).takeOrdinals},
		{`E`, (*phrase).takeEvery},
		{`t+`, (*phrase).takeClocks},
		{`p+`, func(p *phrase, run []phraseWord) { p.past = p.numbers(p.past, run) }},
	} {
		takers = append(takers, taker{regexp.MustCompile("^(?:" + known.kinds + ")"), known.take})
	}
}

// reasons say why a word of a kind is left.
var reasons = map[byte]string{
	startWord: "a start is a date with its year, such as 1 March 2030", toWord: "an end is a date with its year, such as until 1 March 2030",
	exceptWord: "an exception is weekdays or months; other days are EXDATE lines", intervalWord: "a unit such as days is missing behind the interval",
	fromWord: `"from" has no end`, betweenWord: "a part of the day has two different ends, such as between 9:00 and 17:00",
}

func (p *phrase) parse() {
	for len(p.words) > 0 && p.reason == "" {
		kinds := kindsOf(p.words)
		found := slices.IndexFunc(takers, func(t taker) bool { return t.pattern.MatchString(kinds) })
		if found < 0 {
			p.refuseWord(p.words[0])
			return
		}
		length := len(takers[found].pattern.FindString(kinds))
		run := p.words[:length]
		p.words = p.words[length:]
		takers[found].take(p, run)
	}
}

func (p *phrase) refuseWord(word phraseWord) {
	switch {
	case unclear[word.text] != "":
		p.refuse(document.Found(word.text) + " could mean more than one thing; write " + unclear[word.text])
	case reasons[word.kind] != "" && (len(p.words) == 1 || unclear[p.words[1].text] == ""):
		p.refuse(reasons[word.kind])
	case reasons[word.kind] != "":
		p.refuseWord(p.words[1])
	case word.kind == unknownWord:
		p.refuse(document.Found(word.text) + " is not known")
	default:
		p.refuse(document.Found(word.text) + " does not belong there")
	}
}

// without returns a run without its first word, if that is of one of these kinds.
func without(run []phraseWord, kinds ...byte) ([]phraseWord, bool) {
	if slices.Contains(kinds, run[0].kind) {
		return run[1:], true
	}
	return run, false
}

// numbers returns those of words that stand together, rising.
func (p *phrase) numbers(before []int, run []phraseWord) (all []int) {
	for _, word := range run {
		if slices.Contains(all, word.n) {
			p.refuse(twice(word.text))
		}
		all = append(all, word.n)
	}
	if len(before) > 0 { // "Monday at 9:00 and Friday at 17:00" are two rules
		p.refuse("times of day that do not stand together need an RRULE line each")
	}
	slices.Sort(all)
	return all
}

func twice(text string) string { return document.Found(text) + " stands there twice" }

func (p *phrase) takeCount(run []phraseWord) {
	if p.count > 0 {
		p.refuse(twice(run[0].text))
	}
	p.count, p.counted, p.every = run[0].n, run[0].text, true
}

func (p *phrase) takeClocks(run []phraseWord) {
	p.clocks, p.named = p.numbers(p.clocks, run), true
}

// takeExcept takes "except Mondays to Wednesdays", "except in July and August".
func (p *phrase) takeExcept(run []phraseWord) {
	if len(p.exceptDays)+len(p.exceptMonths) > 0 {
		p.refuse(reasons[exceptWord])
	}
	var days, months []phraseWord
	for _, word := range run[1:] {
		if word.kind == monthWord || word.kind == toWord && len(months) > 0 {
			months = append(months, word)
		} else {
			days = append(days, word)
		}
	}
	p.exceptDays, p.exceptMonths = p.daysOf(days), p.monthsOf(months)
}

func (p *phrase) takeStart(run []phraseWord) {
	if p.start != "" || p.first != nil {
		p.refuse("it starts twice")
	}
	p.start = p.dateIn(run).Format("2006-01-02T15:04:05")
}

func (p *phrase) takeEnd(run []phraseWord) {
	if !p.until.IsZero() {
		p.refuse(reasons[toWord])
	}
	p.until = p.dateIn(run).Add(daySeconds*time.Second - time.Second)
}

// dateIn returns the date at the end of a run. A day of the week before it is that of the date.
func (p *phrase) dateIn(run []phraseWord) time.Time {
	date, _ := time.Parse(time.DateOnly, run[len(run)-1].text)
	if before := run[max(0, len(run)-2)]; before.kind == weekdayWord && before.n != 1<<weekdayOf(date) {
		p.refuse(document.Found(run[len(run)-1].text) + " is a " + weekdayNames[weekdayOf(date)])
	}
	return date
}

func weekdayOf(date time.Time) int { return (int(date.Weekday()) + 6) % 7 }

// takePart takes "9:00 to 17:00" or, behind "between", "9:00 and 17:00".
func (p *phrase) takePart(run []phraseWord) {
	var ends []int
	for _, word := range run {
		if word.kind == clockWord {
			ends = append(ends, word.n)
		}
	}
	if len(ends) != 2 || ends[0] == ends[1] {
		p.refuse(reasons[betweenWord])
	}
	p.between = append(p.between, ends...)
}

func (p *phrase) takeFirst(run []phraseWord) {
	if p.start != "" || p.first != nil {
		p.refuse("it starts twice")
	}
	if run[0].kind == fromWord && !slices.ContainsFunc(p.words, func(word phraseWord) bool { return word.kind == toWord }) {
		p.refuse(reasons[fromWord])
	}
	p.first = []int{run[1].n}
}

// takeLast takes the end of "from 9:00 on weekdays to 17:00".
func (p *phrase) takeLast(run []phraseWord) {
	if p.first == nil {
		p.refuse(reasons[toWord])
		return
	}
	p.between, p.first = []int{p.first[0], run[1].n}, nil
}

// takeEvery takes "every" before what it counts.
func (p *phrase) takeEvery([]phraseWord) { p.takeInterval(true, nil) }

func (p *phrase) takeInterval(every bool, run []phraseWord) {
	if !every {
		return
	}
	if p.said {
		p.refuse(`"every" stands there twice`)
	}
	p.every, p.said = true, true
	for _, word := range run {
		if word.kind == intervalWord {
			p.interval = p.intervalOf(word)
		}
	}
}

func (p *phrase) intervalOf(word phraseWord) int {
	if word.n < 1 || word.n > maxInterval {
		p.refuse("an interval is a number from 1 to " + strconv.Itoa(maxInterval))
	}
	return word.n
}

// takeUnit takes "every 2 days", "every second week", "of the month".
func (p *phrase) takeUnit(run []phraseWord) {
	unit, every := run[len(run)-1].text, run[0].kind == everyWord
	_, elapsed := elapsedUnits[unit]
	before := &p.unit
	switch {
	case elapsed:
		before = &p.pace
		if p.every = p.every || every; len(run) == 3 {
			p.step = p.intervalOf(run[1])
		}
	default:
		p.takeInterval(every, run)
	}
	switch {
	case *before != "":
		p.refuse(document.Found(*before) + " and " + document.Found(unit) + " do not go together")
	case !every && p.count == 0 && (elapsed || unit == "day" || unit == "week" || len(p.ordinals)+len(p.weekdays) == 0):
		p.refuse(`"every" is missing before ` + document.Found(unit))
	}
	*before = unit
}

// takeOrdinals takes "1st and 15th", "last", "from the 1st to the 5th".
func (p *phrase) takeOrdinals(run []phraseWord) {
	run, _ = without(run, fromWord)
	if len(p.ordinals)+len(p.weekdays) > 0 {
		p.refuse("days of two kinds need an RRULE line each")
	}
	p.numbered = beginsWithDigit(run[0].text)
	if len(p.words) > 0 && p.words[0].text == "day" { // "the last day"
		p.words = p.words[1:]
	}
	last := len(run) - 1
	if last < 2 || run[last-1].kind != toWord {
		p.ordinals = p.numbers(nil, run)
		return
	}
	from, to := run[0].n, run[last].n
	if last > 2 || from < 1 || to <= from || to > 31 {
		p.refuse("days from one to another rise")
	}
	for ; from <= to && to < 32; from++ {
		p.ordinals = append(p.ordinals, from)
	}
}

// takeWeekdays takes "every other Monday", "Monday and Friday", "weekdays and Saturday".
func (p *phrase) takeWeekdays(run []phraseWord) {
	run, _ = without(run, fromWord)
	rest, every := without(run, everyWord)
	if p.takeInterval(every, run[:min(2, len(run))]); rest[0].kind == intervalWord {
		if rest = rest[1:]; rest[0].text == "weekday" {
			p.refuse(reasons[intervalWord])
		}
	}
	if len(p.weekdays) > 0 {
		p.refuse("days of two kinds need an RRULE line each")
	}
	p.weekdays = p.daysOf(rest)
	p.group = len(p.weekdays) > 1 && slices.ContainsFunc(rest, func(word phraseWord) bool { return word.kind == toWord || word.text[:4] == "week" })
	p.workdays = len(rest) == 1 && rest[0].text == "weekday"
}

// daysOf returns the days of a list such as "Monday to Friday and Sunday", 0 for Monday, rising.
func (p *phrase) daysOf(run []phraseWord) (days []int) {
	for i, word := range run {
		last := len(days) - 1
		switch {
		case word.kind == toWord && (last < 0 || i == len(run)-1):
			p.refuse(document.Found(word.text) + " does not belong there")
		case word.kind != weekdayWord:
		case i > 0 && run[i-1].kind == toWord:
			for day := days[last] + 1; 1<<(day%7) != word.n && day < 14; day++ {
				days = append(days, day%7)
			}
			fallthrough
		default:
			for day := range weekdayNames {
				if word.n&(1<<day) > 0 {
					days = append(days, day)
				}
			}
		}
	}
	slices.Sort(days)
	for i := 1; i < len(days); i++ {
		if days[i] == days[i-1] {
			p.refuse(twice(weekdayNames[days[i]]))
		}
	}
	return days
}

// takeDates takes "March 1 and 15", "1 January and 1 July", "the 1st of April and October".
func (p *phrase) takeDates(run []phraseWord) {
	run, _ = without(run, fromWord)
	rest, every := without(run, everyWord)
	if p.takeInterval(every, nil); len(p.dates)+len(p.months) > 0 {
		p.refuse("months that do not stand together need an RRULE line each")
	}
	var days, months []int
	close := func() {
		for _, month := range months {
			p.addDate(month, days)
		}
		days, months = nil, nil
	}
	dayFirst := rest[0].kind != monthWord
	for i, word := range rest {
		if i > 0 && (word.kind == monthWord) != dayFirst && (rest[i-1].kind == monthWord) == dayFirst {
			close()
		}
		if word.kind == monthWord {
			months = append(months, word.n)
		} else {
			days = append(days, word.n)
		}
	}
	close()
}

func (p *phrase) addDate(month int, days []int) {
	same := slices.IndexFunc(p.dates, func(date phraseDate) bool { return date.month == month })
	if same < 0 {
		same = len(p.dates)
		p.dates = append(p.dates, phraseDate{month: month})
	}
	p.dates[same].days = append(p.dates[same].days, days...)
}

func (p *phrase) takeMonths(run []phraseWord) {
	run, _ = without(run, fromWord)
	rest, every := without(run, everyWord)
	if p.takeInterval(every, nil); len(p.dates)+len(p.months) > 0 {
		p.refuse("months that do not stand together need an RRULE line each")
	}
	p.months = p.monthsOf(rest)
}

// monthsOf returns the months of a list such as "June to August and October", rising.
func (p *phrase) monthsOf(run []phraseWord) (months []int) {
	for i, word := range run {
		if word.kind != monthWord {
			continue
		}
		for i > 1 && run[i-1].kind == toWord && months[len(months)-1]%12+1 != word.n {
			months = append(months, months[len(months)-1]%12+1)
		}
		months = append(months, word.n)
	}
	slices.Sort(months)
	for i := 1; i < len(months); i++ {
		if months[i] == months[i-1] {
			p.refuse(twice(monthNames[months[i]-1]))
		}
	}
	return months
}
