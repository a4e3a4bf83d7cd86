package forecast

import "time"

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
