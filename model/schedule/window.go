package schedule

import (
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Window is when retries may start: the hours that a rule names, on the wall clock of a zone. A nil Window is always
// open. It is immutable and safe for concurrent use.
type Window struct {
	starts *Schedule
	length time.Duration // of one opening
	zone   zone
}

// ParseWindow compiles the rule of a retry window. Each hour that it names is open as a whole: BYHOUR=9,10 is open from 9:00 to
// 11:00. With BYMINUTE it is each minute named; without BYHOUR the whole day. compile is Parse, or a cache of it.
func ParseWindow(rule, timezone string, compile Compile) (*Window, error) {
	text, length := strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(rule)), "RRULE:"), time.Hour
	want := "one rule of the hours in which retries may start, such as FREQ=DAILY;BYHOUR=9,10,11"
	if strings.Contains(text, "\n") {
		return nil, document.Refuse(windowField, want, "several lines")
	}
	has := func(part string) bool {
		return slices.ContainsFunc(strings.Split(text, ";"), func(item string) bool { return strings.HasPrefix(strings.TrimSpace(item), part+"=") })
	}
	for _, part := range []string{"BYSECOND", "COUNT", "UNTIL"} {
		if has(part) {
			return nil, document.Refuse(windowField, want, part)
		}
	}
	switch {
	case has("BYMINUTE") && !has("BYHOUR"):
		return nil, document.Refuse(windowField, "BYHOUR with BYMINUTE", "BYMINUTE alone")
	case has("BYMINUTE"):
		text, length = text+";BYSECOND=0", time.Minute
	case has("BYHOUR"):
		text += ";BYMINUTE=0;BYSECOND=0"
	default:
		text += allHours + ";BYMINUTE=0;BYSECOND=0"
	}
	starts, err := compile(text, timezone, DefaultDtstart)
	if err != nil {
		return nil, document.Rename(err, "rrule", windowField)
	}
	z, err := loadZone(timezone)
	return &Window{starts, length, z}, err
}

const windowField = "retry_window"

const allHours = ";BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23"

// Open returns the first instant from at on that lies in the window; at itself when the window will not open again, because a
// retry is not lost for that. With an error, which comes from Schedule.Evaluate, it is at itself too.
func (w *Window) Open(at time.Time) (time.Time, error) {
	if w == nil {
		return at, nil
	}
	opens, found, err := within(at, func(b *budget) (time.Time, bool) {
		// When the clocks go back, they first showed the present time earlier in the night.
		shown, _, _ := w.zone.resolve(w.wall(at))
		first := at.Add(time.Duration(shown-at.Unix()) * time.Second)
		if w.holds(at, b) || !first.Equal(at) && w.holds(first, b) {
			return at, true
		}
		return w.starts.ask(at, b)
	})
	if err != nil {
		return at, document.Rename(err, "rrule", windowField)
	}
	if !found {
		return at, nil
	}
	return opens, nil
}

// holds reports whether an opening still lasts. One whose beginning the clocks skipped began late, but ends in time.
func (w *Window) holds(at time.Time, b *budget) bool {
	began, found := w.starts.ask(at.Add(-w.length), b)
	for found && !began.After(at) {
		if skipped := time.Duration(w.wall(began)) * time.Second % w.length; at.Sub(began) < w.length-skipped {
			return true
		}
		began, found = w.starts.ask(began, b)
	}
	return false
}

func (w *Window) wall(at time.Time) int64 { return at.Unix() + w.zone.offset(at.Unix()) }
