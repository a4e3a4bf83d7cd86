package dashboard

import (
	"fmt"
	"strings"
	"time"
)

// graph is a small picture of an hour, with what it shows in words.
type graph struct {
	About         string
	Most          string // what the top of the picture stands for; its bottom is 0
	Width, Height int
	Bars          []bar
	Line          string // points
	Legend        []key
}

type bar struct {
	Class               string
	X, Y, Width, Height string
}

// key tells what a colour means.
type key struct{ Class, Text string }

// minutes is how many of them a graph shows.
const minutes = int(kept / time.Minute)

const (
	minuteWidth = 10 // of the picture, in its own units
	graphHeight = 100
)

// perMinute are how often something was counted in each of the last minutes; the last one goes on.
type perMinute [minutes]int64

// rates are the rates of all counters. What was counted between two samples counts in the minute of the later one.
func rates(samples []sample, now time.Time) (all [len(counted)]perMinute) {
	for i := 1; i < len(samples); i++ {
		at := minuteOf(samples[i].at, now)
		for c := range counted {
			if more := samples[i].counted[c] - samples[i-1].counted[c]; at >= 0 && at < minutes && more > 0 {
				all[c][at] += more
			}
		}
	}
	return all
}

// minuteOf is the number of the minute in which an instant lies; less than 0: before all of them.
func minuteOf(at, now time.Time) int {
	return minutes - 1 - int(now.Truncate(time.Minute).Sub(at.Truncate(time.Minute))/time.Minute)
}

// bars draws columns of which each is made of stacked parts, and tells the height of the highest, 1 at least.
func bars(classes []string, stacks []perMinute) (drawn []bar, most int64) {
	most = 1
	for m := range minutes {
		most = max(most, heightOf(stacks, m))
	}
	for m := range minutes {
		bottom := float64(graphHeight)
		for i, class := range classes {
			height := float64(stacks[i][m]) / float64(most) * graphHeight
			if height == 0 {
				continue
			}
			bottom -= height
			drawn = append(drawn, bar{class, fmt.Sprint(m*minuteWidth + 1), number(bottom), fmt.Sprint(minuteWidth - 2), number(height)})
		}
	}
	return drawn, most
}

func heightOf(stacks []perMinute, m int) (height int64) {
	for _, stack := range stacks {
		height += stack[m]
	}
	return height
}

// line draws the greatest value of each minute. A minute without a sample has no point.
func line(samples []sample, now time.Time, value func(sample) float64) (points string, most float64) {
	var values [minutes]float64
	var known [minutes]bool
	for _, one := range samples {
		if at := minuteOf(one.at, now); at >= 0 && at < minutes {
			values[at], known[at] = max(values[at], value(one)), true
			most = max(most, values[at])
		}
	}
	var text []string
	for m, value := range values {
		if known[m] {
			text = append(text, fmt.Sprintf("%d,%s", m*minuteWidth+minuteWidth/2, number(graphHeight-value/max(most, 1)*(graphHeight-2))))
		}
	}
	return strings.Join(text, " "), most
}

func number(value float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") }

func newGraph(about string) graph {
	return graph{About: about, Width: minutes * minuteWidth, Height: graphHeight}
}

func (g *graph) stack(classes []string, stacks ...perMinute) {
	var most int64
	g.Bars, most = bars(classes, stacks)
	g.Most = fmt.Sprint(most)
}

func (p perMinute) total() (total int64) {
	for _, count := range p {
		total += count
	}
	return total
}

// last is that of the last full minute.
func (p perMinute) last() int64 { return p[minutes-2] }
