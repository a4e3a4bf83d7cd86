package schedule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// halves are parts of the day by their first and last hour; hours of the next day count from 24. A day has them twice, or once by its clock.
var halves = map[string]struct{ first, last int }{
	"am": {0, 11}, "pm": {12, 23}, "morning": {1, 11}, "afternoon": {12, 18}, "evening": {16, 23}, "night": {19, 29},
}

func (w phraseWord) isTime() bool { return w.kind == clockWord || w.kind == looseWord }

// half is the part of the day that stands behind a time: "6 pm", "6 evening".
func (w phraseWord) half() string {
	last := strings.TrimLeft(w.text[strings.LastIndex(w.text, " ")+1:], "0123456789:")
	if halves[last].last == 0 {
		return ""
	}
	return last
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
	read, before := r.words, false
	r.words = nil
	for i, word := range read {
		last, later := len(r.words)-1, slices.ContainsFunc(read[i+1:], phraseWord.isTime)
		switch {
		case word.kind == numberWord && word.n < 24 && i+1 < len(read) && read[i+1].kind == halfWord: // "6 in the evening"
			r.words = append(r.words, phraseWord{looseWord, word.text, word.n * 60})
		case word.kind != halfWord:
			r.words = append(r.words, word)
		case last >= 0 && r.words[last].isTime() && !(before && later):
			r.words[last].text += " " + word.text
		case !later && !slices.ContainsFunc(read, phraseWord.isTime):
			r.reason = document.Found(word.text) + " could mean more than one thing; write a time such as every day at 8:00"
		default:
			if last >= 0 && (r.words[last].text == "every" || r.words[last].kind == intervalWord) {
				r.words = append(r.words, phraseWord{plainWord, "day", 0})
			}
			if before = true; !later && !slices.ContainsFunc(r.words, phraseWord.isHalf) { // "at 6 on Sunday evenings"
				r.words = slices.Insert(r.words, 0, word)
			} else {
				r.words = append(r.words, word)
			}
		}
	}
	r.settleRuns()
}

func (w phraseWord) isHalf() bool { return w.kind == halfWord }

func (r *phraseReader) settleRuns() {
	read := r.words
	r.words = nil
	var parts []string
	for i := 0; i < len(read) && r.reason == ""; i++ {
		switch {
		case read[i].isHalf():
			if i == 0 || !read[i-1].isHalf() {
				parts = nil
			}
			parts = append(parts, read[i].text)
		case read[i].isTime():
			ends := i > 0 && slices.Contains([]string{"between", "from"}, read[i-1].text)
			var times []*phraseWord
			from := i
			for ; i < len(read) && (read[i].isTime() || read[i].text == "to" && i+1 < len(read) && read[i+1].isTime()); i++ {
				if ends = ends || read[i].text == "to"; read[i].isTime() {
					times = append(times, &read[i])
				}
			}
			ends = ends && len(times) == 2
			r.carry(times, ends, len(parts) > 0)
			more := r.place(times, parts, ends)
			r.words = append(append(r.words, read[from:i]...), more...)
			i--
		default:
			r.words = append(r.words, read[i])
		}
	}
}

// carry carries the half behind a time to those before it, as long as they rise: 6 and 7:30 pm, but neither 6 and 4 PM nor 9 AM and 5.
func (r *phraseReader) carry(times []*phraseWord, ends, placed bool) {
	twelve := false
	for _, time := range times {
		if half := time.half(); half == "am" || half == "pm" {
			twelve = true
			for _, other := range times { // "02:30 and 04:30 PM"
				if other.half() == "" && other.kind == clockWord && time.text[0] == '0' && other.text[0] == '0' && other.n >= 60 {
					other.kind = looseWord
				}
			}
		}
	}
	after, done := "", make([]bool, len(times))
	for k := len(times) - 1; k >= 0; k-- {
		time, half := times[k], times[k].half()
		_, bare := words.Digits(time.text)
		switch {
		case half != "":
			minute, ok := time.within(half, ends && k == 1)
			if !ok || time.kind == clockWord && !beginsWithDigit(time.text) {
				r.reason = document.Found(time.text) + " is no time of day"
				return
			}
			time.n, after, done[k] = minute, half, true
		case time.kind == clockWord:
			if after = ""; bare && twelve {
				r.doubt(time)
			}
		case placed:
		case after != "":
			minute, ok := time.within(after, false)
			rises := ok && minute < times[k+1].n
			if done[k] = true; rises && (ends || minute >= 60 || time.n == minute) { // "12 and 6 AM" is not clear
				time.n = minute
			} else if !ends || time.n >= times[k+1].n { // "from 9 to 5 PM" is clear
				r.doubt(time)
			}
		case ends && k == 0 && times[1].text == "midnight", ends && k == 1 && times[0].n >= time.n && times[0].n <= dayMinutes/2 && times[0].half() == "":
			r.doubt(time)
		}
	}
	before := ""
	for k, time := range times {
		switch half := time.half(); {
		case half != "":
			before = half
		case time.text == "noon", time.text == "midday":
			before = "pm"
		case before != "" && time.kind == looseWord && !done[k] && !placed:
			if minute, ok := time.within(before, false); !ok || minute != time.n || minute < times[k-1].n {
				r.doubt(time)
			}
		}
	}
}

func (r *phraseReader) doubt(time *phraseWord) {
	minute := time.n % (dayMinutes / 2)
	r.reason = fmt.Sprintf("%s could be %s or %s: AM or PM is needed at each time", document.Found(time.text), spokenClock(minute), spokenClock(minute+dayMinutes/2))
}

func spokenClock(minute int) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }

// place places times in the parts of the day before them: "every morning and evening at 8" is two times.
func (r *phraseReader) place(times []*phraseWord, parts []string, ends bool) (more []phraseWord) {
	for k, time := range times {
		was := *time
		for i, part := range parts {
			minute, ok := was.within(part, ends && k == 1)
			if !ok || len(parts) > 1 && (was.kind != looseWord || len(times) > 1) {
				r.reason = document.Found(was.text) + " is no time of the " + part
			}
			r.nights = r.nights || minute >= dayMinutes
			if i > 0 {
				more = append(more, phraseWord{clockWord, was.text, minute % dayMinutes})
				continue
			}
			time.n = minute
		}
		time.kind, time.n = clockWord, time.n%dayMinutes
	}
	return more
}
