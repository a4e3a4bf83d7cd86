package store

import (
	"context"
	"fmt"
	"time"
)

var (
	heartbeatWorker = Load("heartbeat-worker.lua")
	requeueAttempts = Load("requeue-attempts.lua")
)

// Heartbeat gives a heartbeat of a worker pool and reads the clock. known is false when its lease has expired: all that
// it had taken was requeued, and it has to go on under another name.
func (s Pool) Heartbeat(ctx context.Context, owner string) (now time.Time, known bool, err error) {
	keys := []string{s.Keys.Workers()}
	now, reply, err := runTimed(ctx, s.Clients.Write, heartbeatWorker, 1, keys, s.clockArg(), owner)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("give a heartbeat: %w", err)
	}
	return now, reply[0] == int64(1), nil
}

// ExpiredWorker is a worker pool that seems to be dead.
type ExpiredWorker struct {
	Owner         string
	LastHeartbeat time.Time
}

// ExpiredWorkers lists the pools whose last heartbeat is at least a lease old at now. One that lies more than a quarter of a lease in
// the future counts too: it was not given since now was read, so the clock has been set back.
//
// The caller has to have seen the clock run evenly for a lease: after an outage or a jump of the clock all pools look expired until
// each has given its next heartbeat.
func (s Pool) ExpiredWorkers(ctx context.Context, now time.Time, lease time.Duration) ([]ExpiredWorker, error) {
	expired, err := s.expired(ctx, s.Keys.Workers(), now, lease, lease/4)
	workers := make([]ExpiredWorker, len(expired))
	for i, last := range expired {
		workers[i] = ExpiredWorker{last.Owner, last.At}
	}
	return workers, Wrap(err, "read workers")
}

// Requeue returns what an expired pool had taken to the head of the input list, in its order, forgets the pool, and returns how many
// entries that were. The attempts keep their uids and are not counted again. A pool that has given a heartbeat since it was
// found expired keeps everything.
//
// Left out are entries whose attempt is over: its uid is not the model's any more, or its deadline has passed. The latter was taken,
// so it must not be found in the input list, where it would count as withdrawn: the dispatcher lets it time out.
func (s Pool) Requeue(ctx context.Context, worker ExpiredWorker) (int, error) {
	return s.requeue(ctx, worker.Owner, Millis(worker.LastHeartbeat))
}

// Leave forgets a pool by its own wish. What it still has is requeued.
func (s Pool) Leave(ctx context.Context, owner string) (int, error) {
	return s.requeue(ctx, owner, "")
}

func (s Pool) requeue(ctx context.Context, owner, heartbeat string) (int, error) {
	entries, err := s.Clients.Read.LRange(ctx, s.Keys.Taken(owner), 0, -1).Result()
	if err != nil {
		return 0, fmt.Errorf("read taken entries: %w", err)
	}
	over, err := s.over(ctx, entries)
	if err != nil {
		return 0, err
	}
	keys := []string{s.Keys.Workers(), s.Keys.Taken(owner), s.Keys.Input()}
	args := []any{owner, heartbeat}
	for _, entry := range over {
		args = append(args, entry)
	}
	moved, err := Run(ctx, s.Clients.Write, requeueAttempts, keys, args...).Int()
	return max(0, moved), Wrap(err, "requeue entries")
}

// over picks the entries that nobody is to work on any more. It is decided here and not in the script, which could not know the
// keys of the models beforehand; what changes in between is dropped by the worker that takes the entry and finds it stale.
func (s Pool) over(ctx context.Context, entries []string) (over []string, err error) {
	if len(entries) == 0 {
		return nil, nil
	}
	uids, attempts := make([]string, len(entries)), make([]string, len(entries))
	for i, raw := range entries {
		entry, _ := s.Wire().ParseEntry(raw) // what cannot be read is nobody's attempt
		uids[i], attempts[i] = entry.UID, entry.AttemptUID
	}
	fences, now, err := s.Fences(ctx, uids)
	if err != nil {
		return nil, err
	}
	for i, fence := range fences {
		late := !fence.DeadlineAt.IsZero() && !fence.DeadlineAt.After(now)
		if attempts[i] == "" || fence.Err == nil && (fence.AttemptUID != attempts[i] || late) {
			over = append(over, entries[i])
		}
	}
	return over, nil
}

// Pool is what a worker pool takes from a part and gives back.
type Pool struct{ *Store }

// Pool takes attempts for a worker pool.
func (s *Store) Pool() Pool { return Pool{s} }
