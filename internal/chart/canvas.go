package chart

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// canvas collects the elements of a picture. Every text goes through text, which makes it inert.
type canvas struct {
	body strings.Builder
	used map[string]bool // the classes drawn so far, for the legend
}

func newCanvas() *canvas { return &canvas{used: map[string]bool{}} }

// number writes a coordinate, in pixels: one digit after the point is enough.
func number(n float64) string {
	text := strconv.FormatFloat(n, 'f', 1, 64)
	if text = strings.TrimSuffix(text, ".0"); text == "-0" {
		return "0"
	}
	return text
}

// safe makes a text fit for XML: escaped, and without the characters that XML does not know.
func safe(text string) string {
	known := strings.Map(func(r rune) rune {
		if r == '\uFFFE' || r == '\uFFFF' {
			return utf8.RuneError
		}
		return r
	}, plain(text))
	return html.EscapeString(known)
}

// rect draws a box; hint, if there is one, is what a mouse over it shows.
func (c *canvas) rect(class string, x, y, width, height float64, hint string) {
	c.used[class] = true
	fmt.Fprintf(&c.body, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="2"`,
		class, number(x), number(y), number(width), number(height))
	if hint == "" {
		c.body.WriteString("/>\n")
		return
	}
	fmt.Fprintf(&c.body, "><title>%s</title></rect>\n", safe(hint))
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.path(class, fmt.Sprintf("M%s %sL%s %s", number(x1), number(y1), number(x2), number(y2)))
}

func (c *canvas) path(class, d string) {
	c.used[class] = true
	fmt.Fprintf(&c.body, "<path class=\"%s\" d=\"%s\"/>\n", class, d)
}

// Where a text stands at its x.
const (
	anchorStart  = "start"
	anchorMiddle = "middle"
	anchorEnd    = "end"
)

func (c *canvas) text(class, anchor string, x, y float64, text string) {
	fmt.Fprintf(&c.body, "<text class=\"%s\" x=\"%s\" y=\"%s\"", class, number(x), number(y))
	if anchor != anchorStart {
		fmt.Fprintf(&c.body, " text-anchor=\"%s\"", anchor)
	}
	fmt.Fprintf(&c.body, ">%s</text>\n", safe(text))
}

// letterWidth is what a letter of the small font takes, in pixels, on the generous side.
const letterWidth = 6.1

func widthOf(text string) float64 { return float64(columns(text)) * letterWidth }

// cutTo shortens a text to a width in pixels.
func cutTo(text string, width float64) string {
	for limit := int(width / letterWidth); widthOf(text) > width && limit > 0; limit-- {
		text = cut(text, limit)
	}
	return text
}
