package schedule

import "time"

// ClosedUntil returns the end of the period that now lies in; closed is false if it lies in none. A period begins with its first
// instant, and its last instant is open. Periods that touch or overlap are one; where so many do that the search takes too many steps, until
// is an earlier instant, at which it is closed still, and which is to be asked about again. The error is that of Schedule.Evaluate.
func (c Calendar) ClosedUntil(now time.Time) (until time.Time, closed bool, err error) {
	b := budget(maxSteps)
	first, found := c.starts.ask(now.Add(-c.For), &b) // the first that still lasts
	switch {
	case b.cut():
		return time.Time{}, false, tooManySteps(now)
	case !found || first.After(now):
		return time.Time{}, false, nil
	}
	return c.joined(first, &b), true, nil
}

// joined returns the end of the period that begins with an occurrence, and of those that follow without a gap. When the budget is cut
// it is the end of those that were looked at.
func (c Calendar) joined(at time.Time, b *budget) (until time.Time) {
	until = at.Add(c.For)
	for b.step() {
		next, found := c.starts.ask(at, b)
		if b.cut() || !found || next.After(until) {
			break
		}
		at, until = next, next.Add(c.For)
	}
	return until
}

// Closing is a period in which a calendar is closed: From, up to but not including Until.
type Closing struct{ From, Until time.Time }

// NextClosed returns the first period that begins after an instant; false: there is none. Of the period that the instant lies in it
// returns the one that follows. Until is as in ClosedUntil. The error is that of Schedule.Evaluate.
func (c Calendar) NextClosed(after time.Time) (Closing, bool, error) {
	until, closed, err := c.ClosedUntil(after)
	if err != nil {
		return Closing{}, false, err
	}
	if closed {
		after = until
	}
	from, found, err := c.starts.Evaluate(after)
	if err != nil || !found {
		return Closing{}, false, err
	}
	b := budget(maxSteps)
	return Closing{from, c.joined(from, &b)}, true, nil
}
