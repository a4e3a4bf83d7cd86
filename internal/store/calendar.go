package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

// ReadCalendar reads the JSON of a calendar.
func ReadCalendar(text string) (schedule.Calendar, error) {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return schedule.Calendar{}, fmt.Errorf("read stored calendar: %w", err)
	}
	return schedule.ParseCalendar(value)
}

// PutCalendar stores a calendar under its name. What waits for it is looked at at once.
func (s Fleet) PutCalendar(ctx context.Context, c schedule.Calendar, now time.Time) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode calendar: %w", err)
	}
	_, err = s.changeBlocker(ctx, s.Keys.Calendars(), model.NewBlocker(model.BlockerCalendar, c.Name), string(text), now)
	return err
}

// RemoveCalendar forgets a calendar; false: there was none of that name. Policies that name it are never closed by it.
func (s Fleet) RemoveCalendar(ctx context.Context, name string, now time.Time) (bool, error) {
	return s.changeBlocker(ctx, s.Keys.Calendars(), model.NewBlocker(model.BlockerCalendar, name), "", now)
}

// StoredCalendars reads the calendars, by their names. One that cannot be read is left out.
func (s Fleet) StoredCalendars(ctx context.Context) ([]schedule.Calendar, error) {
	texts, err := s.Clients.Read.HGetAll(ctx, s.Keys.Calendars()).Result()
	if err != nil {
		return nil, fmt.Errorf("read calendars: %w", err)
	}
	var calendars []schedule.Calendar
	for _, text := range texts {
		if calendar, err := ReadCalendar(text); err == nil {
			calendars = append(calendars, calendar)
		}
	}
	slices.SortFunc(calendars, func(a, b schedule.Calendar) int { return cmp.Compare(a.Name, b.Name) })
	return calendars, nil
}
