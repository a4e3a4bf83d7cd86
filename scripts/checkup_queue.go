package scripts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// InputEntry is one entry of the input list.
type InputEntry struct {
	Raw             string
	UID, AttemptUID string // empty: the entry cannot be read
}

// InputPart reads up to n entries of the input list from a place on, oldest first. Only what stands at one place is told; entries move
// while a worker takes others.
func (s *Store) InputPart(ctx context.Context, from, n int64) ([]InputEntry, error) {
	texts, err := s.clients.Read.LRange(ctx, s.Keys.Input(), from, from+n-1).Result()
	if err != nil {
		return nil, fmt.Errorf("read a part of the input list: %w", err)
	}
	entries := make([]InputEntry, len(texts))
	for i, text := range texts {
		entry, _ := model.ParseEntry(text)
		entries[i] = InputEntry{text, entry.UID, entry.AttemptUID}
	}
	return entries, nil
}

// DropInput removes entries of the input list as they were read, and returns how many still stood there. The caller has found that
// their attempts are over, which no attempt ever ceases to be.
func (s *Store) DropInput(ctx context.Context, entries []string) (dropped int, err error) {
	pipe := s.clients.Write.Pipeline()
	replies := make([]*redis.IntCmd, len(entries))
	for i, entry := range entries {
		replies[i] = pipe.LRem(ctx, s.Keys.Input(), 1, entry)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("drop entries of the input list: %w", err)
	}
	for _, reply := range replies {
		dropped += int(reply.Val())
	}
	return dropped, nil
}

// TrimWake shortens the wake list to the one token that is enough.
func (s *Store) TrimWake(ctx context.Context) error {
	if err := s.clients.Write.LTrim(ctx, s.Keys.Wake(), 0, 0).Err(); err != nil {
		return fmt.Errorf("trim the wake list: %w", err)
	}
	return nil
}

// Backlog is what waits in a queue, and since when.
type Backlog struct {
	Input, Messages, Outbox, Rejected, Wake int64 // Messages: of workers and applications
	OldestNotice                            time.Time
	OldestDue, OldestDeadline               time.Time // zero: none
	LastPoller                              time.Time // the last sign of life of any poller; zero: there is none
}

// Backlog reads what waits. A key of the wrong type counts as empty.
func (s *Store) Backlog(ctx context.Context) (Backlog, error) {
	pipe, k := s.clients.Read.Pipeline(), s.Keys
	input, output, control := pipe.LLen(ctx, k.Input()), pipe.LLen(ctx, k.Output()), pipe.LLen(ctx, k.Control())
	outbox, rejected, wake := pipe.XLen(ctx, k.Outbox()), pipe.LLen(ctx, k.Rejected()), pipe.LLen(ctx, k.Wake())
	oldest := pipe.XRangeN(ctx, k.Outbox(), "-", "+", 1)
	due, deadline := pipe.ZRangeWithScores(ctx, k.Due(), 0, 0), pipe.ZRangeWithScores(ctx, k.Running(), 0, 0)
	poller := pipe.ZRevRangeWithScores(ctx, k.Pollers(), 0, 0)
	if err := execReads(ctx, pipe); err != nil {
		return Backlog{}, fmt.Errorf("read what waits: %w", err)
	}
	b := Backlog{
		Input: input.Val(), Messages: output.Val() + control.Val(), Outbox: outbox.Val(), Rejected: rejected.Val(), Wake: wake.Val(),
		OldestDue: firstScore(due.Val()), OldestDeadline: firstScore(deadline.Val()), LastPoller: firstScore(poller.Val()),
	}
	if entries := oldest.Val(); len(entries) > 0 {
		b.OldestNotice = readNotification(entries[0].Values).At
	}
	return b, nil
}

func firstScore(members []redis.Z) time.Time {
	if len(members) == 0 || members[0].Score > maxScore {
		return time.Time{}
	}
	return time.UnixMilli(int64(members[0].Score)).UTC()
}

// LastRejected reads the reason of the message that was rejected last; empty: there is none or it cannot be read.
func (s *Store) LastRejected(ctx context.Context) (string, error) {
	text, err := s.clients.Read.LIndex(ctx, s.Keys.Rejected(), -1).Result()
	if err != nil && !missing(err) {
		return "", fmt.Errorf("read the last rejected message: %w", err)
	}
	return readRejected(text).Reason, nil
}

// TryScripts runs the script that commits with nothing to commit: it checks its keys and changes nothing.
func (s *Store) TryScripts(ctx context.Context) error {
	_, err := s.commit(ctx, Batch{})
	if err != nil {
		return fmt.Errorf("commit an empty batch: %w", err)
	}
	return nil
}

// Refused reports whether Redis answered that this user may not do it, or not within a script.
func Refused(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "NOPERM") || strings.Contains(text, "user executing the script") || strings.Contains(text, "ACL failure in script")
}

// Answered reports whether an error is an answer of Redis, not the lack of one.
func Answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// OrphanEnd is the transition that removes what is left of a model that is not stored, from both sets too.
func OrphanEnd(uid string) *Transition {
	return (&Record{Model: model.Model{UID: uid}}).Remove()
}
