package chart

import (
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// README pages are about 880 pixels wide.
const (
	pictureWidth px = 880
	margin       px = 20
	barHeight    px = 13
)

// maxStairs bounds the attempts with a row each; otherwise each row is a window of time.
const maxStairs = 24

// SVG draws all charts in one picture, on one time axis. It loads no script, font or image, and has its own background, to be readable on light and
// dark pages.
func SVG(w io.Writer, charts ...Chart) error {
	runs := readAll(charts)
	p := newPicture(pictureWidth)
	most := 0
	for _, r := range runs {
		most = max(most, len(r.rows))
	}
	span := joint(runs)
	var titles, about []string // for those who cannot see the picture
	for _, r := range runs {
		titles = append(titles, r.Title)
		about = append(about, sentence(r.Title, r.digest()))
		p.heading(r.Title, r.digest())
		if most <= maxStairs {
			p.staircase(r, span)
		} else {
			p.calendar(r, schemeOf(runs, span, r.Location))
		}
		p.y += 14
	}
	p.legend()
	return write(w, "svg", p.frame(strings.Join(titles, " against "), strings.Join(about, "; ")))
}

// picture is drawn from top to bottom, down to y. Every text goes through text or rect, which escape it.
type picture struct {
	width, y px
	body     strings.Builder
	used     map[string]bool // the classes drawn so far, for the legend
}

func newPicture(width px) *picture { return &picture{width: width, y: margin, used: map[string]bool{}} }

func (p *picture) heading(title, digest string) {
	if title != "" {
		p.y += 14
		p.text("title", anchorStart, margin, p.y, document.Cut(title, 100))
	}
	p.y += 19
	p.text("small", anchorStart, margin, p.y, cutTo(digest, pictureWidth-2*margin))
	p.y += 10
}

// bar draws an attempt, its wait for a worker apart, and shades the time left to its deadline, up to edge.
func (p *picture) bar(a *attempt, ax axis, y, left, right, edge px) {
	if edge = min(edge, ax.x(a.begin.DeadlineAt)); !a.begin.DeadlineAt.IsZero() && edge > right {
		p.rect("deadline", right, y, edge-right, barHeight, "")
	}
	hint := a.name() + " from " + a.begin.At.In(ax.zone).Format("Mon 2 Jan 15:04:05")
	if a.running() {
		hint += ", running"
	} else {
		hint += " for " + words.Roughly(a.end.At.Sub(a.begin.At)) + ", " + sentence(string(a.end.Kind), a.end.Reason)
		if a.end.Why != "" {
			hint += ", then " + a.end.Why
		}
	}
	if begun := a.begin.BegunAt; begun.After(a.begin.At) {
		hint += ", in line for " + words.Roughly(begun.Sub(a.begin.At)) + " of that"
		if works := min(ax.x(begun), right-1); works > left {
			p.rect("queued", left, y, works-left, barHeight, hint)
			left = works
		}
	}
	p.rect(a.end.Kind.style().bar, left, y, right-left, barHeight, hint)
}

// symbol draws an event without an attempt, and returns the class of its words.
func (p *picture) symbol(kind Kind, x, y px) (class string) {
	if kind == Disabled || kind == Exhausted {
		p.cross(x, y)
		return "bad"
	}
	p.diamond(x, y)
	return "note"
}

var legendEntries = []struct{ class, text string }{
	{"success", "success"}, {"failure", "failure"}, {"timeout", "timeout"}, {"running", "running"}, {"other", "not counted"},
	{"queued", "in line for a worker"}, {"deadline", "time left to its deadline"}, {"wait", "waits for the next attempt"}, {"planned", "planned refresh"},
	{"wish", "where its delay alone would put the retry"}, {"final", "disabled"}, {"mark", "other event"},
}

// legend explains the used classes.
func (p *picture) legend() {
	x := margin
	for _, entry := range legendEntries {
		if !p.used[entry.class] {
			continue
		}
		width := 24 + widthOf(entry.text) + 18
		if x+width > pictureWidth {
			x = margin
			p.y += 19
		}
		switch entry.class {
		case "wait":
			p.line(entry.class, x, p.y+4, x+18, p.y+4)
		case "planned":
			p.line(entry.class, x+9, p.y-4, x+9, p.y+12)
		case "final":
			p.cross(x+9, p.y+4)
		case "mark":
			p.diamond(x+9, p.y+4)
		default:
			p.rect(entry.class, x, p.y, 18, 9, "")
		}
		p.text("small", anchorStart, x+24, p.y+8, entry.text)
		x += width
	}
	p.y += 10 + margin
}

func (p *picture) frame(title, about string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]s %[2]s" width="%[1]s" height="%[2]s" role="img">
<title>%[3]s</title>
<desc>%[4]s</desc>
<style>%[5]s</style>
%[6]s
<rect class="page" x="0.5" y="0.5" width="%[7]s" height="%[8]s" rx="8"/>
%[9]s</svg>
`, p.width, p.y, safe(title), safe(about), pictureStyle, hatch, p.width-1, p.y-1, p.body.String())
}

type px float64

// String writes one digit after the point, which is enough.
func (n px) String() string {
	text := strconv.FormatFloat(float64(n), 'f', 1, 64)
	if text = strings.TrimSuffix(text, ".0"); text == "-0" {
		return "0"
	}
	return text
}

// safe escapes a text for XML, and replaces characters that XML does not know.
func safe(text string) string {
	known := strings.Map(func(r rune) rune {
		if r == '\uFFFE' || r == '\uFFFF' {
			return utf8.RuneError
		}
		return r
	}, document.OneLine(text))
	return html.EscapeString(known)
}

// rect draws a box; a mouse over it shows hint.
func (p *picture) rect(class string, x, y, width, height px, hint string) {
	p.used[class] = true
	fmt.Fprintf(&p.body, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="2"`, class, x, y, width, height)
	if hint == "" {
		p.body.WriteString("/>\n")
		return
	}
	fmt.Fprintf(&p.body, "><title>%s</title></rect>\n", safe(hint))
}

