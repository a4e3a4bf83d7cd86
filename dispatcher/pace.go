package dispatcher

import "time"

// firstWindow is how many entries may wait until it is known how fast workers are.
const firstWindow = 100

// pace is how many entries may wait in the input list: as many as workers take soon. It is a hint that each dispatcher keeps for itself.
// While the list is found drained workers could have had more; when its front has waited for long, they could not.
type pace struct {
	window int
	filled bool      // more was due than the window had room for, and the list was not found drained since
	since  time.Time // of that
	cut    time.Time // when the window shrank last
}

func newPace(most int) pace { return pace{window: min(most, firstWindow)} }

// fill says that more is due at now than the window has room for.
func (p pace) fill(now time.Time) pace {
	if !p.filled {
		p.filled, p.since = true, now
	}
	return p
}

// drain looks at how many wait. A list is drained when a quarter of it was taken between two looks, or more: with as few as are left workers
// may have to wait before the next. The window is never above most.
func (p pace) drain(queued, most int) pace {
	if p.filled && 4*queued <= 3*p.window {
		p.window, p.filled = min(2*p.window, most), false
	}
	return p
}

// tooLong is which part of its timeout the front may have waited.
const tooLong = 10

// front looks at an attempt that stands first in the list at now. A timeout of 0 is none: it may wait as long as it likes.
func (p pace) front(startedAt time.Time, timeout time.Duration, now time.Time) pace {
	if timeout > 0 && now.Sub(startedAt) > timeout/tooLong && startedAt.After(p.cut) {
		p.window, p.cut = max(1, p.window/2), now
	}
	return p
}

// mayGrow reports whether the window was filled within a while before now, so that it may be drained soon for the first time.
func (p pace) mayGrow(most int, within time.Duration, now time.Time) bool {
	return p.filled && p.window < most && now.Sub(p.since) < within
}
