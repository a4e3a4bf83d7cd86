package chart

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Load is how many attempts start in each minute, with what is needed to show it.
type Load struct {
	Title, Digest string
	Location      *time.Location // the zone that times are shown in; nil: UTC
	From          time.Time      // when the first minute begins
	PerMinute     []int
	// Other is what else the starts could be, and OtherName what that is called; nil: nothing.
	Other     []int
	OtherName string
	Drain     float64 // how many attempts a minute are taken; 0: not known
}

// The measures of the picture of a load.
const (
	loadLeft   px = 64
	loadRight     = pictureWidth - margin
	loadHeight px = 220
	maxColumns    = 400
)

// columns are the fullest minutes of parts of equal length, as many as can be told apart.
func columns(perMinute []int) (most []int) {
	each := max(1, (len(perMinute)+maxColumns-1)/maxColumns)
	for part := range slices.Chunk(perMinute, each) {
		most = append(most, slices.Max(part))
	}
	return most
}

// LoadSVG draws a load as a picture that stands alone, as SVG does.
func LoadSVG(w io.Writer, l Load) error {
	p := newPicture()
	p.heading(l.Title, l.Digest)
	bars, other, bottom := columns(l.PerMinute), columns(l.Other), p.y+20+loadHeight
	width, top := (loadRight-loadLeft)/px(max(1, len(bars))), max(1, l.Drain, float64(slices.Max(slices.Concat(bars, l.Other, []int{0}))))
	height := func(number float64) px { return bottom - px(number/top)*loadHeight }

	p.rect("plot", loadLeft, bottom-loadHeight, loadRight-loadLeft, loadHeight, "")
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		y := height(share * top)
		p.line("grid", loadLeft, y, loadRight, y)
		p.text("small", anchorEnd, loadLeft-6, y+4, strconv.FormatFloat(share*top, 'f', -1, 64))
	}
	to := l.From.Add(time.Duration(len(l.PerMinute)) * time.Minute)
	ax := axis{period: period{l.From, to}, left: loadLeft, right: loadRight, zone: cmp.Or(l.Location, time.UTC)}
	for _, tick := range ax.ticks() {
		x := ax.x(tick.at)
		p.line("grid", x, bottom-loadHeight, x, bottom+4)
		p.text("small", anchorMiddle, x, bottom+18, tick.label)
	}

	for i, count := range bars {
		starts, taken := float64(count), float64(count)
		if l.Drain > 0 {
			taken = min(starts, l.Drain)
		}
		if x, y := loadLeft+px(i)*width, height(taken); starts > 0 {
			p.rect("running", x, y, width, bottom-y, "")
			if starts > taken {
				p.rect("failure", x, height(starts), width, y-height(starts), "")
			}
		}
	}
	for i := 1; i < len(other); i++ {
		x, before, is := loadLeft+px(i)*width, height(float64(other[i-1])), height(float64(other[i]))
		p.path("wait", "M%s %sH%sV%s", x-width, before, x, is)
	}
	if l.Drain > 0 {
		p.line("planned", loadLeft, height(l.Drain), loadRight, height(l.Drain))
	}
	p.y = bottom + 40
	p.legend([]legendEntry{
		{"running", "starts a minute"}, {"failure", "more than are taken"},
		{"planned", fmt.Sprintf("taken: %.6g a minute", l.Drain)}, {"wait", l.OtherName},
	})
	return write(w, "svg", p.frame(l.Title, l.Digest))
}
