package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker/lease"
)

var (
	takeAttempts   = redis.LoadScript("take-attempts.lua")
	answerAttempts = redis.LoadScript("answer-attempts.lua")
)

type (
	// TakeRequest asks for entries.
	TakeRequest = lease.TakeRequest
	// Taken is the reply to it.
	Taken = lease.Taken
	// Answer ends an attempt, or says something about it.
	Answer = lease.Answer
	// Fence is the running attempt of a model.
	Fence = lease.Fence
	// PoolOrder is an order of an operator to a pool.
	PoolOrder = lease.Order
)

// Take moves the oldest entries of the input list into the taken list of a worker pool. It is also a heartbeat. To repeat it after an error is safe:
// if the taken list has more than the pool knows of, Take returns all of it. An empty list is no error.
func (s Pool) Take(ctx context.Context, taking TakeRequest) (Taken, error) {
	k := &s.store.Keys
	keys := []string{k.Input, k.Taken(taking.Owner), k.Workers, k.Orders}
	now, reply, err := redis.RunTimed(ctx, s.store.Clients.Write, takeAttempts, 3, keys,
		s.store.clockArg(), taking.Owner, redis.Flag(taking.New), taking.Most, max(-1, taking.Known), PoolName(taking.Owner))
	if err != nil {
		return Taken{}, fmt.Errorf("take entries of the input list: %w", err)
	}
	return Taken{Entries: redis.Texts(reply[1]), Whole: reply[0] == int64(2), Forgotten: reply[0] == int64(0), Order: readPoolOrder(redis.Text(reply[2])), Now: now}, nil
}

// Answer pushes messages to the output list, in order, and removes the entries that they end from the owner's taken list, in one
// script: a crash leaves no attempt that is answered and yet requeued. A message is pushed only if its entry is in that list. So after an
// error Answer may be repeated: no attempt is ended twice.
func (s Pool) Answer(ctx context.Context, owner string, answers []Answer) (pushed []bool, err error) {
	if len(answers) == 0 {
		return nil, nil
	}
	keys := []string{s.store.Keys.Output, s.store.Keys.Taken(owner)}
	args := []any{}
	for _, answer := range answers {
		args = append(args, redis.Flag(answer.Ends), answer.Entry, answer.Message)
	}
	replies, err := redis.RunScript(ctx, s.store.Clients.Write, answerAttempts, keys, args...).Int64Slice()
	return redis.Map(replies, func(reply int64) bool { return Code(reply) == CodeApplied }), redis.Wrap(err, "push messages to the output list")
}

// ReplyList is the list on which a poller replies under a name.
func (s Pool) ReplyList(name string) string { return s.store.Keys.Reply(name) }

// TakeReply takes a reply as an application does.
func (s Pool) TakeReply(ctx context.Context, name string) (string, error) {
	return TakeReply(ctx, s.store, name)
}

// Wire is how the entries and messages of the queue are written.
func (s Pool) Wire() model.Wire { return s.store.queue.Wire }

// WaitInput waits up to a second for an entry of the input list; false: none came. It takes nothing.
func (s Pool) WaitInput(ctx context.Context) (bool, error) {
	return s.store.waitList(ctx, s.store.Keys.Input)
}

// Heartbeat gives a heartbeat of a worker pool and reads the clock. Forgotten: its lease has expired, all that it had taken was requeued, and it has
// to go on under another name.
func (s Pool) Heartbeat(ctx context.Context, owner string) (Taken, error) {
	taken, err := s.Take(ctx, TakeRequest{Owner: owner})
	return taken, redis.Wrap(err, "give a heartbeat")
}

// ExpiredWorker is a worker that has lost its lease.
type ExpiredWorker struct {
	Owner         string
	LastHeartbeat time.Time
	Attempts      int // that were requeued
	// Deaths are the results of the attempts that it had begun.
	Deaths []*Transition
}

