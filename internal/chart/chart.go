package chart

import (
	"strings"
	"time"
)

// Chart is one run of attempts with what is needed to show it.
type Chart struct {
	Title  string
	Policy string // names the chart among several; empty: Title
	// Location is the zone that times are shown in; nil: UTC.
	Location *time.Location
	// Start and End bound the run. Zero: the first and the last event do.
	Start, End time.Time
	Events     []Event
	Planned    []time.Time // the planned refreshes between Start and End
}

func (c *Chart) name() string {
	if c.Policy != "" {
		return c.Policy
	}
	return c.Title
}

func (c *Chart) location() *time.Location {
	if c.Location == nil {
		return time.UTC
	}
	return c.Location
}

// Summary sums up the run between Start and End.
func (c *Chart) Summary() Summary {
	start, end := c.bounds()
	return Summarize(c.Events, start, end)
}

func (c *Chart) bounds() (start, end time.Time) {
	start, end = c.Start, c.End
	events := ordered(c.Events)
	if len(events) == 0 {
		return start, end
	}
	if start.IsZero() {
		start = events[0].At
	}
	if end.IsZero() {
		end = events[len(events)-1].At
	}
	return start, end
}

// titleOf is the title of one picture of all charts.
func titleOf(charts []Chart) string {
	if len(charts) == 1 {
		return charts[0].Title
	}
	names := make([]string, len(charts))
	for i := range charts {
		names[i] = charts[i].name()
	}
	return strings.Join(names, " against ")
}
