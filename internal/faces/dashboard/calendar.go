package dashboard

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// calendar is a calendar as a page shows it.
type calendar struct {
	schedule.Calendar

	Length      string
	Closed      bool
	From, Until moment
	Problem     string
}

func readCalendars(ctx context.Context, v *visit, now time.Time) ([]calendar, error) {
	stored, err := v.queue.Parts[0].Fleet().StoredCalendars(ctx)
	calendars := make([]calendar, len(stored))
	for i, one := range stored {
		c := calendar{Calendar: one, Length: document.FormatDuration(one.For)}
		until, closed, failed := one.ClosedUntil(now)
		if failed != nil {
			c.Problem = failed.Error()
		} else if c.Closed, c.Until = closed, newMoment(until, now); !closed {
			if next, found, failed := one.NextClosed(now); failed == nil && found {
				c.From, c.Until = newMoment(next.From, now), newMoment(next.Until, now)
			}
		}
		calendars[i] = c
	}
	return calendars, err
}
