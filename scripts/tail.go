package scripts

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// JournalEntry is one transition as <queue>:journal keeps it. A zero value is a field that the transition does not have.
type JournalEntry struct {
	UID            string
	Event          model.Event
	At             time.Time
	AttemptUID     string // of the attempt that was started, ended or withdrawn
	AttemptNo      int
	RefreshAt      time.Time
	DeadlineAt     time.Time
	Why            string
	Reason         string // of a failure
	ErrorType      string
	Final          bool // the failure disabled the model
	DisabledReason string
}

// OutboxEntry is one notification for the owner of a model as <queue>:outbox keeps it.
type OutboxEntry struct {
	UID    string
	Notice policy.Notice
	At     time.Time
	Reason string // of a final failure
}

// tailBatch is how many entries one call reads at most.
const tailBatch = 500

// TailStart is the position before everything that a stream holds.
const TailStart = "0-0"

// Tail returns the journal's entries after a position and the position behind them. It waits up to a second for the first;
// none came: the position stays. Values that cannot be read are zero values: to watch must never fail by what is watched.
func (s *Store) Tail(ctx context.Context, after string) ([]JournalEntry, string, error) {
	read := &redis.XReadArgs{Streams: []string{s.Keys.Journal(), after}, Count: tailBatch, Block: blockFor}
	streams, err := s.clients.Block.XRead(ctx, read).Result()
	if err != nil && !missing(err) {
		return nil, after, fmt.Errorf("read the journal: %w", err)
	}
	var entries []JournalEntry
	for _, stream := range streams {
		for _, message := range stream.Messages {
			entries, after = append(entries, readJournalEntry(message.Values)), message.ID
		}
	}
	return entries, after, nil
}

// TailOutbox returns the notifications after a position and the position behind them. It does not wait.
func (s *Store) TailOutbox(ctx context.Context, after string) ([]OutboxEntry, string, error) {
	messages, err := s.clients.Read.XRangeN(ctx, s.Keys.Outbox(), "("+after, "+", tailBatch).Result()
	if err != nil {
		return nil, after, fmt.Errorf("read the outbox: %w", err)
	}
	entries := make([]OutboxEntry, len(messages))
	for i, message := range messages {
		entries[i], after = readOutboxEntry(message.Values), message.ID
	}
	return entries, after, nil
}

func readJournalEntry(values map[string]any) JournalEntry {
	e := streamEntry(values)
	return JournalEntry{
		UID: e.text("uid"), Event: model.Event(e.text("event")), At: e.time("at"),
		AttemptUID: e.text("attempt_uid"), AttemptNo: e.number("attempt_no"),
		RefreshAt: e.time("refresh_at"), DeadlineAt: e.time("deadline_at"), Why: e.text("refresh_why"),
		Reason: e.text("reason"), ErrorType: e.text("error_type"),
		Final: e.text("final") != "", DisabledReason: e.text("disabled_reason"),
	}
}

func readOutboxEntry(values map[string]any) OutboxEntry {
	e := streamEntry(values)
	return OutboxEntry{UID: e.text("uid"), Notice: policy.Notice(e.text("event")), At: e.time("at"), Reason: e.text("reason")}
}

// streamEntry is one entry of a stream as it came.
type streamEntry map[string]any

func (e streamEntry) text(name string) string { return text(e[name]) }

func (e streamEntry) number(name string) int {
	n, _ := strconv.Atoi(e.text(name))
	return n
}

func (e streamEntry) time(name string) time.Time {
	at, _ := time.Parse(time.RFC3339, e.text(name))
	return at
}
