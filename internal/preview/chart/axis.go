package chart

import (
	"math"
	"time"
)

type axis struct {
	period
	left, right px
	zone        *time.Location
	wallClock   bool // on an axis of one day: six o'clock is at the same place on every day, whatever its length
}

// x stays within the edges.
func (a axis) x(at time.Time) px {
	var share float64
	switch length := a.to.UnixMilli() - a.from.UnixMilli(); {
	case length <= 0 || !at.After(a.from):
		return a.left
	case !at.Before(a.to):
		return a.right
	case a.wallClock:
		at = at.In(a.zone)
		share = float64(at.Hour()*3600+at.Minute()*60+at.Second()) / 86400
	default:
		share = float64(at.UnixMilli()-a.from.UnixMilli()) / float64(length)
	}
	return a.left + px(share)*(a.right-a.left)
}

func (a axis) shows(at time.Time) bool { return !at.Before(a.from) && !at.After(a.to) }

// Tick is a mark on an axis of time.
type Tick struct {
	At   time.Time
	Text string
	day  bool // midnight
}

// maxTicks labels fit side by side.
const maxTicks = 10

var tickSteps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
	10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

func (a axis) ticks() []Tick {
	length := a.length()
	for _, step := range tickSteps {
		if length/step < maxTicks {
			return a.clockTicks(step)
		}
	}
	days := float64(length/time.Second) / 86400
	step := int(math.Ceil(days / maxTicks))
	layout := "2 Jan"
	if days > 360 {
		layout = "2 Jan 2006"
		step = int(math.Ceil(days / maxTicks * 1.2))
	}
	var ticks []Tick
	for day := a.midnight().AddDate(0, 0, 1); !day.After(a.to) && len(ticks) < 2*maxTicks; day = day.AddDate(0, 0, step) {
		ticks = append(ticks, Tick{day, day.Format(layout), true})
	}
	return ticks
}

func (a axis) clockTicks(step time.Duration) []Tick {
	layout := "15:04"
	if step < time.Minute {
		layout = time.TimeOnly
	}
	var ticks []Tick
	for day := a.midnight(); !day.After(a.to); day = day.AddDate(0, 0, 1) {
		first := max(0, a.from.Sub(day).Truncate(step))
		for offset := first; offset < 24*time.Hour && !day.Add(offset).After(a.to.Add(time.Hour)); offset += step {
			at := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, int(offset/time.Second), 0, a.zone)
			if !a.shows(at) {
				continue
			}
			label := at.Format(layout)
			if offset == 0 {
				label = at.Format("Mon 2 Jan")
			}
			ticks = append(ticks, Tick{at, label, offset == 0})
		}
	}
	return ticks
}

// grid draws the lines of an axis, and their labels at y if there is room.
func (p *picture) grid(ax axis, top, bottom, y px) {
	free := px(0)
	for _, tick := range ax.ticks() {
		x, half, class := ax.x(tick.At), widthOf(tick.Text)/2, "grid"
		if tick.day {
			class = "midnight"
		}
		p.line(class, x, top, x, bottom)
		if x-half >= free && x+half < p.width {
			p.text("small", anchorMiddle, x, y, tick.Text)
			free = x + half + 8
		}
	}
}

func (a axis) midnight() time.Time {
	from := a.from.In(a.zone)
	return time.Date(from.Year(), from.Month(), from.Day(), 0, 0, 0, 0, a.zone)
}

type period struct{ from, to time.Time }

func (p period) length() time.Duration { return p.to.Sub(p.from) }

// holds excludes the end, which belongs to the next period.
func (p period) holds(at time.Time) bool { return !at.Before(p.from) && at.Before(p.to) }

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

// joint is the period of a picture of all runs: their events, and the next refresh unless it more than doubles the period.
func joint(runs []*run) period {
	var shown period
	for _, r := range runs {
		for _, event := range r.Events {
			shown.include(event.At)
		}
		for _, a := range r.attempts {
			if a.running() {
				shown.include(a.begin.DeadlineAt)
			}
		}
	}
	reach := shown
	for _, r := range runs {
		if n := len(r.Events); n > 0 {
			next := r.Events[n-1].RefreshAt
			if next.After(reach.to) && next.Sub(shown.to) <= shown.length() {
				reach.to = next
			}
		}
	}
	if shown.from.IsZero() && len(runs) > 0 {
		reach.include(runs[0].Start)
		reach.include(runs[0].End)
	}
	return reach
}

// Ticks are at most ten marks between two instants, at round times in a zone.
func Ticks(from, to time.Time, zone *time.Location) []Tick {
	return axis{period: period{from, to}, zone: zone}.ticks()
}
