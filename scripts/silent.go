package scripts

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed beat-worker.lua
var beatWorkerSource string

//go:embed hand-back-attempts.lua
var handBackAttemptsSource string

var (
	beatWorker       = redis.NewScript(beatWorkerSource)
	handBackAttempts = redis.NewScript(handBackAttemptsSource)
)

// Beat gives a sign of life of a worker pool and reads the clock. known is false when the pool was silent for too long: all that
// it had taken was handed back, and it has to go on under another name.
func (s *Store) Beat(ctx context.Context, owner string) (now time.Time, known bool, err error) {
	keys := []string{s.Keys.Workers()}
	reply, err := beatWorker.Run(ctx, s.clients.Write, keys, s.clockArg(), owner).Slice()
	if err == nil && len(reply) != 2 {
		err = fmt.Errorf("expected 2 values, found %d", len(reply))
	}
	if err == nil {
		now, err = parseMillis(text(reply[0]))
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("give a sign of life: %w", err)
	}
	return now, reply[1] == int64(1), nil
}

// SilentWorker is a worker pool that seems to be dead.
type SilentWorker struct {
	Owner    string
	LastSign time.Time
}

// SilentWorkers lists the pools whose last sign of life is at least a lease old at now. One that lies more than a lease in the
// future counts too: the clock has been set back since.
//
// The caller has to have seen the clock run evenly for a lease: after an outage or a jump of the clock all pools look silent until
// each has given its next sign of life.
func (s *Store) SilentWorkers(ctx context.Context, now time.Time, lease time.Duration) ([]SilentWorker, error) {
	pipe := s.clients.Read.Pipeline()
	ranges := []*redis.ZSliceCmd{
		pipe.ZRangeByScoreWithScores(ctx, s.Keys.Workers(), &redis.ZRangeBy{Min: "-inf", Max: millis(now.Add(-lease))}),
		pipe.ZRangeByScoreWithScores(ctx, s.Keys.Workers(), &redis.ZRangeBy{Min: "(" + millis(now.Add(lease)), Max: "+inf"}),
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("read workers: %w", err)
	}
	var silent []SilentWorker
	for _, reply := range ranges {
		for _, z := range reply.Val() {
			silent = append(silent, SilentWorker{fmt.Sprint(z.Member), time.UnixMilli(int64(z.Score)).UTC()})
		}
	}
	return silent, nil
}

// HandBack returns what a silent pool had taken to the head of the input list, in its order, forgets the pool, and returns how many
// entries that were. The attempts keep their uids and are not counted again. A pool that has given a sign of life since it was judged
// keeps everything.
//
// Left out are entries whose attempt is over: its uid is not the model's any more, or its deadline has passed. The latter was taken,
// so it must not be found in the input list, where it would count as withdrawn: the dispatcher lets it time out.
func (s *Store) HandBack(ctx context.Context, silent SilentWorker) (int, error) {
	return s.handBack(ctx, silent.Owner, millis(silent.LastSign))
}

// Leave forgets a pool by its own wish. What it still has is handed back.
func (s *Store) Leave(ctx context.Context, owner string) (int, error) {
	return s.handBack(ctx, owner, "")
}

func (s *Store) handBack(ctx context.Context, owner, judged string) (int, error) {
	entries, err := s.clients.Read.LRange(ctx, s.Keys.Taken(owner), 0, -1).Result()
	if err != nil {
		return 0, fmt.Errorf("read taken entries: %w", err)
	}
	over, err := s.over(ctx, entries)
	if err != nil {
		return 0, err
	}
	keys := []string{s.Keys.Workers(), s.Keys.Taken(owner), s.Keys.Input()}
	args := []any{owner, judged}
	for _, entry := range over {
		args = append(args, entry)
	}
	moved, err := handBackAttempts.Run(ctx, s.clients.Write, keys, args...).Int()
	if err != nil {
		return 0, fmt.Errorf("hand back entries: %w", err)
	}
	return max(0, moved), nil
}

// over picks the entries that nobody is to work on any more. It is decided here and not in the script, which could not know the
// keys of the models beforehand; what changes in between is dropped by the worker that takes the entry and finds it stale.
func (s *Store) over(ctx context.Context, entries []string) (over []string, err error) {
	if len(entries) == 0 {
		return nil, nil
	}
	uids, attempts := make([]string, len(entries)), make([]string, len(entries))
	for i, entry := range entries {
		uids[i], attempts[i] = uidsOf(entry)
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

// uidsOf reads of which model and which attempt an entry of the input list is; empty: it cannot be read.
func uidsOf(entry string) (uid, attemptUID string) {
	var fields struct {
		UID        string `json:"big_table_uid"`
		AttemptUID string `json:"refresh_attempt_uid"`
	}
	if json.Unmarshal([]byte(entry), &fields) != nil {
		return "", ""
	}
	return fields.UID, fields.AttemptUID
}
