package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/document"
)

// Bounds of a rule. They keep every admitted rule cheap, and they are far from anything in use.
const (
	maxInterval = 1_000_000
	maxCount    = 10_000
	maxTimes    = 1_440 // length of BYHOUR times BYMINUTE times BYSECOND: one a minute
)

// ruleLine is one RRULE line as it was read: the library's options, without a DTSTART.
type ruleLine struct {
	rrule.ROption
	hasUntil  bool
	until     int64  // an instant, inclusive
	untilDate string // as it was written; empty: a time was

	field string // the name of the line in a refusal, e.g. "rrule line 2"
	zone  zone   // the zone of an UNTIL without Z
	seen  []string
}

func (r *ruleLine) refuse(part, want, found string) error {
	return &document.Error{Field: strings.TrimSpace(r.field + " " + part), Want: want, Found: found}
}

// read is stricter than the library: some of what that accepts panics, loops or means something else when it is evaluated.
func (r *ruleLine) read(part string) error {
	name, value, ok := strings.Cut(part, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok || name == "" || value == "" {
		return r.refuse("", "parts such as FREQ=DAILY, separated by semicolons", document.Found(part))
	}
	if slices.Contains(r.seen, name) {
		return r.refuse(name, "each part once", "it twice")
	}
	r.seen = append(r.seen, name)
	if list, ok := intLists[name]; ok {
		return r.readInts(name, value, list)
	}
	switch name {
	case "FREQ":
		var err error
		if r.Freq, err = rrule.StrToFreq(value); err != nil {
			return r.refuse(name, "YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY or SECONDLY", document.Found(value))
		}
		return nil
	case "INTERVAL":
		return r.readInt(name, value, maxInterval, &r.Interval)
	case "COUNT":
		return r.readInt(name, value, maxCount, &r.Count)
	case "UNTIL":
		moment := value
		if _, date := parseFirst(value, rfcDate); date {
			r.untilDate, moment = value, value+"T235959"
		}
		if r.until, r.hasUntil = readMoment(moment, r.zone, forever); !r.hasUntil {
			return r.refuse(name, wantMoment(forever)+", or a date, which it includes", document.Found(value))
		}
		return nil
	case "BYDAY":
		for item := range strings.SplitSeq(value, ",") {
			day, ok := readDay(strings.TrimSpace(item))
			if !ok || slices.Contains(r.Byweekday, day) {
				return r.refuse(name, "weekdays such as MO or -1FR, each once", document.Found(value))
			}
			r.Byweekday = append(r.Byweekday, day)
		}
		return nil
	case "WKST":
		var ok bool
		if r.Wkst, ok = readDay(value); !ok || r.Wkst.N() != 0 {
			return r.refuse(name, "one weekday such as MO", document.Found(value))
		}
		return nil
	case "DTSTART":
		return r.refuse(name, dtstartElsewhere, document.Found(part))
	default:
		return r.refuse("", "one of "+partNames, document.Found(name))
	}
}

const (
	partNames = "FREQ, INTERVAL, COUNT, UNTIL, WKST, BYMONTH, BYMONTHDAY, BYYEARDAY, BYWEEKNO, BYDAY, BYHOUR, BYMINUTE, BYSECOND, BYSETPOS"

	dtstartElsewhere = "the start in one line of its own, such as DTSTART:20260131T060000, or in the dtstart field"
)

func (r *ruleLine) readInt(name, value string, limit int, to *int) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > limit {
		return r.refuse(name, "a whole number from 1 to "+strconv.Itoa(limit), document.Found(value))
	}
	*to = n
	return nil
}

// intList is a part that lists numbers from first to last and, where they may count from the end, from -last to -1.
type intList struct {
	first, last int
	fromEnd     bool
	of          func(*ruleLine) *[]int
}

