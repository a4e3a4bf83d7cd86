package scripts

import (
	"context"
	"fmt"
	"time"
)

var readDue = load("read-due.lua")

// Due is what a dispatcher sees of a queue at one instant.
type Due struct {
	Now     time.Time
	Queued  int       // entries in the input list
	Due     []string  // uids whose refresh_at has come, oldest first
	Expired []string  // uids whose deadline has passed, oldest first
	Next    time.Time // the next refresh_at or deadline after Now; zero: none
}

// ReadDue reads the clock, what is due and what has expired, at most limit uids of each.
func (s *Store) ReadDue(ctx context.Context, limit int) (Due, error) {
	keys := []string{s.Keys.Due(), s.Keys.Running(), s.Keys.Input()}
	now, reply, err := runTimed(ctx, s.clients.Read, readDue, 5, keys, s.clockArg(), limit)
	if err != nil {
		return Due{}, fmt.Errorf("read due models: %w", err)
	}
	queued, _ := reply[0].(int64)
	due := Due{Now: now, Queued: int(queued), Due: texts(reply[3]), Expired: texts(reply[4])}
	for _, next := range reply[1:3] {
		at, err := parseScore(text(next))
		if err != nil {
			return Due{}, fmt.Errorf("read due models: %w", err)
		}
		if due.Next.IsZero() || !at.IsZero() && at.Before(due.Next) {
			due.Next = at
		}
	}
	return due, nil
}

// Forget takes a uid out of the due and running sets; for a key of a model that holds something else.
func (s *Store) Forget(ctx context.Context, uid string) error {
	pipe := s.clients.Write.TxPipeline()
	pipe.ZRem(ctx, s.Keys.Due(), uid)
	pipe.ZRem(ctx, s.Keys.Running(), uid)
	_, err := pipe.Exec(ctx)
	return wrap(err, fmt.Sprintf("forget %q", uid))
}
