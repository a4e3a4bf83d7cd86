package dashboard

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/preview/chart"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// graph is a chart of columns, with its axes. Its widths are percents, so that texts keep their size on any screen.
type graph struct {
	Name, About string
	Legend      []key
	Y, X        []mark
	Columns     []column
	Limit       string // height of a line across; "": none
}

// mark is a text at a place of an axis.
type mark struct {
	At, Text string
	Odd      bool // it is left out where there is little room
}

// column is one span of time.
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

// graphHeight is that of the plot, in CSS pixels, as in style.css. graphTop leaves room for half a text.
const (
	graphHeight = 120
	graphTop    = 8
)

// draw draws the known values of some metrics in slots of one length, the lowest metric first. The axis reaches to the
// values: a limit far above them is not drawn.
func (g *graph) draw(slots []slot, step time.Duration, zone *time.Location, limit int64, metrics ...report.Metric) {
	waits := metrics[0] == report.MetricWait
	most := int64(0)
	for i := range slots {
		sum := int64(0)
		for _, m := range metrics {
			sum += max(0, slots[i].values[m])
		}
		most = max(most, sum)
	}
	each := roundStep(most, waits)
	top := max(1, (most+each-1)/each) * each
	height := func(value int64) float64 { return float64(value) / float64(top) * (graphHeight - graphTop) }
	y := func(value int64) string { return decimal(graphHeight - height(value)) }
	for value := int64(0); value <= top; value += each {
		g.Y = append(g.Y, mark{At: y(value), Text: valueText(value, waits)})
	}
	if limit > 0 && limit <= top {
		g.Limit = y(limit)
	}
	percent := func(part float64) string { return decimal(part*100) + "%" }
	share := 1 / float64(len(slots))
	for i, s := range slots {
		c := column{X: percent(float64(i) * share), Width: percent(share), Inner: percent(share * 0.85), From: spanText(s.from, step, zone), Title: "not known"}
		bottom, values := int64(0), make([]string, len(metrics))
		for j, m := range metrics {
			value := s.values[m]
			c.Values = append(c.Values, valueText(value, waits))
			if values[j] = c.Values[j] + " " + g.Legend[j].Text; value > 0 {
				bottom += value
				c.Bars = append(c.Bars, bar{g.Legend[j].Class, y(bottom), decimal(height(value))})
			}
			if value >= 0 {
				c.Title = strings.Join(values[:j+1], ", ")
			}
		}
		c.Title = c.From + ": " + c.Title
		g.Columns = append(g.Columns, c)
	}
	from, to := slots[0].from, slots[len(slots)-1].from.Add(step)
	for i, tick := range chart.Ticks(from, to, zone) {
		if part := float64(tick.At.Sub(from)) / float64(to.Sub(from)); part > 0.05 && part < 0.95 { // else it hangs over
			g.X = append(g.X, mark{percent(part), tick.Text, i%2 == 1})
		}
	}
}

// roundStep is the distance between the marks of an axis: at most three lie above 0.
func roundStep(most int64, waits bool) int64 {
	for _, unit := range []int64{86400, 3600, 60} {
		if waits && most > unit {
			return unit * roundStep((most+unit-1)/unit, false)
		}
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

func numberText(value int64) string {
	text := strconv.FormatInt(value, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
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

// spanText is the beginning of a span: the time of a short one, otherwise the day.
func spanText(from time.Time, step time.Duration, zone *time.Location) string {
	from = from.In(zone)
	if step <= time.Hour {
		return from.Format("15:04")
	}
	return strings.TrimSuffix(from.Format("Mon 2 Jan 15:04"), " 00:00")
}

// period is how far back charts go.
type period struct {
	name  string // in the address
	text  string
	step  time.Duration // of a slot
	slots int
}

// periods begin with the default.
var periods = []period{
	{"", "Hour", time.Minute, 60}, {"24h", "24 hours", time.Hour, 24},
	{"7d", "7 days", 3 * time.Hour, 56}, {"90d", "90 days", 24 * time.Hour, 90},
}

func findPeriod(name string) (*period, error) {
	for i := range periods {
		if periods[i].name == name {
			return &periods[i], nil
		}
	}
	return nil, document.Refuse("period", "24h, 7d, 90d or none", document.Found(name))
}

// slot has counts of a part of a period, and levels: the highest input and wait, otherwise the last one; -1: unknown.
type slot struct {
	from   time.Time
	values [report.Metrics]int64
}

// fill makes the slots of a period that ends at now. The difference between two samples counts in the slot of the first one. A slot without a sample
// is unknown, and so are its counts if the next sample is beyond the next slot, or is smaller: somebody has reset the counters.
func (p *period) fill(samples []report.Sample, now time.Time) []slot {
	slots := make([]slot, p.slots)
	first := now.Truncate(p.step).Add(-time.Duration(p.slots-1) * p.step)
	at := func(one report.Sample) int { return int(one.At.Sub(first) / p.step) }
	for i := range slots {
		slots[i].from = first.Add(time.Duration(i) * p.step)
		for m := range slots[i].values {
			slots[i].values[m] = -1
		}
	}
	for i, one := range samples {
		if one.At.Before(first) || at(one) >= p.slots {
			continue
		}
		next := samples[min(i+1, len(samples)-1)]
		slots[at(one)].add(&one, &next, at(next) <= at(one)+1)
	}
	return slots
}

// add adds the levels of a sample, and the counts until the next one.
func (s *slot) add(one, next *report.Sample, near bool) {
	begins := s.values[report.MetricModels] < 0
	for m := range report.MetricModels {
		near = near && next.Values[m] >= one.Values[m]
	}
	for m := range report.Metrics {
		switch value := &s.values[m]; {
		case m == report.MetricInput || m == report.MetricWait:
			*value = max(*value, one.Values[m])
		case !m.Counts():
			*value = one.Values[m]
		case !near || !begins && *value < 0:
			*value = -1
		default:
			*value = max(0, *value) + next.Values[m] - one.Values[m]
		}
	}
}

func total(slots []slot, m report.Metric) (sum int64) {
	for i := range slots {
		sum += max(0, slots[i].values[m])
	}
	return sum
}
