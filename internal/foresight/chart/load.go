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
	p.y += 20
	p.load(&l)
	return write(w, "svg", p.frame(l.Title, l.Digest))
}

type loadPlot struct {
	*picture

	bottom, width px // width is that of a column
	top           float64
}

func (p *picture) load(l *Load) {
	bars := columns(l.PerMinute)
	plot := loadPlot{picture: p, bottom: p.y + loadHeight, width: (loadRight - loadLeft) / px(max(1, len(bars)))}
	plot.top = max(1, l.Drain, float64(slices.Max(slices.Concat(bars, l.Other, []int{0}))))
	plot.background(l)
	for i, starts := range bars {
		plot.column(i, float64(starts), l.Drain)
	}
	plot.other(columns(l.Other))
	if l.Drain > 0 {
		y := plot.y0(l.Drain)
		plot.line("planned", loadLeft, y, loadRight, y)
	}
	p.y = plot.bottom + 40
	p.legend([]legendEntry{
		{"running", "starts a minute"}, {"failure", "more than are taken"}, {"planned", fmt.Sprintf("taken: %.6g a minute", l.Drain)}, {"wait", l.OtherName},
	})
}

func (l *loadPlot) y0(number float64) px {
	return l.bottom - px(number/l.top)*loadHeight
}

func (l *loadPlot) background(load *Load) {
	l.rect("plot", loadLeft, l.bottom-loadHeight, loadRight-loadLeft, loadHeight, "")
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		y := l.y0(share * l.top)
		l.line("grid", loadLeft, y, loadRight, y)
		l.text("small", anchorEnd, loadLeft-6, y+4, strconv.FormatFloat(share*l.top, 'f', -1, 64))
	}
	to := load.From.Add(time.Duration(len(load.PerMinute)) * time.Minute)
	ax := axis{period: period{load.From, to}, left: loadLeft, right: loadRight, zone: cmp.Or(load.Location, time.UTC)}
	for _, tick := range ax.ticks() {
		x := ax.x(tick.at)
		l.line("grid", x, l.bottom-loadHeight, x, l.bottom+4)
		l.text("small", anchorMiddle, x, l.bottom+18, tick.label)
	}
}

func (l *loadPlot) column(i int, starts, drain float64) {
	if starts == 0 {
		return
	}
	taken := starts
	if drain > 0 {
		taken = min(taken, drain)
	}
	x, y := loadLeft+px(i)*l.width, l.y0(taken)
	l.rect("running", x, y, l.width, l.bottom-y, "")
	if starts > taken {
		l.rect("failure", x, l.y0(starts), l.width, y-l.y0(starts), "")
	}
}

func (l *loadPlot) other(bars []int) {
	for i := 1; i < len(bars); i++ {
		x, before, is := loadLeft+px(i)*l.width, l.y0(float64(bars[i-1])), l.y0(float64(bars[i]))
		l.path("wait", "M%s %sH%sV%s", x-l.width, before, x, is)
	}
}
