package schedule

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// halves are parts of the day by their first and last hour; hours of the next day count from 24. A day has each hour of a loose time twice.
var halves = map[string]struct{ first, last int }{
	"am": {0, 11}, "pm": {12, 23}, "morning": {1, 11}, "afternoon": {12, 18}, "evening": {16, 23}, "night": {19, 29},
}

// within returns the minute that a time has in a part of the day, from its midnight on. One that is not loose, or an end, may also end it.
func (w phraseWord) within(part string, isEnd bool) (minute int, ok bool) {
	h, step := halves[part], dayMinutes/2
	if w.kind == clockWord {
		step, isEnd = dayMinutes, true
	}
	for minute = w.n % step; minute < h.first*60; {
		minute += step
	}
	return minute, minute < (h.last+1)*60 || isEnd && minute == (h.last+1)*60
}

var (
	timeRun    = regexp.MustCompile(`[tl]h?(?:-?[tl]h?)*`)
	partOfDay  = regexp.MustCompile(`(h+)([^h]*)`)
	partBehind = regexp.MustCompile(`^[^h]*[^tlh](h+)[^tlh]*$`)
)

// settle gives each time its half of the day: the one behind it or, behind a list or a range, once for all of them ("1:30 to 3:30 PM"); the one of
// the part of the day before them ("every evening at 6 and 7:30"), or of the only one ("at 6 on Sunday evenings"). Where this leaves two
// readings it refuses both.
func (r *phraseReader) settle() {
	kinds := kindsOf(r.words)
	spans := [][]int{{0, 0, 0, len(kinds)}} // of parts of the day, and of their times
	behind, before := partBehind.FindStringSubmatchIndex(kinds), partOfDay.FindAllStringSubmatchIndex(kinds, -1)
	if behind != nil && strings.ContainsAny(kinds[:behind[2]], "tl") {
		spans = [][]int{{behind[2], behind[3], 0, behind[2]}}
	} else if len(before) > 0 && !strings.ContainsAny(kinds[:before[0][0]], "tl") {
		spans = nil
		for _, found := range before {
			spans = append(spans, found[2:6])
		}
	}
	var settled []phraseWord
	last := 0
	for _, span := range spans {
		parts := slices.Clone(r.words[span[0]:span[1]])
		runs := timeRun.FindAllStringIndex(kinds[span[2]:span[3]], -1)
		if len(parts) > 0 && len(runs) == 0 {
			r.refuse(document.Found(parts[0].text) + " could mean more than one thing; write a time such as every day at 8:00")
		}
		for i := range parts {
			r.words[span[0]+i].kind = fillerWord
		}
		for _, run := range runs {
			from, to := span[2]+run[0], span[2]+run[1]
			settled = append(append(settled, r.words[last:from]...), r.settleRun(from, to, parts)...)
			last = to
		}
	}
	settled = append(settled, r.words[last:]...)
	r.words = slices.DeleteFunc(settled, func(word phraseWord) bool { return word.kind == fillerWord })
}

// settleRun settles neighbouring times, by the parts of the day before them or behind them.
func (r *phraseReader) settleRun(from, to int, parts []phraseWord) (settled []phraseWord) {
	ends := from > 0 && (r.words[from-1].kind == betweenWord || r.words[from-1].kind == fromWord)
	for _, word := range r.words[from:to] {
		if ends = ends || word.kind == toWord; word.kind == halfWord {
			settled[len(settled)-1].half = word.text
		} else {
			settled = append(settled, word)
		}
	}
	var times []*phraseWord
	for i := range settled {
		if settled[i].kind != toWord {
			times = append(times, &settled[i])
		}
	}
	if ends = ends && len(times) == 2; len(parts) == 0 {
		r.carry(times, ends)
	}
	return append(settled, r.place(times, parts, ends)...)
}

// carry carries the half behind a time to those before it, as long as they rise: 6 and 7:30 pm, but neither 6 and 4 PM nor 9 AM and 5.
func (r *phraseReader) carry(times []*phraseWord, ends bool) {
	after := ""
	for k := len(times) - 1; k >= 0; k-- {
		time, half, sure := times[k], times[k].half, true
		if after != "" && time.kind == clockWord && half == "" && time.text[0] == '0' && times[k+1].text[0] == '0' { // "02:30 and 04:30 PM"
			time.kind = looseWord
		}
		minute, ok := time.within(cmp.Or(half, after), ends && k == 1)
		switch {
		case half != "":
			sure = ok && (time.kind == looseWord || beginsWithDigit(time.text))
			time.n, after, r.halved = minute, half, true
			r.late = r.late || minute >= dayMinutes/2
		case time.kind == clockWord:
			after = ""
			before := times[max(0, k-1)] // "6 to midnight", "10, 11 and midnight"
			sure = time.text != "midnight" || before.kind == clockWord || before.half != "" || !ends && strings.Contains(before.text, ":")
		case after != "" && ok && minute < times[k+1].n && (ends || minute >= 60 || minute == time.n): // "12 and 6 AM" is not clear
			if k > 0 && times[k-1].half != "" && times[k-1].half != after { // nor is "1 AM, 5 and 9 PM"
				early, ok := time.within(times[k-1].half, false)
				sure = !ok || early <= times[k-1].n
			}
			time.n = minute
		case after != "": // "from 9 to 5 PM" is clear
			sure = ends && time.n < times[k+1].n
		case k == 0:
			r.plain = true
			sure = len(times) == 1 || ends || times[1].kind == clockWord || times[1].n > time.n // "9 and 5"
		default:
			before := cmp.Or(times[k-1].half, map[string]string{"noon": "pm"}[times[k-1].text])
			minute, ok = time.within(before, false)
			sure = before == "" && (times[k-1].n < time.n || ends && times[0].n > dayMinutes/2) || before != "" && ok && minute == time.n && minute > times[k-1].n
		}
		r.falls = r.falls || !ends && k > 0 && times[k].n < times[k-1].n
		if !sure {
			early := time.n % (dayMinutes / 2)
			r.refuse(fmt.Sprintf("%s could be %s or %s: AM or PM is needed at each time", document.Found(time.text), spokenClock(early), spokenClock(early+dayMinutes/2)))
		}
	}
}

func spokenClock(minute int) string { return timeOfDay(int64(minute) * 60) }

// place places times in the parts of the day before them: "every morning and evening at 8" is two times.
func (r *phraseReader) place(times []*phraseWord, parts []phraseWord, ends bool) (more []phraseWord) {
	for k, time := range times {
		was := *time
		for i, part := range parts {
			minute, ok := was.within(part.text, ends && k == 1)
			if !ok || i > 0 && (was.kind != looseWord || ends) || was.half != "" && len(was.half) > 2 {
				r.refuse(document.Found(was.text) + " is no time of the " + part.text)
			}
			if i == 0 && k > 0 && !ends && minute <= times[k-1].n { // "every morning at 8 and 2"
				r.refuse(document.Found(was.text) + " comes before " + document.Found(times[k-1].text))
			}
			r.halved = true
			r.nights, r.late = r.nights || minute >= dayMinutes, r.late || minute >= dayMinutes/2
			if i > 0 {
				more = append(more, phraseWord{kind: clockWord, text: was.text, n: time.n % dayMinutes})
			}
			time.n = minute
		}
		time.kind, time.n = clockWord, time.n%dayMinutes
	}
	return more
}