// RequeueExpired finds the workers whose last heartbeat is at least a lease old at now, returns what they had taken to the head of the input
// list, in its order, and forgets them. A heartbeat that lies more than a quarter of a lease in the future expires too: it was not given since now
// was read, so the clock has been set back. The attempts keep their uids and are not counted again. Of those that the worker had begun the model
// decides, as it may have killed it. A worker that has given a heartbeat meanwhile keeps everything.
//
// Left out are entries whose attempt is over: its uid is not the model's any more, or its deadline has passed, as far as deadlines are judged. The
// latter was taken, so it must not be found in the input list, where it would count as withdrawn: the dispatcher lets it time out.
//
// The caller has to have seen the clock run evenly for a lease: after an outage or a jump of the clock all workers look expired until
// each has given its next heartbeat.
func (s *Store) RequeueExpired(ctx context.Context, now, judged time.Time, lease time.Duration) (expired []ExpiredWorker, err error) {
	found, err := s.expired(ctx, s.Keys.Workers, now, lease, lease/4)
	for _, last := range found { // one whose list is of another type keeps no other waiting
		taken, failed := s.Pool().readTaken(ctx, last.Owner, judged)
		worker := ExpiredWorker{Owner: last.Owner, LastHeartbeat: last.At}
		if silence := taken.now.Sub(last.At); failed == nil && taken.heartbeat.Equal(last.At) && (silence >= lease || silence < 0) {
			worker.Deaths, failed = s.countDeaths(ctx, &taken)
		}
		if failed == nil {
			worker.Attempts, failed = s.Pool().requeue(ctx, last.Owner, lease.Milliseconds(), redis.Millis(last.At), taken)
		}
		if failed == nil {
			expired = append(expired, worker)
		}
		err = errors.Join(err, failed)
		if failed != nil && !redis.Answered(failed) {
			break // nor would Redis answer about the others
		}
	}
	return expired, redis.Wrap(err, "look for dead workers")
}

// Leave forgets a pool by its own wish, and requeues what it still has as RequeueExpired does. Deadlines are judged up to now; within the grace of an outage,
// up to the time before it.
func (s Pool) Leave(ctx context.Context, owner string) (int, error) {
	taken, err := s.readTaken(ctx, owner, time.Time{})
	if err != nil {
		return 0, err
	}
	return s.requeue(ctx, owner, "", "", taken)
}

// returned are the entries that a worker had taken.
type returned struct {
	over      []any             // entries that nobody is to work on any more
	begun     map[string]string // model -> the entry of its attempt, which the worker has begun
	now       time.Time         // when they were read; zero: there are none
	heartbeat time.Time         // of the worker, when they had been read
}

// judged is up to when deadlines are judged, by a gap in the heartbeats of all dispatchers, as scripts/read-due.lua writes and reads it.
func (s *Store) judged(gap string, now time.Time) time.Time {
	begin, end, _ := strings.Cut(gap, " ")
	from, err := parseScore(begin)
	to, failed := parseScore(end)
	grace := max(0, s.Config.Grace)
	if err != nil || failed != nil || to.IsZero() || now.Before(to) || !now.Before(to.Add(grace)) {
		return now
	}
	return Earlier(from.Add(-grace), now)
}

// readTaken reads what a worker has taken. judged is up to when deadlines are; zero: as the last gap says.
//
// Which entries nobody is to work on any more is decided here and not in the script, which could not know the keys of the models beforehand.
// If an entry becomes stale in between, the worker that takes it drops it.
func (s Pool) readTaken(ctx context.Context, owner string, judged time.Time) (r returned, err error) {
	pipe := s.store.Clients.Read.Pipeline() // the list first: one that has taken more has given a heartbeat
	list, heartbeat := pipe.LRange(ctx, s.store.Keys.Taken(owner), 0, -1), pipe.ZScore(ctx, s.store.Keys.Workers, owner)
	gap := pipe.HMGet(ctx, s.store.Keys.Heard, "gap")
	_, _ = pipe.Exec(ctx) // each command has its own error
	entries, err := list.Result()
	if err != nil || len(entries) == 0 {
		return r, redis.Wrap(err, "read taken entries")
	}
	uids, attempts := make([]string, len(entries)), make([]string, len(entries))
	for i, raw := range entries {
		entry, _ := s.store.Wire().ParseEntry(raw) // what cannot be read is nobody's attempt
		uids[i], attempts[i] = entry.UID, entry.AttemptUID
	}
	fences, now, err := s.Fences(ctx, uids)
	if err != nil {
		return r, err
	}
	r.begun, r.now, r.heartbeat = map[string]string{}, now, time.UnixMilli(int64(heartbeat.Val())).UTC()
	if judged.IsZero() {
		judged = s.store.judged(NamedValues([]string{"gap"}, gap.Val())["gap"], now)
	}
	judged = Earlier(judged, now)
	for i, fence := range fences {
		late := !fence.DeadlineAt.IsZero() && !fence.DeadlineAt.After(judged)
		if attempts[i] == "" || fence.Err == nil && (fence.AttemptUID != attempts[i] || late) {
			r.over = append(r.over, entries[i])
		} else if fence.Begun {
			r.begun[uids[i]] = entries[i]
		}
	}
	return r, nil
}

