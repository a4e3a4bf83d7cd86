package schedule

import (
	"slices"
	"strconv"

	"github.com/refreshd/refreshd/model/document"

	"github.com/teambition/rrule-go"
)

// check refuses parts that contradict each other, and combinations in which the library panics, never ends or drops a part in silence.
func (r *ruleLine) check() error {
	if !slices.Contains(r.seen, "FREQ") {
		return r.refuse("FREQ", "a frequency such as FREQ=DAILY", "none")
	}
	if r.Count > 0 && r.hasUntil {
		return r.refuse("", "COUNT or UNTIL", "both")
	}
	if n := max(1, len(r.Byhour)) * max(1, len(r.Byminute)) * max(1, len(r.Bysecond)); n > maxTimes {
		return r.refuse("", "at most "+strconv.Itoa(maxTimes)+" combinations of BYHOUR, BYMINUTE and BYSECOND", strconv.Itoa(n))
	}
	if err := r.checkOrdinals(); err != nil {
		return err
	}
	return r.checkPositions()
}

// checkOrdinals looks at the numbers in BYDAY. Without one, a day means every such day. The library asks a day to satisfy
// both kinds when they are mixed, against RFC 5545, and reads an index out of its range when a number is too high.
func (r *ruleLine) checkOrdinals() error {
	numbered, limit := 0, r.maxOrdinal()
	for _, day := range r.Byweekday {
		if day.N() == 0 {
			continue
		}
		numbered++
		if limit == 0 {
			return r.refuse("BYDAY", "days without a number, which need FREQ=MONTHLY, or FREQ=YEARLY without BYWEEKNO", document.Found(day.String()))
		}
		if day.N() > limit || day.N() < -limit {
			return r.refuse("BYDAY", "a number from 1 to "+strconv.Itoa(limit)+", or from -"+strconv.Itoa(limit)+" to -1", document.Found(day.String()))
		}
	}
	if numbered > 0 && numbered < len(r.Byweekday) {
		return r.refuse("BYDAY", "days that all have a number or all have none; use two RRULE lines", "both kinds")
	}
	return nil
}

// maxOrdinal returns the highest number of a weekday that the rule's period can have, 0 when days have no number there.
func (r *ruleLine) maxOrdinal() int {
	switch {
	case r.Freq == rrule.MONTHLY, r.Freq == rrule.YEARLY && len(r.Bymonth) > 0 && len(r.Byweekno) == 0:
		return 5
	case r.Freq == rrule.YEARLY && len(r.Byweekno) == 0:
		return 53
	default:
		return 0
	}
}

func (r *ruleLine) checkPositions() error {
	if len(r.Bysetpos) == 0 {
		return nil
	}
	if r.Freq > rrule.DAILY {
		return r.refuse("BYSETPOS", "FREQ=DAILY or longer; name the minutes or seconds themselves", "FREQ="+r.Freq.String())
	}
	if !filtersDays(&r.ROption) && !filtersTimes(&r.ROption) {
		return r.refuse("BYSETPOS", "another BY part to choose from", "none")
	}
	return nil
}
