package schedule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

type cronField struct {
	place       int // 1 to 5
	name        string
	first, last int
	names       []string // for the numbers from first on
}

var cronFields = [5]cronField{
	{1, "minute", 0, 59, nil},
	{2, "hour", 0, 23, nil},
	{3, "day of month", 1, 31, nil},
	{4, "month", 1, 12, []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{5, "day of week", 0, 6, []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}}, // and 7, Sunday again
}

type cronSet struct {
	field *cronField
	bits  uint64 // bit n is set when n is allowed
	star  bool   // the field is a * alone, which does not count as a restriction of days
	wild  bool   // the field holds a * and more
}

func (s cronSet) has(n int) bool { return s.bits>>n&1 == 1 }

func (s cronSet) full() bool { return len(s.list()) == 0 }

// list returns the numbers; none when all are allowed.
func (s cronSet) list() []int {
	var list []int
	for n := s.field.first; n <= s.field.last; n++ {
		if s.has(n) {
			list = append(list, n)
		}
	}
	if len(list) == s.field.last-s.field.first+1 {
		return nil
	}
	return list
}

func (f *cronField) read(text string) (cronSet, error) {
	set := cronSet{field: f, star: text == "*" || text == "*/1", wild: strings.Contains(text, "*")}
	for item := range strings.SplitSeq(strings.ToUpper(text), ",") {
		bits, ok := f.item(item)
		if !ok {
			want := fmt.Sprintf("numbers from %d to %d", f.first, f.last)
			if f.names != nil {
				want += " or " + f.names[0] + " to " + f.names[len(f.names)-1]
			}
			want += fmt.Sprintf(", as 1, 1-5, */2 or 1,5, in the %s (field %d of the cron expression)", f.name, f.place)
			if hint := f.hint(item); hint != "" {
				want += "; " + hint
			}
			return set, refuseRule(want, document.Found(text))
		}
		set.bits |= bits
	}
	if f.place == 5 && set.has(7) {
		set.bits |= 1
	}
	return set, nil
}

// item reads one of a list, e.g. "*/5", "MON-FRI" or "10-50/20". Crons disagree about what a step after a single number means, so it is refused.
func (f *cronField) item(text string) (bits uint64, ok bool) {
	span, stepText, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		if step, ok = words.Digits(stepText); !ok || step < 1 || step > f.last-f.first+1 {
			return 0, false
		}
	}
	from, to, ok := f.first, f.last, true
	if span != "*" {
		low, high, ranged := strings.Cut(span, "-")
		from, ok = f.value(low)
		if to = from; ranged {
			var toOK bool
			if to, toOK = f.value(high); f.place == 5 && high == "SUN" && from > 0 {
				to = 7
			}
			ok = ok && toOK && from <= to
		}
		ok = ok && (ranged || !stepped)
	}
	for n := from; ok && n <= to; n += step {
		bits |= 1 << n
	}
	return bits, ok
}

func (f *cronField) value(text string) (n int, ok bool) {
	if at := slices.Index(f.names, text); at >= 0 {
		return f.first + at, true
	}
	n, ok = words.Digits(text)
	return n, ok && n >= f.first && (n <= f.last || f.place == 5 && n == 7)
}

func (f *cronField) hint(item string) string {
	name, ordinal, nth := strings.Cut(item, "#") // "MON#2", the second Monday of the month
	if !nth {
		name, nth = strings.CutSuffix(item, "L") // "5L", its last Friday
		ordinal = "-1"
	}
	day, isDay := f.value(name)
	switch {
	case strings.Contains(item, "?"):
		return "* stands for ? as well"
	case strings.HasPrefix(item, "H") || strings.Contains(item, "~"):
		return "the spread of a policy keeps models apart"
	case f.place == 3 && item == "LW":
		return "the last working day is FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"
	case f.place == 3 && strings.Contains(item, "W"):
		return nearestWeekday
	case f.place == 3 && strings.HasPrefix(item, "L"):
		return "the last day of the month is FREQ=MONTHLY;BYMONTHDAY=-1"
	case f.place == 5 && nth && isDay:
		return "that day of the month is FREQ=MONTHLY;BYDAY=" + document.Shorten(ordinal, 5) + weekdays[(day+6)%7].String()
	default:
		return f.spanHint(item)
	}
}

const nearestWeekday = "there is no W; write one RRULE line each for FREQ=MONTHLY;BYMONTHDAY=15;BYDAY=MO,TU,WE,TH,FR, for BYMONTHDAY=14;BYDAY=FR and for BYMONTHDAY=16;BYDAY=MO"

// spanHint is for "5/10", "22-2" and "*/90".
func (f *cronField) spanHint(item string) string {
	span, step, stepped := strings.Cut(item, "/")
	low, high, ranged := strings.Cut(span, "-")
	from, fromOK := f.value(low)
	to, toOK := f.value(high)
	number, stepOK := words.Digits(step)
	switch {
	case stepped && !ranged && fromOK:
		return fmt.Sprintf("a step needs a range, %d-%d/%s", from, f.last, document.Shorten(step, 10))
	case ranged && fromOK && toOK && from > to:
		return fmt.Sprintf("a range rises: %d-%d,%d-%d", from, f.last, f.first, to)
	case stepOK && number > f.last && f.place <= 2:
		return fmt.Sprintf(`"every %d %ss" counts beyond the field`, number, f.name)
	default:
		return ""
	}
}
