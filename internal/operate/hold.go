package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// HoldRequest asks for a hold.
type HoldRequest struct {
	ID       string // empty: a new one
	Selector string // empty: the whole queue
	Reason   string
	Within   string // over which the starts at its end are spread; empty: all at once
	Ending   Ending
	Cancel   bool // also take back the attempts that are queued or running
}

// Hold keeps models from starting. bulk takes back their attempts; empty: not asked for.
func (o Operator) Hold(ctx context.Context, r HoldRequest) (_ flow.HoldSum, bulk string, err error) {
	hold := model.Hold{ID: cmp.Or(r.ID, flow.NewHoldID()), Reason: r.Reason, By: o.By}
	if r.Reason == "" {
		return flow.HoldSum{}, "", refuse("reason", "why, for whoever wonders", "nothing")
	}
	if hold.Since, err = o.Queue.Parts[0].Now(ctx); err != nil {
		return flow.HoldSum{}, "", err
	}
	if hold.Selector, err = model.ParseSelector(r.Selector); err != nil {
		return flow.HoldSum{}, "", refused(err)
	}
	if hold.Until, err = r.Ending.at(hold.Since); err != nil {
		return flow.HoldSum{}, "", err
	}
	if hold.Within, err = readWithin(r.Within); err != nil {
		return flow.HoldSum{}, "", err
	}
	if err := hold.Validate(); err != nil {
		return flow.HoldSum{}, "", refused(err)
	}
	if err := flow.OfQueue(o.Queue).PutHold(ctx, &hold); err != nil {
		if _, is := errors.AsType[*document.Error](err); is && len(o.Queue.Parts) == 1 { // nothing has begun
			return flow.HoldSum{}, "", err
		}
		return flow.HoldSum{}, "", hint.For(err, hint.EndHold, hold.ID)
	}
	if r.Cancel {
		bulk, err = flow.OfQueue(o.Queue).CancelHeld(ctx, &hold)
	}
	return flow.HoldSum{Hold: hold}, bulk, err
}

func readWithin(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	within, err := document.ParseDuration(text)
	if err != nil || within < 0 || within > model.MaxWithin {
		return 0, refuse("within", "0s to "+document.FormatDuration(model.MaxWithin), document.Found(text))
	}
	return within, nil
}

// Holds lists the holds, the oldest first.
func (o Operator) Holds(ctx context.Context) ([]flow.HoldSum, error) {
	return flow.OfQueue(o.Queue).Holds(ctx)
}

// ReleaseRequest names the hold to end: by its ID, or the only one, or that of the whole queue.
type ReleaseRequest struct {
	ID     string
	Only   bool   // no ID is given
	Within string // of the starts at its end; empty: as the hold says

	spread time.Duration
}

// Validate refuses what is wrong for any queue.
func (r *ReleaseRequest) Validate() (err error) {
	if r.spread, err = readWithin(r.Within); err == nil && !r.Only {
		err = refused(document.ValidateID("id", r.ID))
	}
	return err
}

// Release ends a hold: its models start once.
func (o Operator) Release(ctx context.Context, r ReleaseRequest) (hold flow.HoldSum, err error) {
	if err := r.Validate(); err != nil {
		return hold, err
	}
	if hold, err = o.findHold(ctx, r.ID); err != nil {
		return hold, err
	}
	if r.Within != "" {
		hold.Within = r.spread
	}
	released, err := flow.OfQueue(o.Queue).ReleaseHold(ctx, hold.ID, hold.Within)
	if err == nil && !released {
		err = fmt.Errorf("%s: expected a hold, found that it has ended", hold.ID)
	}
	return hold, err
}

func (o Operator) findHold(ctx context.Context, id string) (flow.HoldSum, error) {
	holds, err := o.Holds(ctx)
	if err != nil {
		return flow.HoldSum{}, err
	}
	holds = slices.DeleteFunc(holds, func(h flow.HoldSum) bool { return h.Released || id != "" && h.ID != id })
	if whole := slices.DeleteFunc(slices.Clone(holds), func(h flow.HoldSum) bool { return !h.Selector.All() }); len(whole) == 1 {
		holds = whole
	}
	switch {
	case len(holds) == 1:
		return holds[0], nil
	case len(holds) == 0 && id != "":
		return flow.HoldSum{}, hint.For(fmt.Errorf("%s: expected the id of a hold, found none of that name", document.OneLine(id)), hint.ListHolds, id)
	case len(holds) == 0:
		return flow.HoldSum{}, fmt.Errorf("expected a hold, found none")
	}
	names := redis.Map(holds, func(hold flow.HoldSum) string { return hold.ID })
	return flow.HoldSum{}, refusef("expected the id of one of the holds %s, found nothing", strings.Join(names, ", "))
}

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
	stored, err := flow.Of(o.Queue.Parts[0]).StoredCalendars(ctx)
	if err != nil {
		return nil, err
	}
	return o.closings(ctx, stored)
}

// PutCalendars stores calendars.
func (o Operator) PutCalendars(ctx context.Context, calendars []schedule.Calendar) ([]Calendar, error) {
	for _, calendar := range calendars {
		if err := flow.OfQueue(o.Queue).PutCalendar(ctx, calendar); err != nil {
			return nil, err
		}
	}
	return o.closings(ctx, calendars)
}

// RemoveCalendar forgets a calendar.
func (o Operator) RemoveCalendar(ctx context.Context, name string) error {
	removed, err := flow.OfQueue(o.Queue).RemoveCalendar(ctx, name)
	return requireNamed(removed, err, name, "the name of a calendar")
}

func (o Operator) closings(ctx context.Context, calendars []schedule.Calendar) ([]Calendar, error) {
	now, err := o.Queue.Parts[0].Now(ctx)
	if err != nil {
		return nil, err
	}
	return redis.Map(calendars, func(calendar schedule.Calendar) Calendar {
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
		return c
	}), nil
}
