package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

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
	return q.queue.write(func(part *Store) error { return part.Fleet().PutHold(ctx, hold) })
}

// ReleaseHold ends a hold in every part; false: there is none of that name that has not ended.
func (q QueueFleet) ReleaseHold(ctx context.Context, id string, within time.Duration) (bool, error) {
	return q.change(ctx, func(part *Store, now time.Time) (bool, error) { return part.Fleet().ReleaseHold(ctx, id, within, now) })
}

// PutLimit sets a limit in every part, which has its share of it.
func (q QueueFleet) PutLimit(ctx context.Context, limit *model.Limit) error {
	_, err := q.change(ctx, func(part *Store, now time.Time) (bool, error) { return true, part.Fleet().PutLimit(ctx, limit, now) })
	return err
}

// RemoveLimit forgets a limit in every part; false: there was none.
func (q QueueFleet) RemoveLimit(ctx context.Context, name string) (bool, error) {
	return q.change(ctx, func(part *Store, now time.Time) (bool, error) { return part.Fleet().RemoveLimit(ctx, name, now) })
}

// OpenLimit opens a key in every part; false: it was open.
func (q QueueFleet) OpenLimit(ctx context.Context, name string) (bool, error) {
	return q.change(ctx, func(part *Store, now time.Time) (bool, error) { return part.Fleet().OpenLimit(ctx, name, now) })
}

// PutCalendar stores a calendar in every part.
func (q QueueFleet) PutCalendar(ctx context.Context, c schedule.Calendar) error {
	_, err := q.change(ctx, func(part *Store, now time.Time) (bool, error) { return true, part.Fleet().PutCalendar(ctx, c, now) })
	return err
}

// RemoveCalendar forgets a calendar in every part; false: there was none of that name.
func (q QueueFleet) RemoveCalendar(ctx context.Context, name string) (bool, error) {
	return q.change(ctx, func(part *Store, now time.Time) (bool, error) { return part.Fleet().RemoveCalendar(ctx, name, now) })
}

// OpenCircuit opens the circuit of a key in every part, for a time; false: it was open in all of them. Each part tells of its own.
func (q QueueFleet) OpenCircuit(ctx context.Context, key, by, reason string, probeAfter time.Duration) (bool, error) {
	return q.change(ctx, func(part *Store, now time.Time) (bool, error) {
		return part.Fleet().OpenCircuit(ctx, key, by, reason, now.Add(probeAfter), now)
	})
}

// CloseCircuit closes the circuit of a key in every part; false: it was open in none.
func (q QueueFleet) CloseCircuit(ctx context.Context, key, by string) (bool, error) {
	return q.change(ctx, func(part *Store, now time.Time) (bool, error) { return part.Fleet().CloseCircuit(ctx, key, by, now) })
}

