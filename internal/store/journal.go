package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
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
		case n.Notice == policy.NoticeDisabled:
			f = append(f, "reason", n.Reason, "refresh_why", n.Why)
		case n.Notice == policy.NoticeFailing:
			f = append(f, "reason", n.Reason, "refresh_why", n.Why)
			if n.ErrorType != "" {
				f = append(f, "error_type", n.ErrorType)
			}
		case !n.LastSuccessAt.IsZero():
			f = append(f, "last_success_at", model.FormatTime(n.LastSuccessAt))
		}
		e.addList([]string{"notice", "second"}[i], f...)
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
	if Missing(err) {
		return nil, after, nil
	}
	if err != nil {
		return nil, after, fmt.Errorf("read the journal: %w", err)
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
	last, place, _ := strings.Cut(behind, "/")
	parts := make([]struct {
		from    string // "": all is read
		entries []redis.XMessage
	}, len(q.Parts))
	for i := range parts {
		switch { // of one instant, the first part comes first
		case behind == "":
			parts[i].from = "+"
		case i > int(parseInt(place)):
			parts[i].from = last
		default:
			parts[i].from = "(" + last
		}
	}
	batch := max(10, tailBatch/len(parts))
	for {
		newest := -1
		for i, part := range q.Parts {
			r := &parts[i]
			if len(r.entries) == 0 && r.from != "" {
				var err error
				if r.entries, err = part.Clients.Read.XRevRangeN(ctx, part.Keys.Journal, r.from, "-", int64(batch)).Result(); err != nil {
					return q.PartError(part, fmt.Errorf("read the journal: %w", err))
				}
				if r.from = ""; len(r.entries) == batch {
					r.from = "(" + r.entries[batch-1].ID
				}
			}
			if len(r.entries) > 0 && (newest < 0 || isLater(r.entries[0].ID, parts[newest].entries[0].ID)) {
				newest = i
			}
		}
		if newest < 0 {
			return nil
		}
		entry := parts[newest].entries[0]
		parts[newest].entries = parts[newest].entries[1:]
		if err := visit(entry.ID+"/"+strconv.Itoa(newest), readJournalEntry(entry.Values)); err != nil {
			return err
		}
	}
}

var journalPosition = regexp.MustCompile(`^[0-9]{1,18}-[0-9]{1,18}/[0-9]{1,4}$`)

// isLater compares the ids of entries of streams.
func isLater(id, other string) bool {
	_, number, _ := strings.Cut(id, "-")
	_, than, _ := strings.Cut(other, "-")
	return cmp.Or(cmp.Compare(writtenAt(id), writtenAt(other)), cmp.Compare(parseInt(number), parseInt(than))) > 0
}
