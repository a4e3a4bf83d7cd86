package chart

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/refreshd/refreshd/model/document"
)

type px float64

// String writes one digit after the point, which is enough.
func (n px) String() string {
	text := strconv.FormatFloat(float64(n), 'f', 1, 64)
	if text = strings.TrimSuffix(text, ".0"); text == "-0" {
		return "0"
	}
	return text
}

// canvas collects the elements of a picture. Every text goes through text or rect, which escape it.
type canvas struct {
	body strings.Builder
	used map[string]bool // the classes drawn so far, for the legend
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
func (c *canvas) rect(class string, x, y, width, height px, hint string) {
	c.used[class] = true
	fmt.Fprintf(&c.body, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="2"`, class, x, y, width, height)
	if hint == "" {
		c.body.WriteString("/>\n")
		return
	}
	fmt.Fprintf(&c.body, "><title>%s</title></rect>\n", safe(hint))
}

func (c *canvas) line(class string, x1, y1, x2, y2 px) { c.path(class, "M%s %sL%s %s", x1, y1, x2, y2) }

func (c *canvas) path(class, format string, coordinates ...any) {
	c.used[class] = true
	fmt.Fprintf(&c.body, "<path class=\"%s\" d=\"%s\"/>\n", class, fmt.Sprintf(format, coordinates...))
}

// cross marks the end of all attempts.
func (c *canvas) cross(x, y px) {
	c.rect("final", x-7, y-7, 14, 14, "")
	c.path("stroke", "M%s %sl7 7m0 -7l-7 7", x-3.5, y-3.5)
}

func (c *canvas) diamond(x, y px) { c.path("mark", "M%s %sl6 6l-6 6l-6 -6z", x, y-6) }

const (
	anchorStart  = "start"
	anchorMiddle = "middle"
	anchorEnd    = "end"
)

func (c *canvas) text(class, anchor string, x, y px, text string) {
	fmt.Fprintf(&c.body, "<text class=\"%s\" x=\"%s\" y=\"%s\"", class, x, y)
	if anchor != anchorStart {
		fmt.Fprintf(&c.body, " text-anchor=\"%s\"", anchor)
	}
	fmt.Fprintf(&c.body, ">%s</text>\n", safe(text))
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
