package chart

import (
	"strconv"
	"time"
)

// The measures of rows that many attempts share, in pixels.
const (
	calendarLeft   = 108.0
	calendarRight  = pictureWidth - 92
	calendarHeight = 23.0
	calendarBar    = 13.0
	calendarMin    = 3.0
)

// calendar draws a run of many attempts in rows of one length, one below the other.
type calendar struct {
	*picture
	run    *run
	scheme scheme
}

// rowState is how far a row has been filled.
type rowState struct {
	window
	y    float64
	free float64 // bars may begin here: short ones are moved apart, to be seen
}

func (p *picture) calendar(r *run, s scheme) {
	c := calendar{picture: p, run: r, scheme: s}
	rows := windowsOf(r, s)
	p.y += 24
	c.background(p.y + float64(len(rows))*calendarHeight)
	for _, row := range rows {
		c.row(row)
		p.y += calendarHeight
	}
	p.y += 12
}

func (c *calendar) background(bottom float64) {
	c.rect("plot", calendarLeft, c.y, calendarRight-calendarLeft, bottom-c.y, "")
	for i := range c.scheme.ticks + 1 {
		x := calendarLeft + float64(i)/float64(c.scheme.ticks)*(calendarRight-calendarLeft)
		c.line("grid", x, c.y-4, x, bottom)
		if i < c.scheme.ticks {
			c.text("small", anchorMiddle, x, c.y-8, c.scheme.tick(i))
		}
	}
	c.text("small", anchorEnd, pictureWidth-60, c.y-8, "ok")
	c.text("small", anchorEnd, pictureWidth-margin, c.y-8, "failed")
}

func (c *calendar) row(w window) {
	c.line("grid", margin, c.y, pictureWidth-margin, c.y)
	if w.words != "" {
		c.text("small", anchorMiddle, (calendarLeft+calendarRight)/2, c.y+15, "· · ·  "+w.words+"  · · ·")
		return
	}
	row := &rowState{window: w, y: c.y, free: calendarLeft}
	c.text("small", anchorStart, margin, c.y+15, w.from.Format(c.scheme.label))
	c.planned(row)
	attempts := c.within(w)
	bars := make([]bar, len(attempts))
	for i := range attempts {
		bars[i] = c.place(row, attempts[i])
	}
	for i := range bars {
		c.wait(row, bars, i)
	}
	for i, b := range bars {
		edge := calendarRight
		if i+1 < len(bars) {
			edge = bars[i+1].left
		}
		c.bar(row, b, edge)
	}
	c.marks(row)
	c.counts(attempts, w)
}

func (c *calendar) x(row *rowState, at time.Time) float64 {
	return calendarLeft + c.scheme.share(row.from, at)*(calendarRight-calendarLeft)
}

// within are the attempts that run in a row.
func (c *calendar) within(w window) []*attempt {
	var found []*attempt
	for i := range c.run.attempts {
		a := &c.run.attempts[i]
		if a.start.Before(w.to) && (a.until(w.to).After(w.from) || !a.start.Before(w.from)) {
			found = append(found, a)
		}
	}
	return found
}

// bar is an attempt with its place in a row.
type bar struct {
	*attempt
	left, right float64
}

func (c *calendar) place(row *rowState, a *attempt) bar {
	left := min(max(c.x(row, a.start), row.free), calendarRight-calendarMin)
	right := max(left+calendarMin, c.x(row, a.until(row.to)))
	row.free = right + 1
	return bar{a, left, right}
}

func (c *calendar) planned(row *rowState) {
	drawn := calendarLeft - 8
	for _, planned := range c.run.chart.Planned {
		if planned.Before(row.from) || !planned.Before(row.to) {
			continue
		}
		if x := c.x(row, planned); x-drawn >= 6 {
			c.line("planned", x, row.y+1, x, row.y+calendarHeight-1)
			drawn = x
		}
	}
}

// wait draws the time between a failed attempt and the next one, with the reason if there is room.
func (c *calendar) wait(row *rowState, bars []bar, i int) {
	b, middle := bars[i], row.y+calendarHeight/2
	if i == 0 && b.waited && !b.start.Before(row.from) {
		c.line("wait", calendarLeft, middle, b.left, middle)
	}
	if b.outcome == Success || b.running() || b.next.IsZero() || b.end.After(row.to) {
		return
	}
	to := c.x(row, b.next)
	if i+1 < len(bars) {
		to = bars[i+1].left
	}
	if to <= b.right {
		return
	}
	c.waitLine(b.right, to, middle, b.why)
}

// waitLine leaves a gap for the words in its middle; words that do not fit are left out.
func (c *calendar) waitLine(from, to, y float64, words string) {
	half := widthOf(words)/2 + 4
	if words == "" || 2*half+12 > to-from {
		c.line("wait", from, y, to, y)
		return
	}
	center := (from + to) / 2
	c.line("wait", from, y, center-half, y)
	c.text("note", anchorMiddle, center, y+4, words)
	c.line("wait", center+half, y, to, y)
}

// bar draws an attempt; the time left to its deadline ends at the edge of the next one.
func (c *calendar) bar(row *rowState, b bar, next float64) {
	top := row.y + (calendarHeight-calendarBar)/2
	if edge := min(next, c.x(row, b.deadline)); !b.deadline.IsZero() && !b.running() && edge > b.right {
		c.rect("deadline", b.right, top, edge-b.right, calendarBar, "")
	}
	c.rect(barClass(b.attempt), b.left, top, b.right-b.left, calendarBar, hint(b.attempt, row.from.Location()))
}

func (c *calendar) marks(row *rowState) {
	for _, mark := range c.run.marks {
		if mark.At.Before(row.from) || !mark.At.Before(row.to) {
			continue
		}
		x := min(max(c.x(row, mark.At), row.free+9), calendarRight-8)
		class := "note"
		if mark.Kind == Disabled || mark.Kind == Exhausted {
			class = "bad"
			c.cross(x, row.y+calendarHeight/2)
		} else {
			c.diamond(x, row.y+calendarHeight/2)
		}
		row.free = x + 12
		words := sentence(string(mark.Kind), mark.Why)
		if row.free+widthOf(words) < calendarRight {
			c.text(class, anchorStart, row.free, row.y+calendarHeight/2+4, words)
			row.free += widthOf(words)
		}
	}
}

// counts stand behind the row in which an attempt ended.
func (c *calendar) counts(attempts []*attempt, w window) {
	good, bad := 0, 0
	for _, a := range attempts {
		switch {
		case a.running() || a.end.Before(w.from) || !a.end.Before(w.to):
		case a.outcome == Success:
			good++
		case a.outcome.failed():
			bad++
		}
	}
	if good > 0 {
		c.text("good", anchorEnd, pictureWidth-60, c.y+15, strconv.Itoa(good))
	}
	if bad > 0 {
		c.text("bad", anchorEnd, pictureWidth-margin, c.y+15, strconv.Itoa(bad))
	}
}
