package dispatcher

import "time"

// firstWindow is how many entries may wait until it is known how fast workers are.
const firstWindow = 100

// window is how many entries may wait in the input list: as many as workers take soon. Each dispatcher keeps its own, as a hint.
// It grows while workers drain the list, and shrinks when the first entry has waited for long.
type window struct {
	size   int
	filled bool      // more was due than fits, and the list was not found drained since
	since  time.Time // of that
	cut    time.Time // when the window shrank last
}

func newWindow(most int) window { return window{size: min(most, firstWindow)} }

// fill notes that more is due at now than fits.
func (w window) fill(now time.Time) window {
	if !w.filled {
		w.filled, w.since = true, now
	}
	return w
}

// drain doubles a filled window if workers took a quarter of it or more since the last round: they might run dry before the next.
// The window never exceeds most.
func (w window) drain(queued, most int) window {
	if w.filled && 4*queued <= 3*w.size {
		w.size, w.filled = min(2*w.size, most), false
	}
	return w
}

// tooLong is the part of its timeout that the first entry may have waited.
const tooLong = 10

// waited halves the window if the first entry has waited for too long. A timeout of 0 is none.
func (w window) waited(startedAt time.Time, timeout time.Duration, now time.Time) window {
	if timeout > 0 && now.Sub(startedAt) > timeout/tooLong && startedAt.After(w.cut) {
		w.size, w.cut = max(1, w.size/2), now
	}
	return w
}

// mayGrow reports whether the window was filled within a while before now, so that it may be drained soon for the first time.
func (w window) mayGrow(most int, within time.Duration, now time.Time) bool {
	return w.filled && w.size < most && now.Sub(w.since) < within
}
