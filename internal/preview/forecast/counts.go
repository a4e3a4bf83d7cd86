package forecast

import (
	"cmp"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
)

// Counts are starts per minute.
type Counts struct {
	From      time.Time // when the first minute begins: a whole one
	PerMinute []int
}

// maxMinutes is how far counts may grow beyond the period: a month.
const maxMinutes = 31 * 24 * 60

// NewCounts counts from the minute of an instant to another instant.
func NewCounts(from, to time.Time) *Counts {
	from = from.UTC().Truncate(time.Minute)
	return &Counts{From: from, PerMinute: make([]int, max(0, int((to.Sub(from)+time.Minute-1)/time.Minute)))}
}

// Add counts a start; one outside of the period counts nowhere.
func (c *Counts) Add(at time.Time) {
	if i := c.minute(at); !at.Before(c.From) && i < len(c.PerMinute) {
		c.PerMinute[i]++
	}
}

// minute numbers the minute of an instant that is not before the first one.
func (c *Counts) minute(at time.Time) int { return int((at.Unix() - c.From.Unix()) / 60) } // From is a whole minute

// addAnyway counts starts that may be beyond the period. More than a month beyond it, the minute does not matter.
func (c *Counts) addAnyway(at time.Time, starts int) {
	i := min(max(0, c.minute(at)), len(c.PerMinute)+maxMinutes, 2*maxMinutes)
	if grow := i + 1 - len(c.PerMinute); grow > 0 {
		c.PerMinute = append(c.PerMinute, make([]int, grow)...)
	}
	c.PerMinute[i] += starts
}

// At is when a minute begins.
func (c *Counts) At(minute int) time.Time { return c.From.Add(time.Duration(minute) * time.Minute) }

// Total is how many starts there are.
func (c *Counts) Total() (sum int) {
	for _, starts := range c.PerMinute {
		sum += starts
	}
	return sum
}

// Peak is the number of the minute with the most starts, the first of several; 0 also where there are none.
func (c *Counts) Peak() (minute int) { return max(0, slices.Index(c.PerMinute, c.Most())) }

// Most is how many starts the minute with the most has.
func (c *Counts) Most() int {
	if len(c.PerMinute) == 0 {
		return 0
	}
	return slices.Max(c.PerMinute)
}

// Worst are the numbers of the minutes with the most starts, at most n of them, the worst first. Those without any are left out.
func (c *Counts) Worst(n int) (minutes []int) {
	for i, starts := range c.PerMinute {
		if starts > 0 {
			minutes = append(minutes, i)
		}
	}
	slices.SortStableFunc(minutes, func(a, b int) int { return cmp.Compare(c.PerMinute[b], c.PerMinute[a]) })
	return minutes[:min(len(minutes), n)]
}

// Over is how many minutes have more starts than a rate per minute can take.
func (c *Counts) Over(drain float64) (minutes int) {
	for _, starts := range c.PerMinute {
		if float64(starts) > drain {
			minutes++
		}
	}
	return minutes
}

func (c *Counts) uneven() (sum float64) {
	for _, starts := range c.PerMinute {
		sum += float64(starts) * float64(starts)
	}
	return sum
}

// Backlog is what piles up in the input list.
type Backlog struct {
	Most    int       // attempts at the end of the worst minute
	At      time.Time // when that minute ends; zero: there never is a backlog
	EmptyAt time.Time // when the list is empty again after that; zero: not within the period
}

// Backlog computes it for a drain per minute, more than 0, from now on, with queued attempts in the list.
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

// Length is how long the attempts of a model take that succeed, on average; 0: none is known, and they count as if they ended at once.
func Length(attempts []model.Attempt) time.Duration {
	sum, count := time.Duration(0), 0
	for _, attempt := range attempts {
		if attempt.Outcome == model.EventSuccess {
			sum, count = sum+attempt.Duration, count+1
		}
	}
	return sum / time.Duration(max(1, count))
}

// Work adds up how long attempts are at work in each minute of a period.
type Work struct {
	from      time.Time
	perMinute []time.Duration
}

// NewWork covers a period, rounded up to whole minutes.
func NewWork(from, to time.Time) *Work {
	return &Work{from, make([]time.Duration, max(0, int((to.Sub(from)+time.Minute-1)/time.Minute)))}
}

// Add counts an attempt that begins at an instant. The time outside of the period does not count.
func (w *Work) Add(at time.Time, took time.Duration) {
	begins, ends := at.Sub(w.from), at.Sub(w.from)+took
	for i := max(0, int(begins/time.Minute)); i < len(w.perMinute); i++ {
		minute := time.Duration(i) * time.Minute
		if minute >= ends {
			return
		}
		w.perMinute[i] += min(ends, minute+time.Minute) - max(begins, minute)
	}
}

// Slots is how many attempts are at work at the same time: the mean of the busiest minute, rounded up.
func (w *Work) Slots() (slots int) {
	for _, busy := range w.perMinute {
		slots = max(slots, int((busy+time.Minute-1)/time.Minute))
	}
	return slots
}
