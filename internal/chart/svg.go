package chart

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// The measures of a picture, in pixels. README pages are about 880 wide.
const (
	pictureWidth = 880.0
	margin       = 20.0
)

// maxStairs is how many attempts are drawn with a row each; more of them share rows, one for each window of time.
const maxStairs = 24

// SVG draws all charts in one picture that stands alone: no script, no font or image from elsewhere. It brings its own
// background, so that it can be read on a light and on a dark page. Several charts stand below each other on one time axis.
func SVG(w io.Writer, charts ...Chart) error {
	p := picture{canvas: newCanvas()}
	p.draw(charts)
	if _, err := io.WriteString(w, p.document(charts)); err != nil {
		return fmt.Errorf("write svg: %w", err)
	}
	return nil
}

// picture is drawn from top to bottom; y is how far it has come.
type picture struct {
	*canvas
	y float64
}

func (p *picture) draw(charts []Chart) {
	runs := make([]run, len(charts))
	attempts := 0
	for i := range charts {
		runs[i] = newRun(&charts[i])
		attempts = max(attempts, len(runs[i].attempts)+len(runs[i].marks))
	}
	span := joint(runs)
	p.y = margin
	for i := range runs {
		p.heading(&runs[i])
		if attempts <= maxStairs {
			p.staircase(&runs[i], span)
		} else {
			p.calendar(&runs[i], schemeOf(runs, span, runs[i].chart.location()))
		}
		p.y += 14
	}
	p.legend()
}

// run is a chart, read.
type run struct {
	chart    *Chart
	events   []Event
	attempts []attempt
	marks    []Event
}

func newRun(chart *Chart) run {
	events := ordered(chart.Events)
	return run{chart: chart, events: events, attempts: attemptsOf(events), marks: marks(events)}
}

// period is a stretch of time.
type period struct{ from, to time.Time }

func (p *period) include(at time.Time) {
	if at.IsZero() {
		return
	}
	if p.from.IsZero() || at.Before(p.from) {
		p.from = at
	}
	if p.to.IsZero() || at.After(p.to) {
		p.to = at
	}
}

// joint is the period that a picture of all runs shows: their events and, if it is not too far away, what comes next.
func joint(runs []run) period {
	var shown period
	for i := range runs {
		for _, event := range runs[i].events {
			shown.include(event.At)
		}
		for _, attempt := range runs[i].attempts {
			if attempt.running() {
				shown.include(attempt.deadline)
			}
		}
	}
	reach := shown
	for i := range runs {
		reach.to = runs[i].ahead(reach.to, shown)
	}
	if shown.from.IsZero() && len(runs) > 0 {
		reach.include(runs[0].chart.Start)
		reach.include(runs[0].chart.End)
	}
	return reach
}

// ahead moves an end to the next refresh, if that makes the picture at most twice as long.
func (r *run) ahead(end time.Time, shown period) time.Time {
	if len(r.events) == 0 {
		return end
	}
	next := r.events[len(r.events)-1].RefreshAt
	if next.After(end) && next.Sub(shown.to) <= shown.to.Sub(shown.from) {
		return next
	}
	return end
}

func (p *picture) heading(r *run) {
	title := r.chart.Title
	if title == "" {
		title = r.chart.Policy
	}
	if title != "" {
		p.y += 14
		p.text("title", anchorStart, margin, p.y, cut(title, 100))
	}
	p.y += 19
	p.text("small", anchorStart, margin, p.y, cutTo(r.digest(), pictureWidth-2*margin))
	p.y += 10
}

// digest is the summary in one line.
func (r *run) digest() string {
	sum := r.chart.Summary()
	parts := []string{count(sum.Attempts, "attempt")}
	if start, end := r.chart.bounds(); end.Sub(start) >= oneDay {
		parts = append(parts, fmt.Sprintf("%g a day", sum.AttemptsPerDay))
	}
	if sum.Retries > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s helped", sum.RetriesThatHelped, plural(sum.Retries, "retry", "retries")))
	}
	parts = append(parts, "worst staleness "+rounded(sum.WorstStaleness))
	if sum.GaveUp {
		parts = append(parts, "gave up after "+rounded(sum.TimeToGiveUp))
	}
	return strings.Join(append(parts, r.chart.location().String()), "  ·  ")
}

func count(n int, name string) string { return plural(n, name, name+"s") }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// legendEntries explain the classes, as far as they were used.
var legendEntries = []struct{ class, text string }{
	{"success", "success"}, {"failure", "failure"}, {"timeout", "timeout"}, {"running", "running"}, {"other", "not counted"},
	{"deadline", "time left to its deadline"}, {"wait", "waits for the next attempt"}, {"planned", "planned refresh"},
	{"wish", "where its delay alone would put the retry"}, {"final", "disabled"}, {"mark", "other event"},
}

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
		p.swatch(entry.class, x, p.y)
		p.text("small", anchorStart, x+24, p.y+8, entry.text)
		x += width
	}
	p.y += 10 + margin
}

func (p *picture) swatch(class string, x, y float64) {
	switch class {
	case "wait":
		p.line(class, x, y+4, x+18, y+4)
	case "planned":
		p.line(class, x+9, y-4, x+9, y+12)
	case "final":
		p.cross(x+9, y+4)
	case "mark":
		p.diamond(x+9, y+4)
	default:
		p.rect(class, x, y, 18, 9, "")
	}
}

// cross marks the end of all attempts.
func (p *picture) cross(x, y float64) {
	p.rect("final", x-7, y-7, 14, 14, "")
	p.path("stroke", fmt.Sprintf("M%s %sl7 7m0 -7l-7 7", number(x-3.5), number(y-3.5)))
}

func (p *picture) diamond(x, y float64) {
	p.path("mark", fmt.Sprintf("M%s %sl6 6l-6 6l-6 -6z", number(x), number(y-6)))
}
