package outbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// dropKept removes entries from a list of messages that are kept for a person, and returns how many still stood there.
func dropKept[T any](ctx context.Context, s *store.Store, verb, key string, entries []T, text func(*T) string) (dropped int, err error) {
	for chunk := range slices.Chunk(entries, redis.ScanCount) {
		deed, err := s.Fleet().WriteDeed(ctx, model.Deed{Verb: verb, Number: len(chunk)})
		if err != nil {
			return dropped, err
		}
		pipe := s.Clients.Write.TxPipeline()
		deed(pipe)
		replies := redis.Map(chunk, func(entry T) *goredis.IntCmd { return pipe.LRem(ctx, key, 1, text(&entry)) })
		_, err = pipe.Exec(ctx)
		for _, reply := range replies {
			dropped += int(reply.Val())
		}
		if err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

var requeueRejected = redis.LoadScript("requeue-rejected.lua")

// Rejected reads the rejected messages that are kept, oldest first.
func (o Outbox) Rejected(ctx context.Context) ([]store.Rejected, error) {
	texts, err := o.store.Clients.Read.LRange(ctx, o.store.Keys.Rejected, 0, -1).Result()
	return redis.Map(texts, store.ReadRejected), redis.Wrap(err, "read rejected messages")
}

// RejectionAbout is the newest rejected message of all parts that names a model; false: none is kept, or this
// user may not look.
func (o Outbox) RejectionAbout(ctx context.Context, uid string) (last store.Rejected, found bool, err error) {
	for _, part := range o.store.AllParts() {
		entries, err := Of(part).Rejected(ctx)
		if err != nil && !redis.Refused(err) && !goredis.HasErrorPrefix(err, "WRONGTYPE") {
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

// RequeueRejected moves rejected messages back to their lists, and returns how many were still kept. It may be repeated after an error.
func (o Outbox) RequeueRejected(ctx context.Context, entries []store.Rejected) (moved int, err error) {
	for chunk := range slices.Chunk(entries, rejectedBatch) {
		args := []any{""}
		for _, entry := range chunk {
			raw, err := entry.Message()
			if err != nil {
				return moved, err
			}
			command, _ := model.DecodeCommand([]byte(raw)) // an unreadable command may still have an id
			args = append(args, entry.Stored, redis.Flag(entry.Source == store.SourceControl), raw, command.ID)
		}
		deeds, deed, err := o.store.Fleet().DeedArgs(ctx, model.Deed{Verb: "rejected requeue", What: cmp.Or(chunk[0].UID, chunk[0].Reason)})
		if err != nil {
			return moved, err
		}
		args[0] = deed
		keys := []string{o.store.Keys.Rejected, o.store.Keys.Output, o.store.Keys.Control, o.store.Keys.Commands, deeds}
		done, err := redis.RunScript(ctx, o.store.Clients.Write, requeueRejected, keys, args...).Int()
		if moved += done; err != nil {
			return moved, fmt.Errorf("requeue rejected messages: %w", err)
		}
	}
	return moved, nil
}

// DropRejected forgets rejected messages, and returns how many were still kept.
func (o Outbox) DropRejected(ctx context.Context, entries []store.Rejected) (dropped int, err error) {
	dropped, err = dropKept(ctx, o.store, "rejected drop", o.store.Keys.Rejected, entries, func(r *store.Rejected) string { return r.Stored })
	return dropped, redis.Wrap(err, "drop rejected messages")
}

// LastRejected reads the reason of the message that was rejected last; empty: there is none or it cannot be read.
func (o Outbox) LastRejected(ctx context.Context) (string, error) {
	text, err := o.store.Clients.Read.LIndex(ctx, o.store.Keys.Rejected, -1).Result()
	return store.ReadRejected(text).Reason, redis.Wrap(redis.IgnoreMissing(err), "read the last rejected message")
}
