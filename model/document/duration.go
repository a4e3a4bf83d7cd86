package document

import (
	"strconv"
	"strings"
	"time"
)

// MaxDuration is the longest duration that a document may ask for: ten years of 365 days.
const MaxDuration = 10 * 365 * 24 * time.Hour

// wantDuration is what every refusal of a duration expects.
const wantDuration = `a duration such as "90s", "1h30m", "PT5M" or "10 minutes"`

// ParseDuration reads a length of time in one of four ways: ISO 8601 ("PT5M", "P1W", "P1DT2H"), Go ("1h30m",
// "250ms", and also "1d" and "1w"), plain English ("10 minutes", "1 hour 30 minutes"), or bare seconds ("90"). Empty, "0"
// and "null" are zero. Case does not matter; units go from the longest to the shortest, each at most once.
//
// The result lies between 0 and ten years (3650 days) and is a whole number of milliseconds. A day is 24 hours and a week
// 7 days; months and years have no fixed length and are refused. Every refusal is a *Error without a Field.
func ParseDuration(text string) (time.Duration, error) {
	lower := strings.ToLower(strings.TrimSpace(text))
	if lower == "" || lower == "null" {
		return 0, nil
	}
	scan, iso := durationScan{rest: lower}, strings.HasPrefix(lower, "p")
	reason := ""
	if iso {
		reason = scan.iso()
	} else {
		reason = scan.words()
	}
	if reason != "" {
		return 0, &Error{Want: wantDuration, Found: Found(text) + " (" + reason + ")"}
	}
	return time.Duration(scan.total) * time.Millisecond, nil
}

// durationUnits names the units in the order in which they may follow each other. The first name of each is canonical.
var durationUnits = []struct {
	length time.Duration
	iso    string // designator in ISO 8601, with its T when it is a unit of time
	names  string
}{
	{7 * 24 * time.Hour, "w", " w week weeks "},
	{24 * time.Hour, "d", " d day days "},
	{time.Hour, "th", " h hr hrs hour hours "},
	{time.Minute, "tm", " m min mins minute minutes "},
	{time.Second, "ts", " s sec secs second seconds "},
	{time.Millisecond, "", " ms msec msecs millisecond milliseconds "},
}

// durationScan reads numbers with units from the front of rest. Its methods return the reason of a refusal, or "".
type durationScan struct {
	rest  string
	total int64 // milliseconds so far
	next  int   // the first of durationUnits that may still come
}

// words reads the Go and the English form: "1h30m", "1 hour and 30 minutes", "90".
func (s *durationScan) words() string {
	for s.rest != "" {
		number, unit := s.number(), ""
		s.rest = strings.TrimLeft(s.rest, " ")
		unit, s.rest = cutLetters(s.rest)
		if unit == "" && s.rest == "" && s.next == 0 {
			unit = "s"
		}
		if reason := s.add(number, unit, findWord); reason != "" {
			return reason
		}
		s.rest = cutJoint(s.rest)
	}
	return ""
}

// iso reads the form of ISO 8601: P, days, T, times.
func (s *durationScan) iso() string {
	s.rest = s.rest[1:]
	if s.rest == "" {
		return "nothing after P"
	}
	prefix := ""
	for s.rest != "" {
		if prefix == "" && s.rest[0] == 't' {
			prefix, s.rest = "t", s.rest[1:]
		}
		number := s.number()
		if s.rest == "" {
			return "a number and a unit are missing at the end"
		}
		unit := prefix + s.rest[:1]
		s.rest = s.rest[1:]
		if reason := s.add(number, unit, findDesignator); reason != "" {
			return reason
		}
	}
	return ""
}

// number cuts the digits, with an optional fraction, off the front.
func (s *durationScan) number() string {
	end := 0
	for end < len(s.rest) && (s.rest[end] >= '0' && s.rest[end] <= '9' || s.rest[end] == '.') {
		end++
	}
	number := s.rest[:end]
	s.rest = s.rest[end:]
	return number
}

