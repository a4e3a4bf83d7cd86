package flow

import (
	"context"
	"maps"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

// Text is a hold, limit or calendar as it is stored, which each part of a queue has alike.
type Text struct {
	Key, Name, Text string
	Problem         string // why it cannot be read; empty: it can
	Over            bool   // at the instant when it was read: it holds nothing any more, and is forgotten some time
}

// Texts reads holds, limits and calendars at now.
func (in Inspection) Texts(ctx context.Context, now time.Time) ([]Text, error) {
	keys := []string{in.flow.store.Keys.Holds, in.flow.store.Keys.Limits, in.flow.store.Keys.Calendars}
	hashes, err := redis.ReadEach(ctx, in.flow.store.Clients.Read, "read holds, limits and calendars", keys, func(pipe goredis.Pipeliner, key string) *goredis.MapStringStringCmd {
		return pipe.HGetAll(ctx, key)
	})
	if err != nil {
		return nil, err
	}
	var all []Text
	for i, key := range keys {
		fields := hashes[i]
		if key == in.flow.store.Keys.Holds {
			delete(fields, store.HoldChanges)
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			one := Text{Key: key, Name: name, Text: fields[name]}
			if _, err := one.read(&in.flow.store.Keys, now); err != nil {
				one.Problem = err.Error()
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// read reads the text at now, and returns what stores it in another part.
func (one *Text) read(keys *store.Keys, now time.Time) (put func(ctx context.Context, to Flow) error, err error) {
	switch one.Key {
	case keys.Holds:
		hold, err := store.ReadHold(one.Name, one.Text)
		one.Over = hold.Ended(now)
		return func(ctx context.Context, to Flow) error { return to.PutHold(ctx, &hold) }, err
	case keys.Limits:
		limit, err := store.ReadLimit(one.Name, one.Text)
		one.Over = limit.Ended(now)
		return func(ctx context.Context, to Flow) error { return to.PutLimit(ctx, &limit, now) }, err
	default:
		calendar, err := store.ReadCalendar(one.Text)
		if err == nil {
			_, _, err = calendar.ClosedUntil(now)
		}
		return func(ctx context.Context, to Flow) error { return to.PutCalendar(ctx, calendar, now) }, err
	}
}

// CopyText stores the text of another part of the queue, and lets a dispatcher recheck the models that wait for it.
func (in Inspection) CopyText(ctx context.Context, one Text, other *store.Store, now time.Time) error {
	put, err := one.read(&other.Keys, now)
	if err != nil {
		return err
	}
	return put(ctx, in.flow)
}
