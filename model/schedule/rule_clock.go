package schedule

import (
	"math/bits"
	"time"

	"github.com/teambition/rrule-go"
)

// dayClock says at which seconds of a day a rule occurs. The INTERVAL of rules finer than a day counts on from day to day.
type dayClock struct {
	hours, minutes, seconds uint64 // bit n is set when n is allowed

	slot  int64 // seconds in a slot
	every int64 // slots from one occurrence to the next; 1 when the INTERVAL is not the clock's business
	phase int64 // the number of one slot that counts, since 1970
}

func newDayClock(option *rrule.ROption, dtstart int64) dayClock {
	c := dayClock{
		hours: bitsOf(option.Byhour, 24), minutes: bitsOf(option.Byminute, 60), seconds: bitsOf(option.Bysecond, 60),
		slot: slotSeconds(option.Freq), every: 1,
	}
	if option.Freq > rrule.DAILY {
		c.every = int64(option.Interval)
	}
	c.phase = floorDiv(dtstart, c.slot)
	return c
}

var midnight = []int{0}

func slotSeconds(freq rrule.Frequency) int64 {
	switch freq {
	case rrule.HOURLY:
		return hourSeconds
	case rrule.MINUTELY:
		return int64(time.Minute / time.Second)
	default:
		return 1
	}
}

// bitsOf sets the bits of a list; an empty list allows everything below limit.
func bitsOf(list []int, limit int) uint64 {
	if len(list) == 0 {
		return 1<<limit - 1
	}
	set := uint64(0)
	for _, n := range list {
		set |= 1 << n
	}
	return set
}

// from returns the first second of the day, not before second, at which the rule occurs. day counts since 1970.
func (c *dayClock) from(day, second int64, b *budget) (int64, bool) {
	for second < daySeconds {
		hour, minute := second/hourSeconds, second/60%60
		switch {
		case c.hours>>hour&1 == 0:
			second = ahead(c.hours, hour) * hourSeconds
		case c.minutes>>minute&1 == 0:
			second = hour*hourSeconds + min(ahead(c.minutes, minute), 60)*60
		case c.seconds>>(second%60)&1 == 0:
			second += min(ahead(c.seconds, second%60), 60) - second%60
		case !b.step():
			return 0, false
		default:
			wait := floorMod(c.phase-(day*daySeconds+second)/c.slot, c.every)
			if wait == 0 {
				return second, true
			}
			second += wait*c.slot - second%c.slot
		}
	}
	return 0, false
}

func (c *dayClock) dayAfter(day int64) int64 {
	slots := daySeconds / c.slot
	from := (day + 1) * slots
	return floorDiv(from+floorMod(c.phase-from, c.every), slots)
}

func (c *dayClock) count() int {
	return bits.OnesCount64(c.hours) * bits.OnesCount64(c.minutes) * bits.OnesCount64(c.seconds)
}

func (c *dayClock) at(number int) int64 {
	seconds := bits.OnesCount64(c.seconds)
	minutes := bits.OnesCount64(c.minutes) * seconds
	return member(c.hours, number/minutes)*hourSeconds + member(c.minutes, number%minutes/seconds)*60 + member(c.seconds, number%seconds)
}

func member(set uint64, place int) int64 {
	for range place {
		set &= set - 1
	}
	return int64(bits.TrailingZeros64(set))
}

// ahead returns the first number from n on that is allowed, or at least 60.
func ahead(set uint64, n int64) int64 {
	return n + int64(bits.TrailingZeros64(set>>n))
}

// meets reports whether the INTERVAL ever falls into the allowed times. What it has in common with the day decides that for all days.
func (c *dayClock) meets(b *budget) bool {
	common := *c
	for rest := daySeconds / c.slot; rest != 0; {
		common.every, rest = rest, common.every%rest
	}
	_, ok := common.from(0, 0, b)
	return ok
}
