package dashboard

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/model/schedule"
)

// calendar is a calendar as a page shows it.
type calendar struct {
	schedule.Calendar

	Closed      bool
	From, Until time.Time
	Problem     string
}

func readCalendars(ctx context.Context, req *request, now time.Time) ([]calendar, error) {
	stored, err := req.queue.Parts[0].Fleet().StoredCalendars(ctx)
	calendars := make([]calendar, len(stored))
	for i, one := range stored {
		c := calendar{Calendar: one}
		var failed error
		if c.Until, c.Closed, failed = one.ClosedUntil(now); failed != nil {
			c.Problem = failed.Error()
		} else if !c.Closed {
			next, _, _ := one.NextClosed(now) // nothing: never
			c.From, c.Until = next.From, next.Until
		}
		calendars[i] = c
	}
	return calendars, err
}
