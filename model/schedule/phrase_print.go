package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/words"
)

// RuleEnglish says a rule in English that RuleText turns into the same text again, to the letter. ok is false for all other
// rules: those that English has no words for here, and those that are written in another order.
func RuleEnglish(rule string) (text string, ok bool) {
	lines, ok := outlinesOf(rule)
	if !ok {
		return "", false
	}
	if text = speak(lines); text == "" {
		return "", false
	}
	again, err := RuleText(text)
	if err != nil || again != rule {
		return "", false
	}
	return text, true
}

// maxSpokenClocks bounds the times of day that a person would name.
const maxSpokenClocks = 24

// speak says lines that differ only in their times of day. What it says of others is wrong or empty.
func speak(lines []outline) string {
	for unit, freq := range elapsedUnits {
		if lines[0].freq == freq {
			return spokenEvery(lines[0].interval, unit)
		}
	}
	var clocks []int
	for _, line := range lines {
		if len(line.hours)*len(line.minutes) > maxSpokenClocks {
			return ""
		}
		for _, hour := range line.hours {
			for _, minute := range line.minutes {
				clocks = append(clocks, hour*60+minute)
			}
		}
	}
	if len(clocks) == 0 {
		return ""
	}
	slices.Sort(clocks)
	var times []string
	for _, clock := range clocks {
		times = append(times, fmt.Sprintf("%02d:%02d", clock/60, clock%60))
	}
	return speakDays(lines[0]) + " at " + words.List(times)
}

// spokenEvery says "every hour" and "every 2 hours".
func spokenEvery(interval int, unit string) string {
	if interval <= 1 {
		return "every " + unit
	}
	return "every " + strconv.Itoa(interval) + " " + unit + "s"
}

// speakDays says on which days a rule occurs. What it says of a frequency that nobody knows is wrong.
func speakDays(o outline) string {
	switch {
	case o.freq == "DAILY":
		return spokenEvery(o.interval, "day")
	case o.freq == "WEEKLY" && o.interval > 1:
		return spokenEvery(o.interval, "week") + " on " + spokenWeekdays(o.days)
	case o.freq == "WEEKLY":
		return "every " + spokenWeekdays(o.days)
	case o.freq == "MONTHLY" && o.interval > 1:
		return spokenEvery(o.interval, "month") + " on the " + spokenChoice(o)
	case o.freq == "MONTHLY":
		return "on the " + spokenChoice(o) + " of the month"
	default:
		return speakYear(o)
	}
}

// speakYear says "every quarter on the 1st", "every year on March 1" or "every year on the last Friday of May".
func speakYear(o outline) string {
	choice, months := spokenChoice(o), strings.Join(numerals(o.months), ",")
	last := strings.Contains(choice, "last")
	switch {
	case o.interval <= 1 && (months == "1,4,7,10" && !last || months == "3,6,9,12" && strings.HasPrefix(choice, "last")):
		return "every quarter on the " + choice
	case len(o.days) == 0 && !last:
		return spokenEvery(o.interval, "year") + " on " + words.List(spokenDates(o))
	default:
		return spokenEvery(o.interval, "year") + " on the " + choice + " of " + words.List(spokenMonths(o))
	}
}

func spokenMonths(o outline) (names []string) {
	for _, month := range o.months {
		names = append(names, monthNames[month-1])
	}
	return names
}

// spokenDates says each date of a year: "March 1".
func spokenDates(o outline) (dates []string) {
	for _, name := range spokenMonths(o) {
		for i, day := range numerals(o.monthDays) {
			if i == 0 {
				day = name + " " + day
			}
			dates = append(dates, day)
		}
	}
	return dates
}

// spokenWeekdays says "weekday" or "Monday and Friday".
func spokenWeekdays(days []string) string {
	switch strings.Join(days, ",") {
	case "MO,TU,WE,TH,FR":
		return "weekday"
	case "SA,SU":
		return "weekend"
	}
	_, names := splitDays(days)
	return words.List(names)
}

// splitDays takes "1MO" and "3MO" apart into their different numbers and their different days.
func splitDays(days []string) (ordinals, names []string) {
	for _, text := range days {
		day, _ := readDay(text)
		ordinal := "last"
		if day.N() > 0 {
			ordinal = words.FormatOrdinal(day.N())
		}
		name := weekdayNames[day.Day()]
		if !slices.Contains(ordinals, ordinal) {
			ordinals = append(ordinals, ordinal)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return ordinals, names
}

// spokenChoice says "1st and 15th", "last day" or "first and third Monday".
func spokenChoice(o outline) string {
	if len(o.days) > 0 {
		ordinals, names := splitDays(o.days)
		return words.List(ordinals) + " " + words.List(names)
	}
	var list []string
	for _, n := range o.monthDays {
		list = append(list, spokenOrdinal(n))
	}
	return words.List(list)
}

// spokenOrdinal says "1st", "22nd", and "last day" for -1.
func spokenOrdinal(n int) string {
	if n < 0 {
		return "last day"
	}
	return words.ShortOrdinal(n)
}
