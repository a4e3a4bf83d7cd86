package model

import (
	"strconv"
	"strings"
	"time"
)

// Slots are when the key of a rate lets starts through, in whole microseconds. Who finds no room reserves a slot; what is late for its slot
// starts when the key opens, one after the other, so that no outage ends in a burst.
type Slots struct {
	Free   time.Time // the first slot that nobody has reserved; zero: any instant is
	Closed time.Time // until then nothing starts, whatever is reserved; zero: it is open
}

// evenly is how much too soon a start may come. Without it a start delayed by a millisecond would delay all behind it.
const evenly = 100 * time.Millisecond

// lineKept is how long the end of the line is remembered.
const lineKept = time.Hour

// ParseSlots reads what String has written. What cannot be read is zero.
func ParseSlots(text string) Slots {
	free, closed, _ := strings.Cut(text, " ")
	return Slots{readMicros(free), readMicros(closed)}
}

// String is how slots are stored: both instants in Unix microseconds; empty for the zero value.
func (s Slots) String() string {
	text := micros(s.Free)
	if !s.Closed.IsZero() {
		text += " " + micros(s.Closed)
	}
	return text
}

func (s Slots) reserve(interval time.Duration, now time.Time) (slot time.Time, after Slots) {
	slot = latest(s.Free, s.Closed, now)
	return slot, Slots{ceilMicros(slot.Add(interval)), s.Closed}
}

// start closes the key for an interval. A late start moves the whole line.
func (s Slots) start(slot time.Time, interval time.Duration, now time.Time) (after Slots) {
	place := latest(s.Closed, slot)
	late := max(0, now.Sub(place)-evenly)
	after.Closed = ceilMicros(place.Add(late + interval))
	after.Free = latest(s.Free.Add(late), after.Closed)
	return after
}

// Last is from when on nobody needs to know of the slots any more.
func (s Slots) Last() time.Time {
	if s.Free.Sub(s.Closed) > evenly { // somebody holds one
		return s.Free.Add(lineKept)
	}
	return latest(s.Free, s.Closed)
}

func latest(at time.Time, others ...time.Time) time.Time {
	for _, other := range others {
		if other.After(at) {
			at = other
		}
	}
	return at
}

// ceilMillis rounds up to what a score can hold.
func ceilMillis(at time.Time) time.Time {
	return at.Add(time.Millisecond - 1).Truncate(time.Millisecond)
}

func ceilMicros(at time.Time) time.Time {
	return at.Add(time.Microsecond - 1).Truncate(time.Microsecond)
}

func micros(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMicro(), 10)
}

func readMicros(text string) time.Time {
	us, err := strconv.ParseInt(text, 10, 64)
	if err != nil || us <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
