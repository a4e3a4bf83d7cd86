package chart

import (
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// A row of a staircase has a bar above words.
const (
	stairLeft   px = 148
	stairHeight px = 42
	stairMin    px = 4 // the shortest bar that can be seen
	stairWords  px = 34
)

type stairs struct {
	*picture
	axis
	clock    string // layout of a time
	rowClock string // layout of the time that a row begins with
}

func (p *picture) staircase(r *run, span period) {
	pad := max(time.Millisecond, span.length()/40)
	s := stairs{picture: p, clock: "15:04", axis: axis{
		period: period{span.from.Add(-pad / 2), span.to.Add(pad)}, left: stairLeft, right: pictureWidth - margin, zone: r.Location,
	}}
	if span.length() < 10*time.Minute {
		s.clock = time.TimeOnly
	}
	s.rowClock = s.clock
	if span.length() > 20*time.Hour {
		s.rowClock = "Mon " + s.clock
	}
	p.y += 22
	bottom := p.y + px(len(r.rows))*stairHeight
	s.rect("plot", s.left, s.y, s.right-s.left, bottom-s.y, "")
	s.grid(s.axis, s.y-4, bottom, s.y-8)
	const maxPlannedLines = 60 // more would hide the attempts
	free, lines := s.left-margin, 0
	for _, planned := range r.Planned {
		if !s.shows(planned) || lines == maxPlannedLines {
			continue
		}
		lines++
		x, label := s.x(planned), "planned "+s.format(planned)
		s.line("planned", x, s.y, x, bottom)
		if half := widthOf(label) / 2; x-half > free && x+half < pictureWidth {
			s.text("plan", anchorMiddle, x, bottom+13, label)
			free = x + half + 6
		}
	}
	for i, row := range r.rows {
		var next *attempt
		if i+1 < len(r.rows) {
			next = r.rows[i+1].attempt
		}
		s.row(row, next)
		p.y += stairHeight
	}
	p.y += 20
}

func (s *stairs) format(at time.Time) string { return at.In(s.zone).Format(s.clock) }

func (s *stairs) row(row row, next *attempt) {
	base := s.y + barHeight + 4 // of the words beside a bar
	s.line("grid", margin, s.y, s.right, s.y)
	s.text("small", anchorStart, margin, base, row.event.At.In(s.zone).Format(s.rowClock))
	a := row.attempt
	if a == nil {
		mark, kind := row.event, string(row.event.Kind)
		x := min(s.right-8, max(s.left+8, s.x(mark.At)))
		s.text("name", anchorEnd, s.left-10, base, strings.ToUpper(kind[:1])+kind[1:])
		class := s.symbol(mark.Kind, x, s.y+barHeight)
		s.note(class, x-14, x+14, base, sentence(mark.Why, mark.Reason))
		return
	}
	s.text("name", anchorEnd, s.left-10, base, a.name())
	s.wish(a)
	left := s.x(a.begin.At)
	right := max(left+stairMin, s.x(a.until(s.to)))
	s.bar(a, s.axis, s.y+6, left, right, s.right)
	class, text := wordsOf(a)
	after := left + 4 // text goes on the side of the waiting line with room
	if next != nil && a.end.Kind != Success {
		turn := max(right, s.x(next.begin.At)+stairMin/2)
		s.path("wait", "M%s %sH%sV%s", right, s.y+6+barHeight/2, turn, s.y+stairHeight+2)
		s.path("arrow", "M%s %sl-3.5 -5h7z", turn, s.y+stairHeight+6)
		if turn > left && left+widthOf(text) > turn-5 {
			after = turn + 8
		}
	}
	s.note(class, left-4, after, s.y+stairWords, text)
}

// wish draws where a delayed attempt would be if only the delay of its retry counted, as long as the attempt before might take.
func (s *stairs) wish(a *attempt) {
	if a.before == nil || a.before.end.RetryAt.IsZero() {
		return
	}
	from, to := a.before.end.RetryAt, a.before.end.RetryAt
	if a.before.begin.DeadlineAt.After(a.before.begin.At) {
		to = from.Add(a.before.begin.DeadlineAt.Sub(a.before.begin.At))
	}
	left := s.x(from)
	right := max(left+stairMin, s.x(to))
	s.rect("wish", left, s.y+4, right-left, barHeight+4, "")
	label := "would run " + s.format(from) + " – " + s.format(to)
	if own := s.x(a.begin.At); to.After(from) && left+widthOf(label)+10 < min(own, right) {
		s.text("bad", anchorStart, left+6, s.y+barHeight+4, label)
	}
}

// note writes to the right of one place or, if there is no room, to the left of another.
func (s *stairs) note(class string, before, after, y px, text string) {
	right, left := s.right-after, before-s.left
	if widthOf(text) <= right || right >= left {
		s.text(class, anchorStart, after, y, cutTo(text, right))
		return
	}
	s.text(class, anchorEnd, before, y, cutTo(text, left))
}

func wordsOf(a *attempt) (class, text string) {
	class = a.end.Kind.style().words
	switch {
	case a.running():
		return class, "running"
	case a.end.Kind == Success && (a.end.Why == "planned" || a.end.Why == ""):
		return class, "success"
	}
	text = a.end.Kind.text()
	if a.end.Why != "" {
		text += " → " + a.end.Why
	}
	if a.end.Reason != "" && a.end.Reason != string(a.end.Kind) {
		text += " (" + document.Cut(a.end.Reason, 40) + ")"
	}
	return class, text
}
