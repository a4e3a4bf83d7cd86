package transfer

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

type calendarLine struct {
	Kind     string            `json:"kind"`
	Calendar schedule.Calendar `json:"calendar"`
}

type limitLine struct {
	Kind    string `json:"kind"`
	Key     string `json:"key"`
	Running int    `json:"running,omitempty"`
	Rate    string `json:"rate,omitempty"`
	Since   string `json:"since,omitempty"`
	Until   string `json:"until,omitempty"`
	Reason  string `json:"reason,omitempty"`
	By      string `json:"by,omitempty"`
}

// writeFlow writes the calendars, and the limits that have not ended. Limits are for an export of all models alone: one for a template bounds
// whatever else the other queue has. Holds are left out: they say what must not start in this queue.
func (e *Export) writeFlow(ctx context.Context, lines *json.Encoder) error {
	part := e.Queue.Parts[0]
	now, err := part.Now(ctx)
	if err != nil {
		return err
	}
	texts, err := flow.Inspect(part).Texts(ctx, now)
	if err != nil {
		return err
	}
	for _, one := range texts {
		if name := map[string]string{part.Keys.Calendars: kindCalendar, part.Keys.Limits: kindLimit}[one.Key]; name != "" && one.Problem != "" {
			e.Fault(fmt.Sprintf("%s %s: %s", name, one.Name, one.Problem))
		}
	}
	calendars, err := flow.Of(part).StoredCalendars(ctx)
	if err != nil {
		return err
	}
	for _, calendar := range calendars {
		if err := lines.Encode(calendarLine{kindCalendar, calendar}); err != nil {
			return err
		}
	}
	if !e.Selector.All() {
		return nil
	}
	limits, err := flow.Of(part).Limits(ctx)
	if err != nil {
		return err
	}
	for _, l := range limits {
		if l.Ended(now) {
			continue
		}
		line := limitLine{kindLimit, l.Name, l.Running, l.Rate.String(), model.FormatTime(l.Since), model.FormatTime(l.Until), l.Reason, l.By}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

func (e *entry) readLimit(fields map[string]any) (err error) {
	doc := document.Read(fields, "kind", "key", "running", "rate", "since", "until", "reason", "by")
	l := &e.limit
	l.Name, l.Running = doc.Text("key"), doc.Int("running", 1, model.MaxRunning)
	l.Rate, err = policy.ReadRate(doc.Text("rate"))
	doc.Fail(err)
	l.Since, l.Until = doc.Time("since"), doc.Time("until")
	l.Reason, l.By = document.Shorten(doc.Text("reason"), document.MaxText), document.Shorten(doc.Text("by"), model.MaxBy)
	doc.Fail(l.Validate())
	return doc.Err()
}

func (i *Import) importCalendar(ctx context.Context, t *task) error {
	return i.store(t, "the calendar "+t.calendar.Name+" as it is here", func(part *store.Store) (found, same bool, err error) {
		stored, err := flow.Of(part).StoredCalendars(ctx)
		for _, c := range stored {
			found, same = found || c.Name == t.calendar.Name, same || c.Equal(t.calendar)
		}
		return found, same, err
	}, func() error { return flow.OfQueue(i.Queue).PutCalendar(ctx, t.calendar) })
}

// importLimit sets a limit, unless it has ended meanwhile.
func (i *Import) importLimit(ctx context.Context, t *task) error {
	now, err := i.Queue.Parts[0].Now(ctx)
	if err != nil {
		return err
	}
	if t.done = t.done || t.limit.Ended(now); t.done {
		return nil
	}
	return i.store(t, "the limit "+t.limit.Name+" as it is here", func(part *store.Store) (found, same bool, err error) {
		stored, err := flow.Of(part).Limits(ctx)
		for _, l := range stored {
			found, same = found || l.Name == t.limit.Name && !l.Ended(now), same || l == t.limit
		}
		return found, same, err
	}, func() error { return flow.OfQueue(i.Queue).PutLimit(ctx, &t.limit) })
}