// change changes every part at its instant; true: in one of them there was something to change.
func (q QueueFleet) change(ctx context.Context, do func(part *Store, now time.Time) (bool, error)) (changed bool, err error) {
	err = q.queue.write(func(part *Store) error {
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

// BeginBulk writes down a bulk that begins now, with what the walk of this part is to meet; pollers carry it out. It returns it as it is
// written.
func (s Fleet) BeginBulk(ctx context.Context, id string, wish model.Bulk) (Bulk, error) {
	started, err := s.store.Clients.Read.HGet(ctx, s.store.Keys.Stats, string(model.EventStart)).Result()
	if err != nil && !redis.Missing(err) {
		return Bulk{}, fmt.Errorf("begin a bulk: %w", err)
	}
	if wish.Since, err = s.store.Now(ctx); err != nil { // behind the ticket: what is started in between counts as started since
		return Bulk{}, err
	}
	wish.Ticket = int(redis.ParseInt(started))
	b := Bulk{ID: id, Bulk: wish, Place: WalkBegins}
	if _, b.Size, err = s.store.source(ctx, wish.Selector); err != nil {
		return Bulk{}, err
	}
	asked := false
	_, err = s.change(ctx, s.store.Keys.Holds, order{}, func() (change, error) {
		begun, _, err := s.ReadBulk(ctx, id)
		switch same := begun.since == model.FormatTime(b.Since); {
		case same && asked: // by a call that was not answered
			return change{}, err
		case same: // since tells one of this name from the one before
			b.Since = b.Since.Add(time.Millisecond)
		}
		asked = true
		return change{bulk: &b}, err
	})
	return b, redis.Wrap(err, "begin a bulk")
}

// EndedBulks reads the bulks that were over within a day, the oldest first.
func (s Fleet) EndedBulks(ctx context.Context) ([]Bulk, error) {
	return s.store.readBulks(ctx, s.store.Keys.BulksEnded)
}

// CancelBulk ends a bulk; false: there is none, or it is over. What it has done stays done.
func (s Fleet) CancelBulk(ctx context.Context, id string) (bool, error) {
	for {
		b, found, err := s.ReadBulk(ctx, id)
		if err != nil || !found || !b.EndedAt.IsZero() {
			return false, err
		}
		now, err := s.store.Now(ctx)
		if err != nil {
			return false, err
		}
		b.Cancelled = true
		if moved, err := s.store.MoveBulk(ctx, &b, now); moved || err != nil { // otherwise a poller has moved it meanwhile
			return moved, err
		}
	}
}

// FindBulk reads a bulk of all parts; false: none of that name is going on, or was within a day.
func (q QueueFleet) FindBulk(ctx context.Context, id string) (sum Bulk, found bool, err error) {
	err = q.queue.Each(func(part *Store) error {
		bulk, there, err := part.Fleet().ReadBulk(ctx, id)
		if there && err == nil {
			sum.add(&bulk)
		}
		found = found || there
		return err
	})
	return sum, found, err
}

// Bulks lists the bulks of all parts: those that were over within a day first, then the others, the oldest first.
func (q QueueFleet) Bulks(ctx context.Context) ([]Bulk, error) {
	read := func(part *Store) ([]Bulk, error) {
		ended, err := part.Fleet().EndedBulks(ctx)
		if err != nil {
			return nil, err
		}
		open, err := part.Bulks(ctx)
		return append(ended, open...), err
	}
	return SumOf(q.queue, read, func(b *Bulk) string { return b.ID }, (*Bulk).add, func(a, b Bulk) int {
		return cmp.Or(trueFirst(a.State().Over(), b.State().Over()), a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
}

// BeginNewBulk begins a bulk in every part, under an id of its own. After an error it may have begun in some.
func (q QueueFleet) BeginNewBulk(ctx context.Context, wish model.Bulk) (id string, err error) {
	id = string(wish.Action) + "-" + letters()
	return id, q.BeginBulk(ctx, id, wish)
}

// BeginBulk begins a bulk in every part; each has its share of the rate. After an error it may have begun in some.
func (q QueueFleet) BeginBulk(ctx context.Context, id string, wish model.Bulk) error {
	wish.Rate = wish.Rate.Share(len(q.queue.Parts))
	return q.queue.write(func(part *Store) error { _, err := part.Fleet().BeginBulk(ctx, id, wish); return err })
}

// CancelBulk ends a bulk in every part; false: it is in none, or over in all.
func (q QueueFleet) CancelBulk(ctx context.Context, id string) (cancelled bool, err error) {
	err = q.queue.Each(func(part *Store) error {
		is, err := part.Fleet().CancelBulk(ctx, id)
		cancelled = cancelled || is
		return err
	})
	return cancelled, err
}

// FindBulk reads a bulk at one instant with whether it stands among those that are not over.
func (s Fleet) FindBulk(ctx context.Context, id string) (b Bulk, there, open bool, err error) {
	pipe := s.store.Clients.Read.TxPipeline()
	hash, score := pipe.HGetAll(ctx, s.store.Keys.Bulk(id)), pipe.ZScore(ctx, s.store.Keys.Bulks, id)
	err = redis.ExecReads(ctx, pipe)
	return readBulk(id, hash.Val()), len(hash.Val()) > 0, score.Err() == nil, redis.Wrap(err, "look for a bulk")
}

// ListBulk makes a bulk known that nobody would carry out.
func (s Fleet) ListBulk(ctx context.Context, b Bulk) error {
	err := s.store.Clients.Write.ZAddNX(ctx, s.store.Keys.Bulks, goredis.Z{Score: float64(b.Since.UnixMilli()), Member: b.ID}).Err()
	return redis.Wrap(err, "list a bulk again")
}
