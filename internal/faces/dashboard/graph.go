package dashboard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/foresight/chart"
	"github.com/refreshd/refreshd/model/words"
)

// graph is a chart of columns side by side, with its axes. Its widths are percents, so that texts keep their size on any screen.
type graph struct {
	Name, About string
	Legend      []key
	Y, X        []mark
	Columns     []column
	Limit       string // how high a line stands across; "": there is none
}

// mark is a text on an axis, and where it stands.
type mark struct {
	At, Text, Anchor string
	Odd              bool // it is left out where there is little room
}

// column is what was in one span of time.
type column struct {
	X, Width string
	Inner    string // width of the bars
	From     string
	Values   []string // of the keys of the legend
	Title    string   // shown at the mouse
	Bars     []bar
}

type bar struct{ Class, Y, Height string }

type key struct{ Class, Text string }

// span is what a column is made of: a value for each key of the legend, the lowest first; -1 where it is not known.
type span struct {
	from   time.Time
	values []int64
}

// graphHeight is that of the plot, in CSS pixels, as in style.css. graphTop leaves room for half a text.
const (
	graphHeight = 120
	graphTop    = 8
)

// draw makes a graph of spans of one length.
func (g *graph) draw(spans []span, step time.Duration, zone *time.Location, waits bool, limit int64) {
	format := func(value int64) string { return valueText(value, waits) }
	most := limit
	for _, s := range spans {
		sum := int64(0)
		for _, value := range s.values {
			sum += max(0, value)
		}
		most = max(most, sum)
	}
	each := roundStep(most, waits)
	top := max(1, (most+each-1)/each) * each
	height := func(value int64) float64 { return float64(value) / float64(top) * (graphHeight - graphTop) }
	y := func(value int64) string { return decimal(graphHeight - height(value)) }
	for value := int64(0); value <= top; value += each {
		g.Y = append(g.Y, mark{At: y(value), Text: format(value)})
	}
	if limit > 0 {
		g.Limit = y(limit)
	}
	percent := func(part float64) string { return decimal(part*100) + "%" }
	share := 1 / float64(len(spans))
	for i, s := range spans {
		c := column{X: percent(float64(i) * share), Width: percent(share), Inner: percent(share * 0.85), From: spanText(s.from, step, zone)}
		bottom, told := int64(0), make([]string, len(s.values))
		for j, value := range s.values {
			c.Values = append(c.Values, format(value))
			if told[j] = c.Values[j] + " " + g.Legend[j].Text; value > 0 {
				bottom += value
				c.Bars = append(c.Bars, bar{g.Legend[j].Class, y(bottom), decimal(height(value))})
			}
		}
		if c.Title = c.From + ": " + strings.Join(told, ", "); slices.Min(s.values) < 0 {
			c.Title = c.From + ": not known"
		}
		g.Columns = append(g.Columns, c)
	}
	from, to := spans[0].from, spans[len(spans)-1].from.Add(step)
	for i, tick := range chart.Ticks(from, to, zone) {
		part, anchor := float64(tick.At.Sub(from))/float64(to.Sub(from)), "middle"
		if part < 0.05 {
			anchor = "start"
		} else if part > 0.95 {
			anchor = "end"
		}
		g.X = append(g.X, mark{percent(part), tick.Text, anchor, i%2 == 1})
	}
}

// waitSteps are the round distances between two lengths of time, in seconds.
var waitSteps = []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600}

// roundStep is the distance between the marks of an axis: at most three lie above 0.
func roundStep(most int64, waits bool) int64 {
	if waits {
		for _, step := range waitSteps {
			if 3*step >= most {
				return step
			}
		}
		return 86400 * roundStep((most+86399)/86400, false)
	}
	for power := int64(1); ; power *= 10 {
		for _, step := range []int64{power, 2 * power, 5 * power} {
			if 3*step >= most {
				return step
			}
		}
	}
}

func decimal(value float64) string { return strings.TrimSuffix(fmt.Sprintf("%.2f", value), ".00") }

// numberText writes a number with a comma after each three digits.
func numberText(value int64) string {
	text := strconv.FormatInt(value, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// table tells the values of graphs, the newest first.
type table struct {
	Heads []string
	Rows  [][]string // the first cell says from when
}

// add adds a column for each key of a graph.
func (t *table) add(g *graph) {
	for _, key := range g.Legend {
		t.Heads = append(t.Heads, key.Text)
	}
	for i := range g.Columns {
		column := &g.Columns[len(g.Columns)-1-i]
		if i == len(t.Rows) {
			t.Rows = append(t.Rows, []string{column.From})
		}
		t.Rows[i] = append(t.Rows[i], column.Values...)
	}
}

func valueText(value int64, waits bool) string {
	switch {
	case value < 0:
		return "–"
	case waits:
		return words.Roughly(time.Duration(value) * time.Second)
	default:
		return numberText(value)
	}
}

// spanText says from when a span lasts: by the clock where it is short, and by the day.
func spanText(from time.Time, step time.Duration, zone *time.Location) string {
	from = from.In(zone)
	if step <= time.Hour {
		return from.Format("15:04")
	}
	return strings.TrimSuffix(from.Format("Mon 2 Jan 15:04"), " 00:00")
}
