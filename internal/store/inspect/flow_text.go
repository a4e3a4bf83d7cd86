package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
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
	hashes, err := store.ReadEach(ctx, s.Clients.Read, "read holds, limits and calendars", keys, func(pipe redis.Pipeliner, key string) *redis.MapStringStringCmd {
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
			all = append(all, s.flowText(key, name, fields[name], now))
		}
	}
	return all, nil
}

func (s Part) flowText(key, name, raw string, now time.Time) FlowText {
	one, err := FlowText{Key: key, Name: name, Text: raw}, error(nil)
	switch key {
	case s.Keys.Holds:
		var hold model.Hold
		hold, err = store.ReadHold(name, raw)
		one.Over = hold.Ended(now)
	case s.Keys.Limits:
		var limit model.Limit
		limit, err = store.ReadLimit(name, raw)
		one.Over = limit.Ended(now)
	default:
		calendar, unreadable := store.ReadCalendar(raw)
		if err = unreadable; err == nil {
			_, _, err = calendar.ClosedUntil(now)
		}
	}
	if err != nil {
		one.Problem = err.Error()
	}
	return one
}

// CopyFlowText stores what another part of the queue has, and lets a dispatcher look at what waits for it.
func (s Part) CopyFlowText(ctx context.Context, one FlowText, other *store.Store, now time.Time) error {
	switch one.Key {
	case other.Keys.Holds:
		hold, err := store.ReadHold(one.Name, one.Text)
		if err != nil {
			return err
		}
		return s.Fleet().PutHold(ctx, &hold)
	case other.Keys.Limits:
		limit, err := store.ReadLimit(one.Name, one.Text)
		if err != nil {
			return err
		}
		return s.Fleet().PutLimit(ctx, &limit, now)
	default:
		calendar, err := store.ReadCalendar(one.Text)
		if err != nil {
			return err
		}
		return s.Fleet().PutCalendar(ctx, calendar, now)
	}
}

// LacksCalendar reports whether a policy names a calendar that is not stored, at one instant.
func (s Part) LacksCalendar(ctx context.Context, policyName, calendar string) (bool, error) {
	pipe := s.Clients.Read.TxPipeline()
	text, stored := pipe.HGet(ctx, s.Keys.Policies, policyName), pipe.HExists(ctx, s.Keys.Calendars, calendar)
	if err := store.ExecReads(ctx, pipe); err != nil {
		return false, fmt.Errorf("read the calendars of a policy: %w", err)
	}
	p, err := s.Report().ParsePolicy(text.Val())
	return err == nil && !stored.Val() && slices.Contains(p.Closed, calendar), nil
}