func (s *durationScan) add(number, unit string, find func(string) int) string {
	if number == "" {
		return "a number from 0 is missing before " + Found(unit+s.rest)
	}
	switch at := find(unit); {
	case at == notFixed:
		return "months and years have no fixed length"
	case at == notUnit:
		return "the unit " + Found(unit) + " is not known"
	case at < s.next:
		return "units go from the longest to the shortest, each once"
	default:
		s.next = at + 1
		return s.addLength(number, durationUnits[at].length)
	}
}

func (s *durationScan) addLength(number string, unit time.Duration) string {
	whole, fraction, _ := strings.Cut(number, ".")
	fraction = strings.TrimRight(fraction, "0")
	if whole == "" || strings.Contains(fraction, ".") {
		return Found(number) + " is not a number"
	}
	ms, limit := unit.Milliseconds(), MaxDuration.Milliseconds()
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > limit/ms {
		return "at most ten years"
	}
	part, exact := fractionOf(fraction, ms)
	if !exact {
		return "finer than a millisecond"
	}
	if s.total += n*ms + part; s.total > limit {
		return "at most ten years"
	}
	return ""
}

// fractionOf returns 0.digits of length; exact is false when that is not a whole number. Nine digits are enough, because no
// unit has that many factors of ten.
func fractionOf(digits string, length int64) (part int64, exact bool) {
	if len(digits) > 9 {
		return 0, false
	}
	scale := int64(1)
	for i := range digits {
		part, scale = part*10+int64(digits[i]-'0'), scale*10
	}
	return part * length / scale, part*length%scale == 0
}

// What findWord and findDesignator return for something that is not one of durationUnits.
const (
	notUnit  = -1
	notFixed = -2
)

func findWord(unit string) int {
	switch unit {
	case "month", "months", "mo", "year", "years", "y", "yr", "yrs":
		return notFixed
	}
	for i, u := range durationUnits {
		if unit != "" && strings.Contains(u.names, " "+unit+" ") {
			return i
		}
	}
	return notUnit
}

func findDesignator(unit string) int {
	if unit == "m" || unit == "y" {
		return notFixed
	}
	for i, u := range durationUnits {
		if u.iso == unit {
			return i
		}
	}
	return notUnit
}

func cutLetters(text string) (letters, rest string) {
	end := 0
	for end < len(text) && text[end] >= 'a' && text[end] <= 'z' {
		end++
	}
	return text[:end], text[end:]
}

// cutJoint removes what may stand between two amounts: blanks, a comma, "and". At the very end nothing may stand.
func cutJoint(text string) string {
	joint := strings.TrimLeft(text, " ")
	joint = strings.TrimLeft(strings.TrimPrefix(joint, ","), " ")
	joint = strings.TrimLeft(strings.TrimPrefix(joint, "and "), " ")
	if joint == "" {
		return text
	}
	return joint
}

// FormatDuration returns the canonical short text of a duration: "0s", "250ms", "1m", "1h30m", "1d", "10d12h", and weeks
// only when they are whole ("2w"). ParseDuration reads it back to the same value. Parts below a millisecond are cut off; a
// negative duration gets a leading minus sign, which ParseDuration refuses.
func FormatDuration(d time.Duration) string {
	return formatDuration(d, "", func(n int64, names []string) string { return strconv.FormatInt(n, 10) + names[0] })
}

// FormatDurationInWords is FormatDuration in English: "1 hour 30 minutes".
func FormatDurationInWords(d time.Duration) string {
	return formatDuration(d, " ", func(n int64, names []string) string {
		if n == 1 {
			return "1 " + names[len(names)-2]
		}
		return strconv.FormatInt(n, 10) + " " + names[len(names)-1]
	})
}

// formatDuration joins the amounts of the units that a duration has. The last two names of a unit are its singular and its plural.
func formatDuration(d time.Duration, joint string, amount func(n int64, names []string) string) string {
	ms, sign := d.Milliseconds(), ""
	if ms < 0 {
		sign, ms = "-", -ms
	}
	var amounts []string
	for i, unit := range durationUnits {
		length := unit.length.Milliseconds()
		if weeks := i == 0; weeks && ms%length != 0 {
			continue
		}
		if n := ms / length; n > 0 || d.Milliseconds() == 0 && unit.length == time.Second {
			amounts = append(amounts, amount(n, strings.Fields(unit.names)))
			ms -= n * length
		}
	}
	return sign + strings.Join(amounts, joint)
}
