package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// tailBatch is how many entries one call reads at most.
const tailBatch = 500

// TailStart is the position before everything that a stream holds.
const TailStart = "0-0"

// Tail returns the entries of the journal behind a position, and the new position. It waits up to a second for the first. What cannot be read is a
// zero value.
func (r Report) Tail(ctx context.Context, after string) ([]model.JournalEntry, string, error) {
	read := &goredis.XReadArgs{Streams: []string{r.store.Keys.Journal, after}, Count: tailBatch, Block: redis.BlockFor}
	streams, err := r.store.Clients.Block.XRead(ctx, read).Result()
	if err != nil {
		return nil, after, redis.Wrap(redis.IgnoreMissing(err), "read the journal")
	}
	var entries []model.JournalEntry
	for _, message := range streams[0].Messages {
		entries, after = append(entries, store.ReadJournalEntry(message.Values)), message.ID
	}
	return entries, after, nil
}

// TailOutbox returns the notifications after a position and the position behind them. It does not wait.
func (r Report) TailOutbox(ctx context.Context, after string) ([]model.Notification, string, error) {
	messages, err := r.store.Clients.Read.XRangeN(ctx, r.store.Keys.Outbox, "("+after, "+", tailBatch).Result()
	entries := make([]model.Notification, len(messages))
	for i, message := range messages {
		entries[i], after = store.ReadNotification(message.Values), message.ID
	}
	return entries, after, redis.Wrap(err, "read the outbox")
}

// recentBatch is how many entries one call reads.
const recentBatch = 1000

// EachEntry hands over the entries that were written to the journal since an instant, oldest first, by the clock of Redis. It ends early with
// the error of visit.
func (r Report) EachEntry(ctx context.Context, since time.Time, visit func(model.JournalEntry) error) error {
	for after := cmp.Or(redis.Millis(since), "-"); ; {
		messages, err := r.store.Clients.Read.XRangeN(ctx, r.store.Keys.Journal, after, "+", recentBatch).Result()
		if err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
		for _, message := range messages {
			if err := visit(store.ReadJournalEntry(message.Values)); err != nil {
				return err
			}
			after = "(" + message.ID
		}
		if len(messages) < recentBatch {
			return nil
		}
	}
}

// Recent hands over the entries of the journals of all parts, the newest first, from behind a position on, each with its own position. It ends
// early with the error of visit.
func (q Queue) Recent(ctx context.Context, behind string, visit func(position string, e model.JournalEntry) error) error {
	if behind != "" && !journalPosition.MatchString(behind) {
		return document.Refuse("before", "a position as a page of the journal has printed it", document.Found(behind))
	}
	return q.eachNewest(ctx, behind, func(k *store.Keys) string { return k.Journal }, func(position string, entry goredis.XMessage) error {
		return visit(position, store.ReadJournalEntry(entry.Values))
	})
}

// Deeds returns what people and programs did, the newest first: at most so many deeds that pick accepts, nil: of all, from those behind a position on. more
// is where the next page begins; empty: there is none.
func (q Queue) Deeds(ctx context.Context, behind string, most int, pick func(*model.Deed) bool) (deeds []model.Deed, more string, err error) {
	if behind != "" && !journalPosition.MatchString(behind) {
		return nil, "", document.Refuse("before", "a position as a page of deeds has printed it", document.Found(behind))
	}
	places, before, cancelled := map[string]int{}, []string{}, map[string]bool{}
	last := behind
	err = q.eachNewest(ctx, behind, func(k *store.Keys) string { return k.Deeds }, func(position string, entry goredis.XMessage) error {
		deed := store.ReadDeed(entry)
		if deed.Verb == model.DeedCancels {
			cancelled[deed.What] = true
		}
		if cancelled[deed.ID] {
			deed.Begins = 0
		}
		place, known := places[deed.ID]
		switch {
		case known:
			deeds[place] = deeds[place].With(&deed)
		case pick == nil && len(deeds) > most:
			return errEnough
		default:
			places[deed.ID] = len(deeds)
			deeds, before = append(deeds, deed), append(before, last)
		}
		last = position
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	picked := 0
	for i := range deeds {
		if pick != nil && !pick(&deeds[i]) {
			continue
		}
		if picked == most {
			return deeds[:picked], before[i], err
		}
		deeds[picked], picked = deeds[i], picked+1
	}
	return deeds[:picked], "", err
}

var errEnough = errors.New("enough was read")

// eachNewest hands over the entries of a stream of all parts, the newest first, from behind a position on.
func (q Queue) eachNewest(ctx context.Context, behind string, key func(*store.Keys) string, visit func(position string, entry goredis.XMessage) error) error {
	for {
		entries, err := q.nextEntries(ctx, behind, key)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, entry := range entries {
			behind = fmt.Sprintf("%s/%d", entry.ID, entry.place)
			if err := visit(behind, entry.XMessage); err != nil {
				return err
			}
		}
	}
}

var journalPosition = regexp.MustCompile(`^[0-9]{1,18}-[0-9]{1,18}/[0-9]{1,4}$`)

// placedEntry is an entry of the journal of a part.
type placedEntry struct {
	goredis.XMessage
	place int
}

// nextEntries reads some entries behind a position: of all parts back to the latest instant at which one of them may have more.
func (q Queue) nextEntries(ctx context.Context, behind string, key func(*store.Keys) string) (all []placedEntry, err error) {
	last, place, _ := strings.Cut(behind, "/")
	batch, until := max(10, tailBatch/len(q.queue.Parts)), ""
	err = q.queue.Each(func(part *store.Store) error {
		from := "(" + last
		switch { // of one instant, the first part comes first
		case behind == "":
			from = "+"
		case part.Place > int(redis.ParseInt(place)):
			from = last
		}
		entries, err := part.Clients.Read.XRevRangeN(ctx, key(&part.Keys), from, "-", int64(batch)).Result()
		for _, entry := range entries {
			all = append(all, placedEntry{entry, part.Place})
		}
		if len(entries) == batch && redis.CompareIDs(entries[batch-1].ID, until) > 0 {
			until = entries[batch-1].ID
		}
		return redis.Wrap(err, "read "+key(&part.Keys))
	})
	slices.SortFunc(all, func(a, b placedEntry) int { return cmp.Or(redis.CompareIDs(b.ID, a.ID), cmp.Compare(a.place, b.place)) })
	return slices.DeleteFunc(all, func(e placedEntry) bool { return redis.CompareIDs(e.ID, until) < 0 }), err
}
