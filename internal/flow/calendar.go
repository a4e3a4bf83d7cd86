package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

// PutCalendar stores a calendar under its name. Its models are rechecked immediately.
func (f Flow) PutCalendar(ctx context.Context, c schedule.Calendar, now time.Time) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode calendar: %w", err)
	}
	_, err = f.changeBlocker(ctx, model.Deed{Verb: "calendar put"}, f.store.Keys.Calendars, model.NewBlocker(model.BlockerCalendar, c.Name), string(text), now)
	return err
}

// RemoveCalendar forgets a calendar; false: there was none of that name. Policies that name it are never closed by it.
func (f Flow) RemoveCalendar(ctx context.Context, name string, now time.Time) (bool, error) {
	return f.changeBlocker(ctx, model.Deed{Verb: "calendar rm"}, f.store.Keys.Calendars, model.NewBlocker(model.BlockerCalendar, name), "", now)
}

// StoredCalendars reads the calendars that can be read, by their names.
func (f Flow) StoredCalendars(ctx context.Context) ([]schedule.Calendar, error) {
	return readNamed(ctx, f, f.store.Keys.Calendars, "read calendars", func(_, text string) (schedule.Calendar, error) { return store.ReadCalendar(text) })
}

// readNamed reads the values of a hash, by the names of its fields, without those that it cannot read: the doctor reports these.
func readNamed[T any](ctx context.Context, f Flow, key, doing string, read func(name, text string) (T, error)) (all []T, err error) {
	texts, err := f.store.Clients.Read.HGetAll(ctx, key).Result()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if one, err := read(name, texts[name]); err == nil {
			all = append(all, one)
		}
	}
	return all, redis.Wrap(err, doing)
}

// PutCalendar stores a calendar in every part.
func (q Queue) PutCalendar(ctx context.Context, c schedule.Calendar) error {
	_, err := q.queue.Fleet().Change(ctx, func(part *store.Store, now time.Time) (bool, error) { return true, Of(part).PutCalendar(ctx, c, now) })
	return err
}

// RemoveCalendar forgets a calendar in every part; false: there was none of that name.
func (q Queue) RemoveCalendar(ctx context.Context, name string) (bool, error) {
	return q.queue.Fleet().Change(ctx, func(part *store.Store, now time.Time) (bool, error) { return Of(part).RemoveCalendar(ctx, name, now) })
}
