package schedule

import (
	"cmp"
	"encoding/json"
	"regexp"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Calendar says when nothing starts: from each occurrence of a rule on, for a length of time. It comes from ParseCalendar alone, is
// immutable and safe for concurrent use.
type Calendar struct {
	Name     string
	Rule     string        // an RRULE set, as Parse takes it
	Timezone string        // of the rule; empty: UTC
	Dtstart  string        // that the rule counts from; empty: DefaultDtstart
	For      time.Duration // elapsed time, whatever clocks do meanwhile, 1 minute to 31 days
	Reason   string        // for people; empty: none

	starts *Schedule
}

const (
	minClosed  = time.Minute
	maxClosed  = 31 * 24 * time.Hour
	maxAtATime = 366 * 24 * time.Hour // periods that touch or overlap
)

type calendarDocument struct {
	Name     string `json:"name"`
	Rule     string `json:"rrule"`
	Timezone string `json:"timezone,omitempty"`
	Dtstart  string `json:"dtstart,omitempty"`
	For      string `json:"for"`
	Reason   string `json:"reason,omitempty"`
}

// MarshalJSON renders the canonical form. ParseCalendar reads it back to an equal calendar.
func (c Calendar) MarshalJSON() ([]byte, error) {
	return json.Marshal(calendarDocument{c.Name, c.Rule, c.Timezone, c.Dtstart, document.FormatDuration(c.For), c.Reason})
}

// Equal reports whether both calendars say the same.
func (c Calendar) Equal(other Calendar) bool {
	c.starts, other.starts = nil, nil
	return c == other
}

// calendarName keeps "calendar:" with a name below 64 bytes, so that the hash of a model that waits for it stays small.
var calendarName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,49}$`)

// CheckCalendarName accepts in a field the name of a calendar: 1-50 letters, digits and _.- , beginning with a letter or digit.
func CheckCalendarName(field, name string) error {
	if calendarName.MatchString(name) {
		return nil
	}
	return document.Refuse(field, "the name of a calendar: 1-50 letters, digits or _.- (first a letter or digit)", document.Found(name))
}

// ParseCalendar reads a calendar from decoded JSON or YAML: {name, rrule, timezone, dtstart, for: 4h, reason}. The rule may be written in
// any way of RuleText. Every refusal is a *document.Error, also for a calendar which never opens.
func ParseCalendar(value any) (Calendar, error) {
	doc := document.Read(value, "name", "rrule", "timezone", "dtstart", "for", "reason")
	c := Calendar{Name: doc.Text("name")}
	doc.Fail(CheckCalendarName("name", c.Name))
	r := ReadFields(doc)
	if r.Rule == "" {
		doc.Fail(refuseRule(`a rule such as "FREQ=WEEKLY;BYDAY=SU;BYHOUR=2"`, document.Found(doc.Fields["rrule"])))
	}
	c.Rule, c.Timezone, c.Dtstart = r.Rule, r.Timezone, r.Dtstart
	if doc.Err() == nil {
		starts, err := Parse(c.Rule, c.Timezone, cmp.Or(c.Dtstart, DefaultDtstart))
		doc.Fail(err)
		c.starts = starts
	}
	c.For = doc.Length("for", 0)
	doc.Require(c.For >= minClosed && c.For <= maxClosed, "for", `a duration from 1m to 31d, such as "4h"`)
	c.Reason = doc.Text("reason")
	doc.Require(c.Reason == document.Shorten(c.Reason, document.MaxText), "reason", "one line of at most 500 bytes")
	if doc.Err() != nil {
		return Calendar{}, doc.Err()
	}
	b := budget(maxSteps)
	at, _ := c.starts.next(-endless, &b) // Parse refuses a rule without one
	first := time.Unix(at, 0).UTC()
	if until := c.joined(first, &b); b.cut() || until.Sub(first) > maxAtATime { // it would stop its models for good
		want := "less than the time between the occurrences, so that it opens within a year of the first and few of them follow each other before"
		return c, document.Refuse("for", want, document.FormatDuration(c.For))
	}
	return c, nil
}

// ClosedUntil returns the end of the period that now lies in; closed is false if it lies in none. A period begins with its first
// instant, and its last instant is open. Periods that touch or overlap are one; where so many do that the search takes too many steps, until
// is an earlier instant, at which it is closed still, and which is to be asked about again. The error comes from Schedule.Evaluate.
func (c Calendar) ClosedUntil(now time.Time) (until time.Time, closed bool, err error) {
	b := budget(maxSteps)
	first, found := c.starts.ask(now.Add(-c.For), &b) // the first that still lasts
	switch {
	case b.cut():
		return time.Time{}, false, tooManySteps(now)
	case !found || first.After(now):
		return time.Time{}, false, nil
	}
	return c.joined(first, &b), true, nil
}

// joined returns the end of the period that begins with an occurrence, and of those that follow without a gap, as far as the budget reaches.
func (c Calendar) joined(at time.Time, b *budget) (until time.Time) {
	until = at.Add(c.For)
	for b.step() {
		next, found := c.starts.ask(at, b)
		if b.cut() || !found || next.After(until) {
			break
		}
		at, until = next, next.Add(c.For)
	}
	return until
}

// Closing is a period in which a calendar is closed: From, up to but not including Until.
type Closing struct{ From, Until time.Time }

// NextClosed returns the first period that begins after an instant; false: there is none. Of the period that the instant lies in it
// returns the one that follows. Until is as in ClosedUntil. The error comes from Schedule.Evaluate.
func (c Calendar) NextClosed(after time.Time) (Closing, bool, error) {
	until, closed, err := c.ClosedUntil(after)
	if err != nil {
		return Closing{}, false, err
	}
	if closed {
		after = until
	}
	from, found, err := c.starts.Evaluate(after)
	if err != nil || !found {
		return Closing{}, false, err
	}
	b := budget(maxSteps)
	return Closing{from, c.joined(from, &b)}, true, nil
}
