package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// halves are parts of the day by their first and last hour; hours of the next day count from 24. A day has each hour of a loose time twice.
var halves = map[string]struct{ first, last int }{
	"am": {0, 11}, "pm": {12, 23}, "morning": {1, 11}, "afternoon": {12, 18}, "evening": {16, 23}, "night": {19, 29},
}

func (w phraseWord) isTime() bool { return w.kind == clockWord || w.kind == looseWord }

// half is the part of the day that stands behind a time: "6 pm", "6 evening".
func (w phraseWord) half() string {
	if last := strings.TrimLeft(w.text[strings.LastIndex(w.text, " ")+1:], "0123456789:."); halves[last].last > 0 {
		return last
	}
	return ""
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

// settle gives each time its half of the day: that behind it or, behind a list or a range, once for all of them ("1:30 to 3:30 PM"), or before
// them ("every evening at 6 and 7:30"). Where this leaves two readings it refuses both.
func (r *phraseReader) settle() {
	var read []phraseWord
	before := false // a part of the day stands before times
	for i, word := range r.words {
		last, later := len(read)-1, slices.ContainsFunc(r.words[i+1:], phraseWord.isTime)
		switch {
		case word.kind != halfWord:
			read = append(read, word)
		case last >= 0 && read[last].isTime() && (!before || !later) && len(read[last].half()) < 3: // not yet in the morning
			read[last].text += " " + word.text
		case !later && (before || last >= 0 && read[last].isTime() || !slices.ContainsFunc(read, phraseWord.isTime)):
			r.refuse(document.Found(word.text) + " could mean more than one thing; write a time such as every day at 8:00")
		default:
			if last >= 0 && (read[last].kind == everyWord || read[last].kind == intervalWord) {
				read = append(read, phraseWord{unitWord, "day", 0})
			}
			at := len(read)
			if before = true; !later { // "at 6 on Sunday evenings"
				at = 0
			}
			read = slices.Insert(read, at, word)
		}
	}
	r.words = nil
	r.settleRuns(read)
}

// settleRuns settles times that stand together, each run of them by the parts of the day before it.
func (r *phraseReader) settleRuns(read []phraseWord) {
	placed := true // times stand behind each part of the day
	for i, parts := 0, []string(nil); i < len(read) && r.reason == ""; i++ {
		if read[i].kind == halfWord {
			if i == 0 || read[i-1].kind != halfWord {
				if parts = nil; !placed {
					r.refuse("the time of the first part of the day is missing")
				}
			}
			placed = false
			parts = append(parts, read[i].text)
			continue
		}
		var times []*phraseWord
		from, ends := i, i > 0 && (read[i-1].kind == betweenWord || read[i-1].kind == fromWord)
		for ; i < len(read) && (read[i].isTime() || i > from && read[i].kind == toWord && i+1 < len(read) && read[i+1].isTime()); i++ {
			if ends = ends || read[i].kind == toWord; read[i].isTime() {
				times = append(times, &read[i])
			}
		}
		if i == from {
			r.words = append(r.words, read[i])
			continue
		}
		placed, ends = true, ends && len(times) == 2
		if parts == nil {
			r.carry(times, ends)
		}
		more := r.place(times, parts, ends)
		r.words = append(append(r.words, read[from:i]...), more...)
		i--
	}
}

// carry carries the half behind a time to those before it, as long as they rise: 6 and 7:30 pm, but neither 6 and 4 PM nor 9 AM and 5.
func (r *phraseReader) carry(times []*phraseWord, ends bool) {
	after := ""
	for k := len(times) - 1; k >= 0; k-- {
		time, half, sure := times[k], times[k].half(), true
		if after != "" && time.kind == clockWord && half == "" && time.text[0] == '0' && times[k+1].text[0] == '0' { // "02:30 and 04:30 PM"
			time.kind = looseWord
		}
		minute, ok := time.within(cmp.Or(half, after), ends && k == 1)
		switch {
		case half != "":
			sure = ok && (time.kind == looseWord || beginsWithDigit(time.text))
			time.n, after = minute, half
			r.late = r.late || minute >= dayMinutes/2
		case time.kind == clockWord:
			after = ""
			sure = !ends || k == 0 || time.text != "midnight" || times[0].kind == clockWord || times[0].half() != "" // "6 to midnight"
		case after != "" && ok && minute < times[k+1].n && (ends || minute >= 60 || minute == time.n): // "12 and 6 AM" is not clear
			if k > 0 && times[k-1].half() != "" && times[k-1].half() != after { // nor is "1 AM, 5 and 9 PM"
				early, ok := time.within(times[k-1].half(), false)
				sure = !ok || early <= times[k-1].n
			}
			time.n = minute
		case after != "": // "from 9 to 5 PM" is clear
			sure = ends && time.n < times[k+1].n
		case k == 0:
			r.plain = true
		default:
			before := cmp.Or(times[k-1].half(), map[string]string{"noon": "pm", "midday": "pm"}[times[k-1].text])
			minute, ok = time.within(before, false)
			sure = before == "" && (!ends || times[0].n < time.n || times[0].n > dayMinutes/2) || before != "" && ok && minute == time.n && minute > times[k-1].n
		}
		if !sure {
			early := time.n % (dayMinutes / 2)
			r.refuse(fmt.Sprintf("%s could be %s or %s: AM or PM is needed at each time", document.Found(time.text), spokenClock(early), spokenClock(early+dayMinutes/2)))
		}
	}
}

func spokenClock(minute int) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }

// place places times in the parts of the day before them: "every morning and evening at 8" is two times.
func (r *phraseReader) place(times []*phraseWord, parts []string, ends bool) (more []phraseWord) {
	for k, time := range times {
		was := *time
		for i, part := range parts {
			minute, ok := was.within(part, ends && k == 1)
			if !ok || i > 0 && (was.kind != looseWord || ends) {
				r.refuse(document.Found(was.text) + " is no time of the " + part)
			}
			r.nights, r.late = r.nights || minute >= dayMinutes, r.late || minute >= dayMinutes/2
			if i > 0 {
				more = append(more, phraseWord{clockWord, was.text, time.n % dayMinutes})
			}
			time.n = minute
		}
		time.kind, time.n = clockWord, time.n%dayMinutes
	}
	return more
}
