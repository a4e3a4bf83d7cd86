package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// addNotifications adds the entries of <queue>:outbox: of each its fields in order.
func (e *encoder) addNotifications(t *Transition, now time.Time) {
	for i, n := range t.decision.Notifications(t.uid, now) {
		f := []string{"event", string(n.Notice), "uid", n.UID, "at", model.FormatTime(n.At), "attempt_no", strconv.Itoa(n.AttemptNo)}
		switch {
		case n.Notice == policy.NoticeDisabled, n.Notice == policy.NoticeSuspect, n.Notice == policy.NoticeFailing:
			f = append(f, "reason", n.Reason, "refresh_why", n.Why)
			if n.Notice == policy.NoticeFailing && n.ErrorType != "" {
				f = append(f, "error_type", n.ErrorType)
			}
		case !n.LastSuccessAt.IsZero():
			f = append(f, "last_success_at", model.FormatTime(n.LastSuccessAt))
		}
		e.addList([]string{"notice", "second", "third"}[i], f...)
	}
}

// entryCodec reads one entry of a stream as it came.
func entryCodec(values map[string]any) codec {
	return codec{get: func(name string) string { return Text(values[name]) }}
}

// Told is all that an entry of the journal tells, by name: also the fields that it lists as gone, and those that became its instant.
func Told(values map[string]any) map[string]any {
	told := maps.Clone(values)
	for name := range strings.FieldsSeq(Text(values["gone"])) {
		told[name] = ""
	}
	for name := range strings.FieldsSeq(Text(values["now"])) {
		told[name] = values["at"]
	}
	delete(told, "gone")
	delete(told, "now")
	return told
}

func readJournalEntry(values map[string]any) (e model.JournalEntry) {
	c := entryCodec(Told(values))
	c.text("uid", &e.UID)
	c.text("event", (*string)(&e.Event))
	c.time("at", &e.At)
	c.notes(&e)
	var m model.Model // of which the entry holds what has changed
	c.model(&m)
	e.AttemptUID, e.AttemptNo = cmp.Or(e.EndedUID, m.AttemptUID, m.LastAttemptUID), cmp.Or(e.EndedNo, m.AttemptNo)
	e.Freshness = m.Freshness
	e.About = cmp.Or(c.get("key"), c.get("signature"))
	e.RefreshAt, e.DeadlineAt, e.Why, e.DisabledReason = m.RefreshAt, m.DeadlineAt, m.Why, m.DisabledReason
	return e
}

func readNotification(values map[string]any) (n model.Notification) {
	c := entryCodec(values)
	c.text("uid", &n.UID)
	c.text("event", (*string)(&n.Notice))
	c.time("at", &n.At)
	c.number("attempt_no", &n.AttemptNo)
	c.text("reason", &n.Reason)
	c.text("error_type", &n.ErrorType)
	c.text("refresh_why", &n.Why)
	c.time("last_success_at", &n.LastSuccessAt)
	return n
}

// tailBatch is how many entries one call reads at most.
const tailBatch = 500

// TailStart is the position before everything that a stream holds.
const TailStart = "0-0"

// Tail returns the journal's entries after a position and the position behind them. It waits up to a second for the first; none came: the
// position stays. Values that cannot be read are zero values: to watch must never fail by what is watched.
func (s Report) Tail(ctx context.Context, after string) ([]model.JournalEntry, string, error) {
	after, _, _ = strings.Cut(after, " ") // an older release told of two streams
	read := &redis.XReadArgs{Streams: []string{s.Keys.Journal, after}, Count: tailBatch, Block: blockFor}
	streams, err := s.Clients.Block.XRead(ctx, read).Result()
	if err != nil {
		return nil, after, Wrap(ignoreMissing(err), "read the journal")
	}
	var entries []model.JournalEntry
	for _, message := range streams[0].Messages {
		entries, after = append(entries, readJournalEntry(message.Values)), message.ID
	}
	return entries, after, nil
}

// writtenAt is when an entry of a stream was written, in Unix ms by the clock of Redis.
func writtenAt(id string) int64 {
	ms, _, _ := strings.Cut(id, "-")
	return parseInt(ms)
}

// TailOutbox returns the notifications after a position and the position behind them. It does not wait.
func (s Report) TailOutbox(ctx context.Context, after string) ([]model.Notification, string, error) {
	messages, err := s.Clients.Read.XRangeN(ctx, s.Keys.Outbox, "("+after, "+", tailBatch).Result()
	entries := make([]model.Notification, len(messages))
	for i, message := range messages {
		entries[i], after = readNotification(message.Values), message.ID
	}
	return entries, after, Wrap(err, "read the outbox")
}

// recentBatch is how many entries one call reads.
const recentBatch = 1000

// EachEntry hands over the entries that were written to the journal since an instant, oldest first, by the clock of Redis. It ends early with
// the error of visit.
func (s Report) EachEntry(ctx context.Context, since time.Time, visit func(model.JournalEntry) error) error {
	for after := cmp.Or(Millis(since), "-"); ; {
		messages, err := s.Clients.Read.XRangeN(ctx, s.Keys.Journal, after, "+", recentBatch).Result()
		if err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
		for _, message := range messages {
			if err := visit(readJournalEntry(message.Values)); err != nil {
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
func (q QueueReport) Recent(ctx context.Context, behind string, visit func(position string, e model.JournalEntry) error) error {
	if behind != "" && !journalPosition.MatchString(behind) {
		return document.Refuse("before", "a position as a page of the journal has told it", document.Found(behind))
	}
	for {
		entries, err := q.nextEntries(ctx, behind)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, entry := range entries {
			behind = fmt.Sprintf("%s/%d", entry.ID, entry.place)
			if err := visit(behind, readJournalEntry(entry.Values)); err != nil {
				return err
			}
		}
	}
}

var journalPosition = regexp.MustCompile(`^[0-9]{1,18}-[0-9]{1,18}/[0-9]{1,4}$`)

// placedEntry is an entry of the journal of a part.
type placedEntry struct {
	redis.XMessage
	place int
}

// nextEntries reads some entries behind a position: of all parts back to the latest instant at which one of them may have more.
func (q QueueReport) nextEntries(ctx context.Context, behind string) (all []placedEntry, err error) {
	last, place, _ := strings.Cut(behind, "/")
	batch, until := max(10, tailBatch/len(q.Parts)), ""
	err = q.Each(func(part *Store) error {
		from := "(" + last
		switch { // of one instant, the first part comes first
		case behind == "":
			from = "+"
		case part.place > int(parseInt(place)):
			from = last
		}
		entries, err := part.Clients.Read.XRevRangeN(ctx, part.Keys.Journal, from, "-", int64(batch)).Result()
		for _, entry := range entries {
			all = append(all, placedEntry{entry, part.place})
		}
		if len(entries) == batch && compareIDs(entries[batch-1].ID, until) > 0 {
			until = entries[batch-1].ID
		}
		return Wrap(err, "read the journal")
	})
	slices.SortFunc(all, func(a, b placedEntry) int { return cmp.Or(compareIDs(b.ID, a.ID), cmp.Compare(a.place, b.place)) })
	return slices.DeleteFunc(all, func(e placedEntry) bool { return compareIDs(e.ID, until) < 0 }), err
}

// compareIDs compares the ids of entries of streams. An empty one comes first.
func compareIDs(a, b string) int {
	_, first, _ := strings.Cut(a, "-")
	_, second, _ := strings.Cut(b, "-")
	return cmp.Or(cmp.Compare(writtenAt(a), writtenAt(b)), cmp.Compare(parseInt(first), parseInt(second)))
}
