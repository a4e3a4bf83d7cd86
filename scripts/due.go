package scripts

import (
	"context"
	"fmt"
	"strconv"
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
	reply, err := readDue.Run(ctx, s.clients.Read, keys, s.clockArg(), limit).Slice()
	if err != nil {
		return Due{}, fmt.Errorf("read due models: %w", err)
	}
	due, err := parseDue(reply)
	if err != nil {
		return Due{}, fmt.Errorf("read due models: %w", err)
	}
	return due, nil
}

func parseDue(reply []any) (due Due, err error) {
	if len(reply) != 6 {
		return due, fmt.Errorf("expected 6 values, found %d", len(reply))
	}
	if due.Now, err = parseMillis(text(reply[0])); err != nil {
		return due, err
	}
	queued, _ := reply[1].(int64)
	due.Queued = int(queued)
	for _, next := range reply[2:4] {
		at, err := parseScore(text(next))
		if err != nil {
			return due, err
		}
		if due.Next.IsZero() || !at.IsZero() && at.Before(due.Next) {
			due.Next = at
		}
	}
	due.Due, due.Expired = texts(reply[4]), texts(reply[5])
	return due, nil
}

// parseScore reads a score of the due or running set. A person can write any number there; one that is no whole number, or
// never comes, must not stop the queue.
func parseScore(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("expected a score, found %q", text)
	case ms > maxScore:
		return time.Time{}, nil
	}
	return time.UnixMilli(int64(ms)).UTC(), nil
}

// maxScore is above every instant that a Go program can format.
const maxScore = 253402300799999 // the end of the year 9999

func text(reply any) string {
	value, _ := reply.(string)
	return value
}

func texts(reply any) []string {
	values, _ := reply.([]any)
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = text(value)
	}
	return out
}

// Forget takes a uid out of the due and running sets; for a key of a model that holds something else.
func (s *Store) Forget(ctx context.Context, uid string) error {
	pipe := s.clients.Write.TxPipeline()
	pipe.ZRem(ctx, s.Keys.Due(), uid)
	pipe.ZRem(ctx, s.Keys.Running(), uid)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("forget %q: %w", uid, err)
	}
	return nil
}
