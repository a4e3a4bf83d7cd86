package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// hostileRule is a schedule as its author would send it.
type hostileRule struct{ Text, Timezone, Dtstart string }

func (r hostileRule) String() string {
	return fmt.Sprintf("%q in %q from %s", r.Text, r.Timezone, r.Dtstart)
}

// worstRules are rules that are known to have cost much: seven lines that hardly ever occur beside one that always does, and what steps
// over the times that it asks for.
var worstRules = []hostileRule{
	{sparse + "FREQ=SECONDLY", "", "2026-01-03"},
	{sparse + "FREQ=SECONDLY;BYSECOND=7", "America/New_York", "2026-01-03"},
	{"FREQ=SECONDLY;INTERVAL=86399;BYHOUR=0", "", "2026-01-01"},
	{"FREQ=SECONDLY;INTERVAL=86401;BYHOUR=0;BYMINUTE=0", "", "2026-01-01"},
	{"FREQ=DAILY;INTERVAL=7;BYDAY=TH\nFREQ=DAILY;INTERVAL=999983;BYDAY=MO", "Europe/Berlin", "2026-01-01"},
	{"FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=" + listed(1, 366) + "," + listed(-366, -1), "", "2026-01-01"},
	{"FREQ=DAILY;COUNT=10000", "America/New_York", "2026-01-01"},
	{"FREQ=MINUTELY;INTERVAL=1441;BYHOUR=3;BYDAY=MO;BYMONTH=2", "Australia/Lord_Howe", "2026-02-02T03:00:00"},
}

const sparse = "FREQ=HOURLY;INTERVAL=999983;BYDAY=SA\nFREQ=HOURLY;INTERVAL=999979;BYDAY=SA\nFREQ=HOURLY;INTERVAL=999961;BYDAY=SA\n" +
	"FREQ=HOURLY;INTERVAL=999959;BYDAY=SA\nFREQ=HOURLY;INTERVAL=999953;BYDAY=SA\nFREQ=HOURLY;INTERVAL=999931;BYDAY=SA\n" +
	"FREQ=HOURLY;INTERVAL=999917;BYDAY=SA\n"

func listed(first, last int) string {
	var text []string
	for n := first; n <= last; n++ {
		text = append(text, fmt.Sprint(n))
	}
	return strings.Join(text, ",")
}

// hostileIntervals step over what a rule waits for: primes, and neighbours of a day, in hours, minutes and seconds.
var hostileIntervals = []int{2, 3, 7, 11, 13, 23, 25, 59, 61, 97, 167, 169, 366, 997, 1439, 1441, 3599, 3601, 7919, 10_079, 10_081, 86_399, 86_413, 604_801, 999_979, 999_983}

var zoneNames = []string{"", "", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/Santiago"}

// randomRule returns a random rule of up to eight lines, with exceptions.
func randomRule(r *rand.Rand) hostileRule {
	lines := []string{}
	for range 1 + r.IntN(1+r.IntN(8)) {
		lines = append(lines, "RRULE:"+endingLine(r))
	}
	if r.IntN(5) == 0 {
		lines = append(lines, dates(r, "EXDATE", 1+r.IntN(100)))
	}
	if r.IntN(20) == 0 {
		lines = append(lines, dates(r, "RDATE", 1+r.IntN(20)))
	}
	if r.IntN(50) == 0 {
		lines = append(lines, "EXRULE:"+endingLine(r))
	}
	start := time.Date(2001+r.IntN(26), 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(365*86_400)) * time.Second)
	if r.IntN(20) == 0 {
		start = start.AddDate(r.IntN(200)-31, 0, 0)
	}
	if r.IntN(2) == 0 {
		start = start.Truncate(24 * time.Hour)
	}
	return hostileRule{strings.Join(lines, "\n"), zoneNames[r.IntN(len(zoneNames))], start.Format("2006-01-02T15:04:05")}
}

// randomLine returns a random RRULE line without an end, and with one of these intervals if any. It may contradict itself.
func randomLine(r *rand.Rand, intervals []int) string {
	freqs := []string{"SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"}
	freq := r.IntN(len(freqs))
	parts := []string{"FREQ=" + freqs[freq]}
	add := func(chance int, name string, values func() string) {
		if r.IntN(100) < chance {
			parts = append(parts, name+"="+values())
		}
	}
	some := func(most, first, last int, fromEnd bool) func() string {
		return func() string {
			return distinctOnes(1+r.IntN(1+r.IntN(most)), func() string {
				n := first + r.IntN(last-first+1)
				if fromEnd && r.IntN(3) == 0 {
					n = -n
				}
				return fmt.Sprint(n)
			})
		}
	}
	add(70, "INTERVAL", func() string { return fmt.Sprint(intervals[r.IntN(len(intervals))]) })
	add(20, "BYMONTH", some(6, 1, 12, false))
	add(20, "BYMONTHDAY", some(31, 1, 31, true))
	add(10, "BYYEARDAY", some(100, 1, 366, true))
	add(10, "BYWEEKNO", some(30, 1, 53, true))
	add(40, "BYDAY", func() string {
		numbered := freq >= 5 && r.IntN(2) == 0
		return distinctOnes(1+r.IntN(5), func() string {
			day := weekdays[r.IntN(7)].String()
			if numbered {
				day = fmt.Sprint([]int{-5, -2, -1, 1, 2, 3, 5}[r.IntN(7)]) + day
			}
			return day
		})
	})
	add(30, "BYHOUR", some(12, 0, 23, false))
	add(30, "BYMINUTE", some(10, 0, 59, false))
	add(20, "BYSECOND", some(6, 0, 59, false))
	if len(parts) > 2 && freq >= 3 {
		add(20, "BYSETPOS", some(40, 1, []int{24, 48, 200, 366}[freq-3], true))
	}
	return strings.Join(parts, ";")
}

// endingLine is a randomLine that may end.
func endingLine(r *rand.Rand) string {
	switch text := randomLine(r, hostileIntervals); r.IntN(10) {
	case 0:
		return fmt.Sprint(text, ";COUNT=", 1+r.IntN(1+r.IntN(10_000)))
	case 1:
		return text + time.Date(2000+r.IntN(1+r.IntN(290)), 6, 1, 0, 0, r.IntN(86_400), 0, time.UTC).Format(";UNTIL=20060102T150405Z")
	default:
		return text
	}
}

// distinctOnes lists what so many calls of next return, each once.
func distinctOnes(tries int, next func() string) string {
	var list []string
	for range tries {
		if text := next(); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, ",")
}

func dates(r *rand.Rand, name string, n int) string {
	var list []string
	at := time.Date(2020+r.IntN(10), time.Month(1+r.IntN(12)), 1+r.IntN(28), 0, 0, 0, 0, time.UTC)
	step := []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}[r.IntN(4)]
	for range n {
		list = append(list, at.Format("20060102T150405"))
		at = at.Add(step)
	}
	return name + ":" + strings.Join(list, ",")
}
