package english

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/schedule"
)

var (
	weeklyDays = regexp.MustCompile(`^FREQ=WEEKLY;BYDAY=([A-Z,]+);BYHOUR=0;BYMINUTE=0;BYSECOND=0$`)
	twoHours   = regexp.MustCompile(`(?i)^(?:(?:between|from) (.+) (?:and|to|until)|before) (.+)$`)
	oneHour    = regexp.MustCompile(`^(\d{1,2})(:00)? ?([ap]m)?$`)
)

func (d *draft) windowOpen(slots []string) error { return d.setWindow(slots, false) }

func (d *draft) windowClosed(slots []string) error { return d.setWindow(slots, true) }

// setWindow reads days, hours, or both; others: those that are not named.
func (d *draft) setWindow(slots []string, others bool) error {
	rule, hours := "FREQ=DAILY", ""
	for _, slot := range slots {
		if found := twoHours.FindStringSubmatch(strings.ToLower(slot)); found != nil {
			open, wraps := hoursBetween(found[1], found[2], others)
			if open == nil || wraps && len(slots) > 1 { // which night is that of a Friday?
				return errNotKnown
			}
			hours = ";BYHOUR=" + strings.Join(open, ",")
			continue
		}
		text, err := schedule.RuleText(strings.TrimPrefix(strings.ToLower(slot), "on "))
		days := weeklyDays.FindStringSubmatch(text)
		if err != nil || days == nil {
			return errNotKnown
		}
		open := slices.DeleteFunc(strings.Split("MO,TU,WE,TH,FR,SA,SU", ","), func(day string) bool { return strings.Contains(days[1], day) == others })
		if len(open) == 0 {
			return errNotKnown
		}
		rule = "FREQ=WEEKLY;BYDAY=" + strings.Join(open, ",")
	}
	return d.set("retry_window", rule+hours)
}

// hoursBetween lists the hours from one to another, or all others; nil: it is not clear which. wraps: midnight lies between them.
func hoursBetween(from, to string, others bool) (hours []string, wraps bool) {
	first, firstKind := readHour(from)
	last, lastKind := readHour(to)
	if last == 0 {
		last = 24
	}
	switch {
	case first < 0 || last < 0 || first > 23 || last > 24 || first == last:
		return nil, false
	case firstKind != lastKind && (firstKind == "bare" || lastKind == "bare" || firstKind != "word" && lastKind != "word"):
		return nil, false // AM or PM is needed at each or at none
	case firstKind == "bare" && (last <= 12 || first > last): // "between 9 and 5"
		return nil, false
	}
	for hour := range 24 {
		within := hour >= first && hour < last
		if first > last {
			within = hour >= first || hour < last
		}
		if within != others {
			hours = append(hours, strconv.Itoa(hour))
		}
	}
	return hours, first > last
}

// readHour reads an hour and how it was written: by a word, as half a day, as a clock or as a bare number; negative: it is none.
func readHour(text string) (hour int, kind string) {
	switch text {
	case "", "midnight":
		return 0, "word"
	case "noon":
		return 12, "word"
	}
	parts := oneHour.FindStringSubmatch(strings.ReplaceAll(text, ".", ""))
	if parts == nil {
		return -1, ""
	}
	hour, _ = strconv.Atoi(parts[1])
	switch {
	case parts[3] == "" && parts[2] != "":
		return hour, "clock"
	case parts[3] == "":
		return hour, "bare"
	case hour < 1 || hour > 12:
		return -1, ""
	case parts[3] == "pm":
		return hour%12 + 12, "half"
	default:
		return hour % 12, "half"
	}
}
