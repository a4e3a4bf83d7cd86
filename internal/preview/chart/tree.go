package chart

import (
	"io"
	"strings"
	"time"
)

// Tree draws the possible ends of one attempt as branches on one axis of time.
type Tree struct {
	Title    string
	Location *time.Location // of the axis
	Now      time.Time
	Start    time.Time // of the attempt
	Begins   string
	Branches []Branch
}

// Branch is one way in which an attempt may end.
type Branch struct {
	Kind     Kind
	At       time.Time // when it ends
	Ends     string    // with a time if it is known
	Next     time.Time // when the next attempt starts; zero: none
	Disabled bool
	Follows  string // what follows; the picture shows the first sentence
}

// A tree is also read on a telephone.
const (
	treeWidth  px = 320
	treeTop    px = 48
	treeRow    px = 50
	treeLeft      = margin
	treeRight     = treeWidth - margin
	treeMarker px = 4.5
)

// Alt describes the picture in words.
func (t Tree) Alt() string {
	parts := []string{t.Begins}
	for _, b := range t.Branches {
		parts = append(parts, sentence(b.Ends, b.Follows))
	}
	return strings.Join(parts, "; ")
}

// SVG draws the tree as a picture.
func (t Tree) SVG(w io.Writer) error {
	p := newPicture(treeWidth)
	shown := period{t.Now, t.Now}
	shown.include(t.Start)
	for _, b := range t.Branches {
		shown.include(b.At)
		shown.include(b.Next)
	}
	ax := axis{period: shown, left: treeLeft, right: treeRight, zone: t.Location}
	bottom := treeTop + px(len(t.Branches))*treeRow + 10
	p.grid(ax, 20, bottom, bottom+14)
	p.line("planned", ax.x(t.Now), 20, ax.x(t.Now), bottom)
	p.label("plan", ax.x(t.Now)-10, 14, "now")
	root := ax.x(t.Start)
	for i, b := range t.Branches {
		p.branch(b, ax, root, treeTop+px(i+1)*treeRow-14)
	}
	p.line("wait", ax.x(t.Now), treeTop, root, treeTop)
	p.marker("running", root, treeTop)
	p.label("note", root+8, treeTop+4, t.Begins)
	p.y = bottom + 24
	return write(w, "svg", p.frame(t.Title, t.Alt()))
}

func (p *picture) branch(b Branch, ax axis, root, y px) {
	ends, style := ax.x(b.At), b.Kind.style()
	p.path("wait", "M%s %sV%sH%s", root, treeTop, y, ends)
	next, follows := ends, strings.SplitN(strings.TrimSuffix(b.Follows, "."), ". ", 2)[0]
	if !b.Next.IsZero() {
		next = ax.x(b.Next)
		p.line("wait", ends, y, next, y)
		p.marker("running", next, y)
	}
	p.label("note", next+8, y+18, follows)
	p.marker(style.bar, ends, y)
	if b.Disabled {
		p.cross(ends+2*treeMarker+4, y)
	}
	p.label(style.words, ends+8, y-8, b.Ends)
}

func (p *picture) marker(class string, x, y px) {
	p.rect(class, x-treeMarker, y-treeMarker, 2*treeMarker, 2*treeMarker, "")
}

// label writes a text at x, but within the picture.
func (p *picture) label(class string, x, y px, text string) {
	text = cutTo(text, p.width-margin)
	p.text(class, anchorStart, min(x, p.width-widthOf(text)-margin/2), y, text)
}
