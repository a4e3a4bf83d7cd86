package chart

import "strconv"

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
			ends[a.end.Kind.look().words]++
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
		if row.attempt != nil || !ax.holds(row.at) {
			continue
		}
		x := min(max(ax.x(row.at), free+9), calendarRight-8)
		class := c.symbol(row.mark.Kind, x, c.y+calendarHeight/2)
		words := cutTo(sentence(string(row.mark.Kind), row.mark.Why), calendarRight-x-12)
		c.text(class, anchorStart, x+12, c.y+calendarHeight/2+4, words)
		free = x + 12 + widthOf(words)
	}
}
