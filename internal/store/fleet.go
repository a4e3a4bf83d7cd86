package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

// Fleet is what operators set for many models of a part: holds, limits, calendars, circuits and bulks, and the messages that were rejected.
type Fleet struct{ store *Store }

// Fleet sets what holds for many models of the part.
func (s *Store) Fleet() Fleet { return Fleet{s} }

// QueueFleet is Fleet of all parts of a queue.
type QueueFleet struct{ queue *Queue }

// Fleet sets what holds for many models of the queue.
func (q *Queue) Fleet() QueueFleet { return QueueFleet{q} }

// What keeps models from starting is set in every part of a queue. If that ends halfway, to repeat it brings it to the others.

// PutHold begins a hold in every part.
func (q QueueFleet) PutHold(ctx context.Context, hold *model.Hold) error {
	return q.queue.ChangeEach(func(part *Store) error { return part.Fleet().PutHold(ctx, hold) })
}

// ReleaseHold ends a hold in every part; false: there is none of that name that has not ended.
func (q QueueFleet) ReleaseHold(ctx context.Context, id string, within time.Duration) (bool, error) {
	return q.Change(ctx, func(part *Store, now time.Time) (bool, error) { return part.Fleet().ReleaseHold(ctx, id, within, now) })
}

// PutLimit sets a limit in every part, which has its share of it.
func (q QueueFleet) PutLimit(ctx context.Context, limit *model.Limit) error {
	_, err := q.Change(ctx, func(part *Store, now time.Time) (bool, error) { return true, part.Fleet().PutLimit(ctx, limit, now) })
	return err
}

// RemoveLimit forgets a limit in every part; false: there was none.
func (q QueueFleet) RemoveLimit(ctx context.Context, name string) (bool, error) {
	return q.Change(ctx, func(part *Store, now time.Time) (bool, error) { return part.Fleet().RemoveLimit(ctx, name, now) })
}

// OpenLimit opens a key in every part; false: it was open.
func (q QueueFleet) OpenLimit(ctx context.Context, name string) (bool, error) {
	return q.Change(ctx, func(part *Store, now time.Time) (bool, error) { return part.Fleet().OpenLimit(ctx, name, now) })
}

// PutCalendar stores a calendar in every part.
func (q QueueFleet) PutCalendar(ctx context.Context, c schedule.Calendar) error {
	_, err := q.Change(ctx, func(part *Store, now time.Time) (bool, error) { return true, part.Fleet().PutCalendar(ctx, c, now) })
	return err
}

// RemoveCalendar forgets a calendar in every part; false: there was none of that name.
func (q QueueFleet) RemoveCalendar(ctx context.Context, name string) (bool, error) {
	return q.Change(ctx, func(part *Store, now time.Time) (bool, error) { return part.Fleet().RemoveCalendar(ctx, name, now) })
}

// OpenCircuit opens the circuit of a key in every part, for a time; false: it was open in all of them. Each part tells of its own.
func (q QueueFleet) OpenCircuit(ctx context.Context, key, by, reason string, probeAfter time.Duration) (bool, error) {
	return q.Change(ctx, func(part *Store, now time.Time) (bool, error) {
		return part.Fleet().OpenCircuit(ctx, key, by, reason, now.Add(probeAfter), now)
	})
}

// CloseCircuit closes the circuit of a key in every part; false: it was open in none.
func (q QueueFleet) CloseCircuit(ctx context.Context, key, by string) (bool, error) {
	return q.Change(ctx, func(part *Store, now time.Time) (bool, error) { return part.Fleet().CloseCircuit(ctx, key, by, now) })
}

// Change changes every part at its instant; true: in one of them there was something to change.
func (q QueueFleet) Change(ctx context.Context, do func(part *Store, now time.Time) (bool, error)) (changed bool, err error) {
	err = q.queue.ChangeEach(func(part *Store) error {
		now, err := part.Now(ctx)
		if err != nil {
			return err
		}
		is, err := do(part, now)
		changed = changed || is
		return err
	})
	return changed, err
}

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
	_, err = s.changeBlocker(ctx, s.store.Keys.Calendars, model.NewBlocker(model.BlockerCalendar, c.Name), string(text), now)
	return err
}

// RemoveCalendar forgets a calendar; false: there was none of that name. Policies that name it are never closed by it.
func (s Fleet) RemoveCalendar(ctx context.Context, name string, now time.Time) (bool, error) {
	return s.changeBlocker(ctx, s.store.Keys.Calendars, model.NewBlocker(model.BlockerCalendar, name), "", now)
}

// StoredCalendars reads the calendars, by their names. One that cannot be read is left out.
func (s Fleet) StoredCalendars(ctx context.Context) ([]schedule.Calendar, error) {
	return readNamed(ctx, s, s.store.Keys.Calendars, "read calendars", func(_, text string) (schedule.Calendar, error) { return ReadCalendar(text) })
}

// readNamed reads the values of a hash, by the names of its fields. One that cannot be read is left out: doctor tells of it.
func readNamed[T any](ctx context.Context, s Fleet, key, doing string, read func(name, text string) (T, error)) (all []T, err error) {
	texts, err := s.store.Clients.Read.HGetAll(ctx, key).Result()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if one, err := read(name, texts[name]); err == nil {
			all = append(all, one)
		}
	}
	return all, redis.Wrap(err, doing)
}
