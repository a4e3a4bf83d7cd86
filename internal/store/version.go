package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// Version is a text that differs as soon as anything has changed in the part that people look at, whether there is a journal or not. What time alone
// changes is not seen, but for processes that fall silent. It takes some twenty commands in one round trip.
func (s Report) Version(ctx context.Context) (string, error) {
	pipe, k := s.Clients.Read.Pipeline(), s.Keys
	counters, changes, orders := pipe.HGetAll(ctx, k.Stats), pipe.HGet(ctx, k.Forwarded, "changes"), pipe.HGetAll(ctx, k.Orders)
	sizes := SendEach([]string{k.Input, k.Output, k.Control, k.Rejected}, func(list string) *redis.IntCmd { return pipe.LLen(ctx, list) })
	sizes = append(sizes, SendEach([]string{k.Due, k.Urgent, k.Parked, k.Running, k.Bulks, k.BulksEnded}, func(set string) *redis.IntCmd { return pipe.ZCard(ctx, set) })...)
	beats, clock := s.askHeartbeats(ctx, pipe), s.askTime(ctx, pipe)
	if _, err := execMisfits(ctx, pipe); err != nil {
		return "", fmt.Errorf("read whether the queue has changed: %w", err)
	}
	now, err := s.readTime(clock)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprint(&text, counters.Val(), changes.Val(), orders.Val())
	for _, size := range sizes {
		fmt.Fprint(&text, " ", size.Val())
	}
	for _, beat := range beats.read() {
		fmt.Fprint(&text, "\n", beat.Key, beat.Owner, now.Sub(beat.At) > model.LongestSilence)
	}
	return text.String(), nil
}

// Version is that of all parts of the queue.
func (q QueueReport) Version(ctx context.Context) (all string, err error) {
	err = q.Each(func(part *Store) error {
		version, err := part.Report().Version(ctx)
		all += version + "\n"
		return err
	})
	return all, err
}
