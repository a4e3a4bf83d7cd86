package chart

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/words"
)

const (
	calendarLeft   px = 108
	calendarRight     = pictureWidth - 92
	calendarHeight px = 23
	calendarMin    px = 3 // the shortest bar
)

type calendar struct {
	*picture
	*run
	scheme scheme
}

func (p *picture) calendar(r *run, s scheme) {
	c := calendar{picture: p, run: r, scheme: s}
	windows := windowsOf(r, s)
	c.y += 24
	bottom := c.y + px(len(windows))*calendarHeight
	c.rect("plot", calendarLeft, c.y, calendarRight-calendarLeft, bottom-c.y, "")
	for i := range s.ticks + 1 {
		x := calendarLeft + px(i)/px(s.ticks)*(calendarRight-calendarLeft)
		c.line("grid", x, c.y-4, x, bottom)
		if i < s.ticks {
			c.text("small", anchorMiddle, x, c.y-8, s.tick(i))
		}
	}
	c.text("small", anchorEnd, pictureWidth-60, c.y-8, "ok")
	c.text("small", anchorEnd, pictureWidth-margin, c.y-8, "failed")
	for _, w := range windows {
		c.line("grid", margin, c.y, pictureWidth-margin, c.y)
		if w.words != "" {
			c.text("small", anchorMiddle, (calendarLeft+calendarRight)/2, c.y+15, "· · ·  "+w.words+"  · · ·")
		} else {
			c.row(axis{period: w.period, left: calendarLeft, right: calendarRight, zone: r.Location, wallClock: s.length == oneDay})
		}
		c.y += calendarHeight
	}
	c.y += 12
}

func (c *calendar) row(ax axis) {
	c.text("small", anchorStart, margin, c.y+15, ax.from.Format(c.scheme.label))
	drawn := calendarLeft - 8
	for _, planned := range c.Planned {
		if x := ax.x(planned); ax.holds(planned) && x-drawn >= 6 {
			c.line("planned", x, c.y+1, x, c.y+calendarHeight-1)
			drawn = x
		}
	}
	free, ends := calendarLeft, map[string]int{}
	for _, a := range c.attempts {
		if !a.begin.At.Before(ax.to) || a.begin.At.Before(ax.from) && !a.until(ax.to).After(ax.from) {
			continue
		}
		// Short bars move apart, to be seen.
		left := min(max(ax.x(a.begin.At), free), calendarRight-calendarMin)
		right := max(left+calendarMin, ax.x(a.until(ax.to)))
		next, middle := calendarRight, c.y+calendarHeight/2
		if again := a.end.RefreshAt; !again.IsZero() {
			next = max(right, ax.x(again))
			if a.end.Kind != Success && a.end.At.Before(ax.to) {
				c.line("wait", right, middle, next, middle)
			}
		}
		c.bar(a, ax, middle-barHeight/2, left, right, next)
		if free = right + 1; ax.holds(a.end.At) {
			ends[a.end.Kind.style().words]++
		}
	}
	c.marks(ax, free)
	for i, class := range []string{"good", "bad"} {
		if ends[class] > 0 {
			c.text(class, anchorEnd, pictureWidth-60+px(i)*40, c.y+15, strconv.Itoa(ends[class]))
		}
	}
}

// marks draws the events without an attempt, from an x on.
func (c *calendar) marks(ax axis, free px) {
	for _, row := range c.rows {
		mark := row.event
		if row.attempt != nil || !ax.holds(mark.At) {
			continue
		}
		x := min(max(ax.x(mark.At), free+9), calendarRight-8)
		class := c.symbol(mark.Kind, x, c.y+calendarHeight/2)
		words := cutTo(sentence(string(mark.Kind), mark.Why), calendarRight-x-12)
		c.text(class, anchorStart, x+12, c.y+calendarHeight/2+4, words)
		free = x + 12 + widthOf(words)
	}
}

// scheme divides a run of many attempts into rows of one length.
type scheme struct {
	length time.Duration // a day is a day of the wall clock, whatever its length
	label  string        // layout of a row's name
	ticks  int           // parts of a row that are labelled
	tick   func(i int) string
}

const oneDay = 24 * time.Hour

var schemes = []scheme{
	{oneDay, "Mon 2 Jan", 12, func(i int) string { return fmt.Sprintf("%02d:00", 2*i) }},
	{time.Hour, "2 Jan 15:04", 12, func(i int) string { return fmt.Sprintf(":%02d", 5*i) }},
	{10 * time.Minute, "2 Jan 15:04", 10, func(i int) string { return fmt.Sprintf("+%dm", i) }},
	{time.Minute, "2 Jan 15:04", 12, func(i int) string { return fmt.Sprintf("+%ds", 5*i) }},
}

// schemeOf returns the longest rows that make several rows and are not too full.
func schemeOf(runs []*run, span period, zone *time.Location) scheme {
	for _, s := range schemes {
		most := 0
		for _, r := range runs {
			counts := map[int64]int{}
			for _, a := range r.attempts {
				row := s.floor(a.begin.At, zone).Unix()
				counts[row]++
				most = max(most, counts[row])
			}
		}
		if span.length() > s.length && most <= 120 {
			return s
		}
	}
	return schemes[len(schemes)-1]
}

func (s scheme) floor(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	if s.length == oneDay {
		return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, zone)
	}
	inHour := time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second + time.Duration(at.Nanosecond())
	return at.Add(-(inHour % s.length))
}

// window is one row: a period, or words instead of rows.
type window struct {
	period
	words string
}

const maxWindows = 45

// windowsOf returns the rows with events, and words for the gaps. Of too many rows it leaves out those in the middle.
func windowsOf(r *run, s scheme) (rows []window) {
	var shown []period
	for _, event := range r.Events {
		from := s.floor(event.At, r.Location)
		if n := len(shown); n > 0 && from.Before(shown[n-1].to) {
			continue
		}
		to := from.Add(s.length)
		if s.length == oneDay {
			to = from.AddDate(0, 0, 1)
		}
		shown = append(shown, period{from, to})
	}
	const tail = maxWindows / 3
	left, cut := len(shown)-maxWindows+1, time.Time{}
	if left > 1 {
		shown = slices.Delete(shown, maxWindows-1-tail, len(shown)-tail)
		cut = shown[maxWindows-1-tail].from
	}
	covered := s.floor(r.Start, r.Location)
	for _, one := range append(shown, period{from: s.floor(r.End, r.Location)}) {
		gap := words.Roughly(one.from.Sub(covered).Round(s.length)) + " without an event"
		if one.from.Equal(cut) {
			gap = fmt.Sprintf("%d rows are left out", left)
		}
		if one.from.After(covered) {
			rows = append(rows, window{words: gap})
		}
		if covered = one.to; !covered.IsZero() {
			rows = append(rows, window{period: one})
		}
	}
	return rows
}