func (p *picture) line(class string, x1, y1, x2, y2 px) {
	p.path(class, "M%s %sL%s %s", x1, y1, x2, y2)
}

func (p *picture) path(class, format string, coordinates ...any) {
	p.used[class] = true
	fmt.Fprintf(&p.body, "<path class=\"%s\" d=\"%s\"/>\n", class, fmt.Sprintf(format, coordinates...))
}

// cross marks the end of all attempts.
func (p *picture) cross(x, y px) {
	p.rect("final", x-7, y-7, 14, 14, "")
	p.path("stroke", "M%s %sl7 7m0 -7l-7 7", x-3.5, y-3.5)
}

func (p *picture) diamond(x, y px) { p.path("mark", "M%s %sl6 6l-6 6l-6 -6z", x, y-6) }

const (
	anchorStart  = "start"
	anchorMiddle = "middle"
	anchorEnd    = "end"
)

func (p *picture) text(class, anchor string, x, y px, text string) {
	fmt.Fprintf(&p.body, "<text class=\"%s\" x=\"%s\" y=\"%s\"", class, x, y)
	if anchor != anchorStart {
		fmt.Fprintf(&p.body, " text-anchor=\"%s\"", anchor)
	}
	fmt.Fprintf(&p.body, ">%s</text>\n", safe(text))
}

// letterWidth is the average width of a letter in the small font, at most.
const letterWidth = 6.1

func widthOf(text string) px { return px(uniseg.StringWidth(text)) * letterWidth }

func cutTo(text string, width px) string {
	for limit := int(width / letterWidth); widthOf(text) > width && limit > 0; limit-- {
		text = document.Cut(text, limit)
	}
	return text
}
