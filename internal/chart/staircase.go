package chart

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The measures of a staircase, in pixels: a bar in the upper part of its row, words in the lower part.
const (
	stairLeft   = 148.0
	stairHeight = 42.0
	stairBar    = 13.0
	stairMin    = 4.0 // the shortest bar that can be seen
	stairWords  = 34.0
)

// stairs draws a run with a row for each attempt and each mark, on a time axis that covers all of it.
type stairs struct {
	*picture
	run     *run
	axis    axis
	top     float64
	seconds bool // rows name their second
	days    bool // rows name their day
}

// stair is one row.
type stair struct {
	at      time.Time
	attempt *attempt
	after   *attempt // the attempt of the row before; nil: none
	mark    Event
}

func (p *picture) staircase(r *run, span period) {
	rows := stairsOf(r)
	pad := max(time.Millisecond, span.to.Sub(span.from)/40)
	s := stairs{picture: p, run: r, axis: axis{
		left: stairLeft, right: pictureWidth - margin, from: span.from.Add(-pad / 2), to: span.to.Add(pad), zone: r.chart.location(),
	}}
	s.days = span.to.Sub(span.from) > 20*time.Hour
	s.seconds = span.to.Sub(span.from) < 10*time.Minute
	p.y += 22
	s.top = p.y
	s.background(s.top + float64(len(rows))*stairHeight)
	for i, row := range rows {
		var next *stair
		if i+1 < len(rows) {
			next = &rows[i+1]
		}
		s.row(s.top+float64(i)*stairHeight, row, next)
	}
	p.y = s.top + float64(len(rows))*stairHeight + 20
}

func stairsOf(r *run) []stair {
	var rows []stair
	for i := range r.attempts {
		row := stair{at: r.attempts[i].start, attempt: &r.attempts[i]}
		if i > 0 {
			row.after = &r.attempts[i-1]
		}
		rows = append(rows, row)
	}
	for _, mark := range r.marks {
		rows = append(rows, stair{at: mark.At, mark: mark})
	}
	slices.SortStableFunc(rows, func(a, b stair) int { return a.at.Compare(b.at) })
	return rows
}

func (s *stairs) background(bottom float64) {
	s.rect("plot", s.axis.left, s.top, s.axis.right-s.axis.left, bottom-s.top, "")
	for _, tick := range s.axis.ticks() {
		x, class := s.axis.x(tick.at), "grid"
		if tick.day {
			class = "midnight"
		}
		s.line(class, x, s.top-4, x, bottom)
		s.text("small", anchorMiddle, x, s.top-8, tick.label)
	}
	s.planned(bottom)
}

// maxPlannedLines keeps a dense schedule from hiding the attempts.
const maxPlannedLines = 60

func (s *stairs) planned(bottom float64) {
	var lines []time.Time
	for _, planned := range s.run.chart.Planned {
		if s.axis.shows(planned) {
			lines = append(lines, planned)
		}
	}
	free := s.axis.left - margin
	for _, planned := range lines[:min(len(lines), maxPlannedLines)] {
		x, label := s.axis.x(planned), "planned "+s.clock(planned)
		s.line("planned", x, s.top, x, bottom)
		if half := widthOf(label) / 2; x-half > free && x+half < pictureWidth {
			s.text("plan", anchorMiddle, x, bottom+13, label)
			free = x + half + 6
		}
	}
}

func (s *stairs) clock(at time.Time) string {
	layout := "15:04"
	if s.seconds {
		layout = time.TimeOnly
	}
	return at.In(s.axis.zone).Format(layout)
}

func (s *stairs) row(y float64, row stair, next *stair) {
	s.line("grid", margin, y, s.axis.right, y)
	clock := s.clock(row.at)
	if s.days {
		clock = row.at.In(s.axis.zone).Format("Mon ") + clock
	}
	s.text("small", anchorStart, margin, y+stairBar+4, clock)
	if row.attempt == nil {
		s.mark(y, row.mark)
		return
	}
	s.text("name", anchorEnd, s.axis.left-10, y+stairBar+4, row.attempt.name())
	s.wish(y, row)
	s.bar(y, row.attempt)
	free := s.waiting(y, row.attempt, next)
	s.words(y, row.attempt, free)
}

