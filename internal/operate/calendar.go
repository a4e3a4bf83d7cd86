package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// Calendar is a calendar, and when it is closed.
type Calendar struct {
	schedule.Calendar `json:"calendar"`

	Closed  bool      `json:"closed"` // now
	From    time.Time `json:"from"`   // when it is closed next, or now
	Until   time.Time `json:"until"`
	Problem string    `json:"problem"` // why nobody knows; empty: somebody does
}

// Calendars lists the calendars.
func (o Operator) Calendars(ctx context.Context) ([]Calendar, error) {
	stored, err := o.Queue.Parts[0].Fleet().StoredCalendars(ctx)
	if err != nil {
		return nil, err
	}
	return o.closings(ctx, stored)
}

// PutCalendars stores calendars.
func (o Operator) PutCalendars(ctx context.Context, calendars []schedule.Calendar) ([]Calendar, error) {
	for _, calendar := range calendars {
		if err := o.Queue.Fleet().PutCalendar(ctx, calendar); err != nil {
			return nil, err
		}
	}
	return o.closings(ctx, calendars)
}

// RemoveCalendar forgets a calendar.
func (o Operator) RemoveCalendar(ctx context.Context, name string) error {
	removed, err := o.Queue.Fleet().RemoveCalendar(ctx, name)
	if err == nil && !removed {
		err = fmt.Errorf("%s: expected the name of a calendar, found none of that name", document.OneLine(name))
	}
	return err
}

// closings tells of calendars when they are closed.
func (o Operator) closings(ctx context.Context, calendars []schedule.Calendar) ([]Calendar, error) {
	now, err := o.Queue.Parts[0].Now(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]Calendar, len(calendars))
	for i, calendar := range calendars {
		c := Calendar{Calendar: calendar}
		var err error
		if c.Until, c.Closed, err = calendar.ClosedUntil(now); c.Closed {
			c.From = now
		} else if next, known, failed := calendar.NextClosed(now); failed == nil && known {
			c.From, c.Until = next.From, next.Until
		}
		if err != nil {
			c.Problem = err.Error()
		}
		found[i] = c
	}
	return found, nil
}
