package forecast

import "time"

// Backlog is what piles up in the input list where more is started than is taken.
type Backlog struct {
	Most    int       // attempts at the end of the worst minute
	At      time.Time // when that minute ends; zero: there never is a backlog
	EmptyAt time.Time // when the list is empty again after that; zero: not within the period
}

// Backlog runs a list that is drained at a rate per minute, more than 0, from now on: queued attempts stand in it already.
func (c *Counts) Backlog(drain float64, queued int, now time.Time) (b Backlog) {
	waiting := float64(queued)
	for i, starts := range c.PerMinute {
		end := c.At(i + 1)
		room := drain * min(1, max(0, end.Sub(now).Minutes()))
		waiting = max(0, waiting+float64(starts)-room)
		switch left := int(waiting + 0.999); {
		case left > b.Most:
			b = Backlog{Most: left, At: end}
		case left == 0 && b.Most > 0 && b.EmptyAt.IsZero():
			b.EmptyAt = end
		}
	}
	return b
}
