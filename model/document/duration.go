package document

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxDuration is the longest duration that a document may ask for: ten years of 365 days.
const MaxDuration = 10 * 365 * 24 * time.Hour

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
	rest, iso := strings.CutPrefix(lower, "p")
	scan := durationScan{rest: rest}
	if reason := scan.read(iso); reason != "" {
		return 0, &Error{Want: wantDuration, Found: Found(text) + " (" + reason + ")"}
	}
	return time.Duration(scan.total) * time.Millisecond, nil
}

// unitNames are the names of a unit, each between blanks: in words, and in ISO 8601 with its T when it is a unit of time.
type unitNames struct{ words, iso string }

// durationUnit is a unit. Its first word is the canonical one, its last two are singular and plural.
type durationUnit struct {
	length time.Duration
	unitNames
}

// durationUnits are in the order in which they may follow each other.
var durationUnits = []durationUnit{
	{7 * 24 * time.Hour, unitNames{" w week weeks ", " w "}},
	{24 * time.Hour, unitNames{" d day days ", " d "}},
	{time.Hour, unitNames{" h hr hrs hour hours ", " th "}},
	{time.Minute, unitNames{" m min mins minute minutes ", " tm "}},
	{time.Second, unitNames{" s sec secs second seconds ", " ts "}},
	{time.Millisecond, unitNames{" ms msec msecs millisecond milliseconds ", ""}},
}

var notFixed = unitNames{" month months mo year years y yr yrs ", " m y "}

// durationScan reads numbers with units from the front of rest. Its methods return the reason of a refusal, or "".
type durationScan struct {
	rest  string
	total int64 // milliseconds so far
	next  int   // the first of durationUnits that may still come
}

// read reads the Go and the English form, such as "1h30m", "1 hour and 30 minutes" or "90", or ISO 8601 behind its P: days, T, times.
func (s *durationScan) read(iso bool) string {
	if iso && s.rest == "" {
		return "nothing after P"
	}
	for prefix := ""; s.rest != ""; {
		if rest, times := strings.CutPrefix(s.rest, "t"); iso && times && prefix == "" {
			prefix, s.rest = "t", rest
		}
		number, unit := s.cut("0123456789."), ""
		switch {
		case !iso:
			s.cut(" ")
			if unit = s.cut("abcdefghijklmnopqrstuvwxyz"); unit == "" && s.rest == "" && s.next == 0 {
				unit = "s"
			}
		case s.rest == "":
			return "a number and a unit are missing at the end"
		default:
			unit, s.rest = prefix+s.rest[:1], s.rest[1:]
		}
		if reason := s.add(number, unit, iso); reason != "" {
			return reason
		}
		if !iso { // blanks, a comma or "and" may separate two amounts; nothing may follow the last
			rest := strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(s.rest, " "), ","), " ")
			s.rest = cmp.Or(strings.TrimLeft(strings.TrimPrefix(rest, "and "), " "), s.rest)
		}
	}
	return ""
}

func (s *durationScan) cut(characters string) string {
	rest := strings.TrimLeft(s.rest, characters)
	front := strings.TrimSuffix(s.rest, rest)
	s.rest = rest
	return front
}

func (s *durationScan) add(number, unit string, iso bool) string {
	named := func(names unitNames) bool {
		if iso {
			return strings.Contains(names.iso, " "+unit+" ")
		}
		return strings.Contains(names.words, " "+unit+" ")
	}
	at := slices.IndexFunc(durationUnits, func(u durationUnit) bool { return named(u.unitNames) })
	switch {
	case number == "":
		return "a number from 0 is missing before " + Found(unit+s.rest)
	case named(notFixed):
		return "months and years have no fixed length"
	case at < 0:
		return "the unit " + Found(unit) + " is not known"
	case at < s.next:
		return "units go from the longest to the shortest, each once"
	}
	s.next = at + 1
	return s.addLength(number, durationUnits[at].length)
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
	// Nine digits are enough, because no unit has that many factors of ten.
	part, _ := strconv.ParseInt("0"+fraction, 10, 64)
	scale := int64(math.Pow10(len(fraction)))
	if len(fraction) > 9 || part*ms%scale != 0 {
		return "finer than a millisecond"
	}
	if s.total += n*ms + part*ms/scale; s.total > limit {
		return "at most ten years"
	}
	return ""
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
			amounts = append(amounts, amount(n, strings.Fields(unit.words)))
			ms -= n * length
		}
	}
	return sign + strings.Join(amounts, joint)
}
