package model

import (
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Hold is a pause of all models that a selector picks: none of them starts. What waits for its end starts once then.
type Hold struct {
	ID       string
	Selector Selector
	Since    time.Time
	Until    time.Time     // zero: until somebody releases it
	Within   time.Duration // over which the starts of its models are spread when it ends; 0: all at once
	Reason   string        // for people
	By       string        // who wanted it; empty: nobody says
}

// MaxWithin is the longest time over which starts are spread.
const MaxWithin = 24 * time.Hour

// Validate reports the first field out of range. What a hold asks of a model must be the same while it waits: of the statuses it may ask for
// failing alone.
func (h *Hold) Validate() error {
	switch {
	case !document.IsUID(h.ID):
		return document.ValidateID("id", h.ID)
	case h.Within < 0 || h.Within > MaxWithin:
		return document.Refuse("within", "0s to "+document.FormatDuration(MaxWithin), document.FormatDuration(h.Within))
	case !h.Until.IsZero() && !h.Until.After(h.Since):
		return document.Refuse("until", "a time after "+FormatTime(h.Since), FormatTime(h.Until))
	}
	for _, t := range h.Selector.terms {
		for _, status := range t.values {
			if t.name == SelectStatus && status != string(StatusFailing) {
				return document.Refuse("selector", "status=failing, or no status, as every model that a hold stops is due", document.Found("status="+status))
			}
		}
	}
	return nil
}

// Blocker is what the hold parks models by.
func (h *Hold) Blocker() Blocker { return NewBlocker(BlockerHold, h.ID) }

// Ended reports whether the hold is over at now.
func (h *Hold) Ended(now time.Time) bool { return !h.Until.IsZero() && !h.Until.After(now) }

func (h *Hold) recheck() time.Time {
	if h.Until.IsZero() {
		return Never
	}
	return h.Until
}

// Never is an instant that nobody waits for.
var Never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// StartsAt is when a model starts that waited for the end of the hold, which is over.
func (h *Hold) StartsAt(uid string) time.Time {
	return h.Until.Add(time.Duration(policy.Fraction("hold "+h.ID, uid) * float64(h.Within)).Truncate(time.Millisecond))
}
