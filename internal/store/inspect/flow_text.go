package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

// FlowText is a hold, limit or calendar as it is stored, which each part of a queue has alike.
type FlowText struct {
	Key, Name, Text string
	Problem         string // why it cannot be read; empty: it can
	Over            bool   // at the instant when it was read: it holds nothing any more, and is forgotten some time
}

// FlowTexts reads holds, limits and calendars at now.
func (s Part) FlowTexts(ctx context.Context, now time.Time) ([]FlowText, error) {
	keys := []string{s.Keys.Holds, s.Keys.Limits, s.Keys.Calendars}
	hashes, err := redis.ReadEach(ctx, s.Clients.Read, "read holds, limits and calendars", keys, func(pipe goredis.Pipeliner, key string) *goredis.MapStringStringCmd {
		return pipe.HGetAll(ctx, key)
	})
	if err != nil {
		return nil, err
	}
	var all []FlowText
	for i, key := range keys {
		fields := hashes[i]
		if key == s.Keys.Holds {
			delete(fields, store.HoldChanges)
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			one := FlowText{Key: key, Name: name, Text: fields[name]}
			if _, err := one.read(&s.Keys, now); err != nil {
				one.Problem = err.Error()
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// read reads the text at now, and returns what stores it in another part.
func (one *FlowText) read(keys *store.Keys, now time.Time) (put func(ctx context.Context, to store.Fleet) error, err error) {
	switch one.Key {
	case keys.Holds:
		hold, err := store.ReadHold(one.Name, one.Text)
		one.Over = hold.Ended(now)
		return func(ctx context.Context, to store.Fleet) error { return to.PutHold(ctx, &hold) }, err
	case keys.Limits:
		limit, err := store.ReadLimit(one.Name, one.Text)
		one.Over = limit.Ended(now)
		return func(ctx context.Context, to store.Fleet) error { return to.PutLimit(ctx, &limit, now) }, err
	default:
		calendar, err := store.ReadCalendar(one.Text)
		if err == nil {
			_, _, err = calendar.ClosedUntil(now)
		}
		return func(ctx context.Context, to store.Fleet) error { return to.PutCalendar(ctx, calendar, now) }, err
	}
}

// CopyFlowText stores what another part of the queue has, and lets a dispatcher look at what waits for it.
func (s Part) CopyFlowText(ctx context.Context, one FlowText, other *store.Store, now time.Time) error {
	put, err := one.read(&other.Keys, now)
	if err != nil {
		return err
	}
	return put(ctx, s.Fleet())
}

// LacksCalendar reports whether a policy names a calendar that is not stored, at one instant.
func (s Part) LacksCalendar(ctx context.Context, policyName, calendar string) (bool, error) {
	pipe := s.Clients.Read.TxPipeline()
	text, stored := pipe.HGet(ctx, s.Keys.Policies, policyName), pipe.HExists(ctx, s.Keys.Calendars, calendar)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return false, fmt.Errorf("read the calendars of a policy: %w", err)
	}
	p, err := s.Report().ParsePolicy(text.Val())
	return err == nil && !stored.Val() && slices.Contains(p.Closed, calendar), nil
}