var intLists = map[string]intList{
	"BYMONTH":    {1, 12, false, func(r *ruleLine) *[]int { return &r.Bymonth }},
	"BYMONTHDAY": {1, 31, true, func(r *ruleLine) *[]int { return &r.Bymonthday }},
	"BYYEARDAY":  {1, 366, true, func(r *ruleLine) *[]int { return &r.Byyearday }},
	"BYWEEKNO":   {1, 53, true, func(r *ruleLine) *[]int { return &r.Byweekno }},
	"BYHOUR":     {0, 23, false, func(r *ruleLine) *[]int { return &r.Byhour }},
	"BYMINUTE":   {0, 59, false, func(r *ruleLine) *[]int { return &r.Byminute }},
	"BYSECOND":   {0, 59, false, func(r *ruleLine) *[]int { return &r.Bysecond }},
	"BYSETPOS":   {1, 366, true, func(r *ruleLine) *[]int { return &r.Bysetpos }},
}

func (r *ruleLine) readInts(name, value string, list intList) error {
	to := list.of(r)
	for item := range strings.SplitSeq(value, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(item))
		size := n
		if list.fromEnd {
			size = max(n, -n)
		}
		if err != nil || size < list.first || size > list.last || slices.Contains(*to, n) {
			want := fmt.Sprintf("numbers from %d to %d", list.first, list.last)
			if list.fromEnd {
				want += fmt.Sprintf(" or from -%d to -1", list.last)
			}
			return r.refuse(name, want+", each once", document.Found(value))
		}
		*to = append(*to, n)
	}
	return nil
}

// forever is the last year of an UNTIL; 99991231T235959Z is a customary way to write "no end".
const forever = 9999

var weekdays = []rrule.Weekday{rrule.MO, rrule.TU, rrule.WE, rrule.TH, rrule.FR, rrule.SA, rrule.SU}

func readDay(text string) (day rrule.Weekday, ok bool) {
	if len(text) < 2 {
		return day, false
	}
	at := slices.Index([]string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"}, text[len(text)-2:])
	if at < 0 {
		return day, false
	}
	ordinal := text[:len(text)-2]
	if ordinal == "" {
		return weekdays[at], true
	}
	n, err := strconv.Atoi(ordinal)
	return weekdays[at].Nth(n), err == nil && n != 0
}

// check refuses contradictions, and combinations that the library cannot evaluate or reads against RFC 5545.
func (r *ruleLine) check() error {
	if !slices.Contains(r.seen, "FREQ") {
		return r.refuse("FREQ", "a frequency such as FREQ=DAILY", "none")
	}
	if r.Count > 0 && r.hasUntil {
		return r.refuse("", "COUNT or UNTIL", "both")
	}
	if n := max(1, len(r.Byhour)) * max(1, len(r.Byminute)) * max(1, len(r.Bysecond)); n > maxTimes {
		return r.refuse("", "at most "+strconv.Itoa(maxTimes)+" combinations of BYHOUR, BYMINUTE and BYSECOND", strconv.Itoa(n))
	}
	numbered, limit := 0, 0 // the highest number of a weekday in the period; 0: days have none
	switch {
	case r.Freq == rrule.MONTHLY, r.Freq == rrule.YEARLY && len(r.Bymonth) > 0 && len(r.Byweekno) == 0:
		limit = 5
	case r.Freq == rrule.YEARLY && len(r.Byweekno) == 0:
		limit = 53
	}
	for _, day := range r.Byweekday {
		if day.N() == 0 {
			continue
		}
		numbered++
		if limit == 0 {
			return r.refuse("BYDAY", "days without a number, which need FREQ=MONTHLY, or FREQ=YEARLY without BYWEEKNO", document.Found(day.String()))
		}
		if day.N() > limit || day.N() < -limit {
			return r.refuse("BYDAY", fmt.Sprintf("a number from 1 to %[1]d, or from -%[1]d to -1", limit), document.Found(day.String()))
		}
	}
	switch {
	case numbered > 0 && numbered < len(r.Byweekday): // the library reads that against RFC 5545
		return r.refuse("BYDAY", "days that all have a number or all have none; use two RRULE lines", "both kinds")
	case len(r.Bysetpos) > 0 && r.Freq > rrule.DAILY:
		return r.refuse("BYSETPOS", "FREQ=DAILY or longer; name the minutes or seconds themselves", "FREQ="+r.Freq.String())
	case len(r.Bysetpos) > 0 && !filtersDays(&r.ROption) && !filtersTimes(&r.ROption):
		return r.refuse("BYSETPOS", "another BY part to choose from", "none")
	}
	return nil
}