// countDeaths has the models decide over which a worker has died. Attempts that end by that are over.
func (s *Store) countDeaths(ctx context.Context, r *returned) (deaths []*Transition, err error) {
	for uids := range slices.Chunk(slices.Sorted(maps.Keys(r.begun)), 100) {
		records, err := s.Load(ctx, uids)
		if err != nil {
			return deaths, err
		}
		batch := Batch{Now: r.now}
		for _, uid := range uids {
			entry, _ := s.Wire().ParseEntry(r.begun[uid]) // it was read before
			if record := records[uid]; record.AttemptUID == entry.AttemptUID && !record.ProcessingAt.IsZero() {
				batch.Items = append(batch.Items, Item{Transition: record.Decide(record.WorkerDied(r.now), r.now)})
			}
		}
		codes, err := s.Commit(ctx, batch)
		for i, code := range codes {
			if transition := batch.Items[i].Transition; code == CodeApplied {
				deaths = append(deaths, transition)
				if transition.Decision().Ended != nil {
					r.over = append(r.over, r.begun[transition.UID()])
				}
			}
		}
		if err != nil {
			return deaths, err
		}
	}
	return deaths, nil
}

func (s Pool) requeue(ctx context.Context, owner string, lease, heartbeat any, r returned) (int, error) {
	args := append([]any{s.store.clockArg(), owner, lease, heartbeat, "", math.MaxInt32}, r.over...)
	keys := []string{s.store.Keys.Workers, s.store.Keys.Taken(owner), s.store.Keys.Input, s.store.Keys.Heard}
	moved, err := redis.RunScript(ctx, s.store.Clients.Write, moveEntries, keys, args...).Int()
	return max(0, moved), redis.Wrap(err, "requeue entries")
}

// Pool lets a worker pool take attempts from a part and give them back.
type Pool struct{ store *Store }

// Pool takes attempts for a worker pool.
func (s *Store) Pool() Pool { return Pool{s} }

// Fences reads the running attempts of models, in the order of the uids, and the clock. If only one fence cannot be
// read, its Err says so.
func (s Pool) Fences(ctx context.Context, uids []string) ([]Fence, time.Time, error) {
	pipe := s.store.Clients.Read.Pipeline()
	replies := redis.Map(uids, func(uid string) *goredis.SliceCmd {
		return pipe.HMGet(ctx, s.store.Keys.Model(uid), fieldAttemptUID, fieldDeadlineAt, "processing_at", fieldGuarded)
	})
	clock := s.store.askTime(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command has its own error
	now, err := s.store.readTime(clock)
	if err != nil {
		return nil, time.Time{}, err
	}
	fences := make([]Fence, len(uids))
	for i, reply := range replies {
		fields, err := reply.Result()
		if err != nil {
			fences[i].Err = fmt.Errorf("read a fence: %w", err)
			continue
		}
		// A deadline that cannot be read must not hide the fence: it counts as unknown.
		deadline, _ := time.Parse(time.RFC3339, redis.Text(fields[1]))
		fences[i] = Fence{AttemptUID: redis.Text(fields[0]), DeadlineAt: deadline, Begun: redis.Text(fields[2]) != "", Guarded: redis.Text(fields[3]) != ""}
	}
	return fences, now, nil
}
