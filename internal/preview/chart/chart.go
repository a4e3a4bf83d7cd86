// Package chart shows a run of attempts as a table or as one SVG picture. A run comes from a simulation or from the history of a model. The package
// knows no Redis and no clock.
//
// A run is a list of events in the order of time. An attempt begins with start or retry and ends with the next event that names an end. A final
// failure is two or three events at once: failure or timeout, exhausted if the retries are used up, disabled.
//
// Every text of an event may come from outside. Each renderer escapes it.
package chart

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Chart is one run of attempts.
type Chart struct {
	Title string
	// Location is the zone that times are shown in; nil: UTC.
	Location *time.Location
	// Start and End bound the run. Zero: the first and the last event do.
	Start, End time.Time
	Events     []Event     // in any order; those at the same time in the order in which they happened
	Planned    []time.Time // the planned refreshes between Start and End
	Assumed    string      // how attempts end if nobody has said it; empty: somebody has
	CutOff     bool        // the run was stopped after so many attempts: it did not end by itself
}

// Summary sums up the run between Start and End for programs, which count planned refreshes after a failure as retries.
func (c *Chart) Summary() Summary {
	r := read(*c)
	for i := range r.Events {
		r.Events[i].Planned = false
	}
	return r.summary()
}

// run is a chart without defaults, and with its events in the order of time.
type run struct {
	Chart
	attempts []*attempt
	rows     []row
}

type row struct {
	event   Event
	attempt *attempt // that begins with the event; nil: it has none
}

func readAll(charts []Chart) []*run {
	runs := make([]*run, len(charts))
	for i, c := range charts {
		runs[i] = read(c)
	}
	return runs
}

func read(c Chart) *run {
	c.Events = ordered(c.Events)
	c.Location = cmp.Or(c.Location, time.UTC)
	if n := len(c.Events); n > 0 {
		c.Start, c.End = cmp.Or(c.Start, c.Events[0].At), cmp.Or(c.End, c.Events[n-1].At)
	}
	r := &run{Chart: c, attempts: attemptsOf(c.Events)}
	for _, a := range r.attempts {
		r.rows = append(r.rows, row{a.begin, a})
	}
	for i, event := range c.Events {
		// The row of a failure at the same time already says exhausted.
		alone := event.Kind == Exhausted && (i == 0 || !c.Events[i-1].Kind.failed() || !c.Events[i-1].At.Equal(event.At))
		if alone || event.Kind == Disabled || event.Kind == Finished || event.Kind == Skipped {
			r.rows = append(r.rows, row{event: event})
		}
	}
	slices.SortStableFunc(r.rows, func(a, b row) int { return a.event.At.Compare(b.event.At) })
	return r
}

func write(w io.Writer, format, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write %s: %w", format, err)
	}
	return nil
}

func sentence(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}
