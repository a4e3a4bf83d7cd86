package chart

import "time"

type period struct{ from, to time.Time }

func (p period) length() time.Duration { return p.to.Sub(p.from) }

// holds: the end belongs to the next period.
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

// joint is the period that a picture of all runs shows: their events and, if that makes it at most twice as long, the next
// refresh.
func joint(runs []*run) period {
	var shown period
	for _, r := range runs {
		for _, event := range r.Events {
			shown.include(event.At)
		}
		for _, a := range r.attempts {
			if a.running() {
				shown.include(a.deadline)
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
