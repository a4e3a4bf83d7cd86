package chart

import "strconv"

// The measures of rows that many attempts share.
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

type box struct {
	*attempt
	left, right px
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
	boxes, free := c.boxes(ax)
	for i := range boxes {
		c.wait(ax, boxes, i)
	}
	ends := map[string]int{}
	for i, b := range boxes {
		edge := calendarRight
		if i+1 < len(boxes) {
			edge = boxes[i+1].left
		}
		c.bar(b.attempt, ax, c.y+(calendarHeight-barHeight)/2, b.left, b.right, edge)
		if ax.holds(b.end.At) {
			ends[b.end.Kind.look().words]++
		}
	}
	c.marks(ax, free)
	if n := ends["good"]; n > 0 {
		c.text("good", anchorEnd, pictureWidth-60, c.y+15, strconv.Itoa(n))
	}
	if n := ends["bad"]; n > 0 {
		c.text("bad", anchorEnd, pictureWidth-margin, c.y+15, strconv.Itoa(n))
	}
}

// boxes places the attempts that run in a row. Short bars are moved apart, to be seen; free is where the last one ends.
func (c *calendar) boxes(ax axis) (boxes []box, free px) {
	free = calendarLeft
	for _, a := range c.attempts {
		if !a.begin.At.Before(ax.to) || a.begin.At.Before(ax.from) && !a.until(ax.to).After(ax.from) {
			continue
		}
		left := min(max(ax.x(a.begin.At), free), calendarRight-calendarMin)
		right := max(left+calendarMin, ax.x(a.until(ax.to)))
		free = right + 1
		boxes = append(boxes, box{a, left, right})
	}
	return boxes, free
}

// wait draws the time between a failed attempt and the next one, with the reason if there is room.
func (c *calendar) wait(ax axis, boxes []box, i int) {
	b, y := boxes[i], c.y+calendarHeight/2
	if i == 0 && b.before != nil && b.before.end.Kind != Success && !b.begin.At.Before(ax.from) {
		c.line("wait", calendarLeft, y, b.left, y)
	}
	if b.end.Kind == Success || b.running() || b.end.RefreshAt.IsZero() || b.end.At.After(ax.to) {
		return
	}
	from, to := b.right, ax.x(b.end.RefreshAt)
	if i+1 < len(boxes) {
		to = boxes[i+1].left
	}
	half := widthOf(b.end.Why)/2 + 4
	switch center := (from + to) / 2; {
	case to <= from:
	case b.end.Why == "" || 2*half+12 > to-from:
		c.line("wait", from, y, to, y)
	default:
		c.line("wait", from, y, center-half, y)
		c.text("note", anchorMiddle, center, y+4, b.end.Why)
		c.line("wait", center+half, y, to, y)
	}
}

func (c *calendar) marks(ax axis, free px) {
	y := c.y + calendarHeight/2
	for _, row := range c.rows {
		if row.attempt != nil || !ax.holds(row.at) {
			continue
		}
		x := min(max(ax.x(row.at), free+9), calendarRight-8)
		class := c.symbol(row.mark.Kind, x, y)
		free = x + 12
		words := sentence(string(row.mark.Kind), row.mark.Why)
		if width := widthOf(words); free+width < calendarRight {
			c.text(class, anchorStart, free, y+4, words)
			free += width
		}
	}
}
