package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

var requeueRejected = Load("requeue-rejected.lua")

// Rejected reads the rejected messages that are kept, oldest first.
func (s Fleet) Rejected(ctx context.Context) ([]Rejected, error) {
	texts, err := s.Clients.Read.LRange(ctx, s.Keys.Rejected(), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read rejected messages: %w", err)
	}
	entries := make([]Rejected, len(texts))
	for i, text := range texts {
		entries[i] = readRejected(text)
	}
	return entries, nil
}

// RejectionAbout is the newest rejected message that names a model, in whatever part of the queue it was rejected; false: none is kept, or this
// user may not look.
func (s Fleet) RejectionAbout(ctx context.Context, uid string) (last Rejected, found bool, err error) {
	for _, part := range s.parts() {
		entries, err := part.Fleet().Rejected(ctx)
		if err != nil && !Refused(err) && !redis.HasErrorPrefix(err, "WRONGTYPE") {
			return last, false, err
		}
		for _, entry := range entries {
			if entry.UID == uid && entry.At >= last.At {
				last, found = entry, true
			}
		}
	}
	return last, found, nil
}

// rejectedBatch is how many rejected messages are requeued or dropped at once: at most 3 MB of them.
const rejectedBatch = 100

// RequeueRejected moves rejected messages back to the tail of the list that each came from, and returns how many it has moved: one that is no
// longer kept was moved or dropped by somebody else. After an error it may be repeated.
func (s Fleet) RequeueRejected(ctx context.Context, entries []Rejected) (moved int, err error) {
	for chunk := range slices.Chunk(entries, rejectedBatch) {
		var args []any
		for _, entry := range chunk {
			raw, err := entry.Message()
			if err != nil {
				return moved, err
			}
			command, _ := model.DecodeCommand([]byte(raw)) // of one that cannot be read the id may be told all the same
			args = append(args, entry.text, flag(entry.Source == sourceControl), raw, command.ID)
		}
		keys := []string{s.Keys.Rejected(), s.Keys.Output(), s.Keys.Control(), s.Keys.Commands()}
		done, err := Run(ctx, s.Clients.Write, requeueRejected, keys, args...).Int()
		if moved += done; err != nil {
			return moved, fmt.Errorf("requeue rejected messages: %w", err)
		}
	}
	return moved, nil
}

// DropRejected forgets rejected messages, and returns how many were still kept.
func (s Fleet) DropRejected(ctx context.Context, entries []Rejected) (dropped int, err error) {
	dropped, err = dropKept(ctx, s.Store, s.Keys.Rejected(), entries, func(r *Rejected) string { return r.text })
	return dropped, Wrap(err, "drop rejected messages")
}

// PartRejected are rejected messages of one part of a queue.
type PartRejected struct {
	Part    *Store
	Entries []Rejected
}

// Rejected reads those rejected messages of all parts that are wanted, oldest first in each.
func (q QueueFleet) Rejected(ctx context.Context, wanted func(*Rejected) bool) (found []PartRejected, err error) {
	err = q.Each(func(part *Store) error {
		entries, err := part.Fleet().Rejected(ctx)
		entries = slices.DeleteFunc(entries, func(r Rejected) bool { return !wanted(&r) })
		found = append(found, PartRejected{part, entries})
		return err
	})
	return found, err
}