func (s *stairs) mark(y float64, mark Event) {
	x := min(s.axis.right-8, max(s.axis.left+8, s.axis.x(mark.At)))
	name := capital(string(mark.Kind))
	s.text("name", anchorEnd, s.axis.left-10, y+stairBar+4, cut(name, 16))
	class := "note"
	if mark.Kind == Disabled || mark.Kind == Exhausted {
		s.cross(x, y+stairBar)
		class = "bad"
	} else {
		s.diamond(x, y+stairBar)
	}
	s.note(class, x-14, x+14, y+stairBar+4, sentence(mark.Why, mark.Reason))
}

// ends are the edges of the bar of an attempt.
func (s *stairs) ends(a *attempt) (left, right float64) {
	left = s.axis.x(a.start)
	right = max(left+stairMin, s.axis.x(a.until(s.axis.to)))
	return left, right
}

func (s *stairs) bar(y float64, a *attempt) {
	left, right := s.ends(a)
	if edge := s.axis.x(a.deadline); !a.deadline.IsZero() && edge > right {
		s.rect("deadline", right, y+6, edge-right, stairBar, "")
	}
	s.rect(barClass(a), left, y+6, right-left, stairBar, hint(a, s.axis.zone))
}

func barClass(a *attempt) string {
	switch {
	case a.running():
		return "running"
	case a.outcome == Success:
		return "success"
	case a.outcome == Failure:
		return "failure"
	case a.outcome == Timeout:
		return "timeout"
	default:
		return "other"
	}
}

// hint is the whole story of a bar.
func hint(a *attempt, zone *time.Location) string {
	text := a.name() + " from " + a.start.In(zone).Format("Mon 2 Jan 15:04:05")
	if a.running() {
		return text + ", running"
	}
	text += " for " + rounded(a.end.Sub(a.start)) + ", " + sentence(string(a.outcome), a.reason)
	if a.why != "" {
		text += ", then " + a.why
	}
	return text
}

// waiting draws the way from the end of an attempt to the start of the next one and returns where words may begin.
func (s *stairs) waiting(y float64, a *attempt, next *stair) float64 {
	left, right := s.ends(a)
	if next == nil || next.attempt == nil || a.outcome == Success {
		return left
	}
	to := s.axis.x(next.at) + stairMin/2
	middle := y + 6 + stairBar/2
	s.path("wait", fmt.Sprintf("M%s %sH%sV%s", number(right), number(middle), number(max(to, right)), number(y+stairHeight+2)))
	x := max(to, right)
	s.path("arrow", fmt.Sprintf("M%s %sl-3.5 -5h7z", number(x), number(y+stairHeight+6)))
	return x
}

// words say what happened below a bar, on the side of the waiting line where there is room; turn is where that line goes
// down.
func (s *stairs) words(y float64, a *attempt, turn float64) {
	left, _ := s.ends(a)
	class, text := wordsOf(a)
	if width := widthOf(text); turn > left && left+width > turn-5 {
		s.note(class, left-4, turn+8, y+stairWords, text)
		return
	}
	s.note(class, left-4, left+4, y+stairWords, text)
}

// note writes to the right of one place or, when that is too narrow, to the left of another.
func (s *stairs) note(class string, before, after, y float64, text string) {
	right, left := s.axis.right-after, before-s.axis.left
	if widthOf(text) <= right || right >= left {
		s.text(class, anchorStart, after, y, cutTo(text, right))
		return
	}
	s.text(class, anchorEnd, before, y, cutTo(text, left))
}

func wordsOf(a *attempt) (class, text string) {
	switch {
	case a.running():
		return "note", "running"
	case a.outcome == Success && (a.why == "planned" || a.why == ""):
		return "good", "success"
	}
	text = strings.ReplaceAll(string(a.outcome), "_", " ")
	if a.why != "" {
		text += " → " + a.why
	}
	if a.reason != "" && a.reason != string(a.outcome) {
		text += " (" + cut(a.reason, 40) + ")"
	}
	switch {
	case a.outcome == Success:
		return "good", text
	case a.outcome.failed():
		return "bad", text
	}
	return "note", text
}
