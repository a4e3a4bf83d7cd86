package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

var readDue = redis.LoadScript("read-due.lua")

// Due is a dispatcher's view of a queue at one instant.
type Due struct {
	Now        time.Time
	Queued     int              // entries in the input list
	Front      model.HeadSample // of the input list, as it was noted last; zero: it never was
	Sharers    int              // dispatchers that share the due models, this one included
	Urgent     []string         // uids that somebody wants to be started at once, oldest first
	Due        []string         // uids whose refresh_at has come, oldest first
	Expired    []string         // uids whose deadline has passed, oldest first
	Judged     time.Time        // up to when deadlines are judged: behind it workers may have spoken, and were not heard yet
	Ages       []string         // uids whose freshness changes, oldest first
	Blockers   model.Blockers   // what keeps models from starting
	Rechecks   []model.Blocker  // blockers to recheck, by this dispatcher alone until Alone
	Alone      time.Time
	Ended      []EndedLimit // that nobody has forgotten yet
	WrongTypes []string     // which keys are of another type than they should be
	Next       time.Time    // when this dispatcher has to read again for the next refresh_at or deadline; zero: never
}

// DueRequest is a dispatcher's request for it.
type DueRequest struct {
	// Limit is the most uids of each kind.
	Limit int
	// Owner names the dispatcher; no two may share a name. Empty: it does not share the work with others.
	Owner string
	// Lease is how long a dispatcher without a heartbeat still counts as alive.
	Lease time.Duration
	// Pause is how long a dispatcher leaves due models to each one before it, unless there is more than one page of them.
	Pause time.Duration
	// Window is how many entries the dispatcher lets wait in the input list.
	Window int
	// Spread says that more models wait for keys of limits than a page has: half of a full one is spread over all that are due, so that each key has its
	// turn.
	Spread bool
}

// ReadDue reads the clock, and this dispatcher's share of the due and expired models. It is also a heartbeat.
func (s *Store) ReadDue(ctx context.Context, asked DueRequest) (Due, error) {
	keys := []string{s.Keys.Due, s.Keys.Running, s.Keys.Input, s.Keys.Dispatchers, s.Keys.Urgent, s.Keys.Front, s.Keys.Holds, s.Keys.Blockers, s.Keys.Limits, s.Keys.Calendars, s.Keys.StaleAt,
		s.Keys.Heard, s.Keys.Output, s.Keys.Pollers}
	now, reply, err := redis.RunTimed(ctx, s.Clients.Write, readDue, 17, keys,
		s.clockArg(), asked.Limit, asked.Owner, asked.Lease.Milliseconds(), asked.Pause.Milliseconds(), max(0, s.Config.Grace).Milliseconds(), asked.Window, redis.Flag(asked.Spread))
	if err != nil {
		return Due{}, fmt.Errorf("read due models: %w", err)
	}
	queued, _ := reply[0].(int64)
	sharers, _ := reply[1].(int64)
	due := Due{Now: now, Queued: int(queued), Sharers: int(sharers), Due: redis.Texts(reply[5]), Expired: redis.Texts(reply[6]), Urgent: redis.Texts(reply[7]), Front: readHeadSample(redis.Text(reply[8]))}
	due.Blockers = s.blockers.read(s, [3][]string{redis.Texts(reply[9]), redis.Texts(reply[12]), redis.Texts(reply[13])})
	if names := due.Blockers.Ended(now); len(names) > 0 {
		for limit := range slices.Chunk(redis.Texts(reply[12]), 2) {
			if slices.Contains(names, limit[0]) {
				due.Ended = append(due.Ended, EndedLimit{limit[0], limit[1]})
			}
		}
	}
	for _, blocker := range redis.Texts(reply[10]) {
		due.Rechecks = append(due.Rechecks, model.Blocker(blocker))
	}
	due.Alone, _ = parseScore(redis.Text(reply[11]))
	due.Judged, _ = parseScore(redis.Text(reply[16]))
	due.Ages, due.WrongTypes = redis.Texts(reply[14]), append([]string(nil), redis.Texts(reply[15])...)
	for _, next := range reply[2:5] {
		at, err := parseScore(redis.Text(next))
		if err != nil {
			return Due{}, fmt.Errorf("read due models: %w", err)
		}
		if due.Next.IsZero() || !at.IsZero() && at.Before(due.Next) {
			due.Next = at
		}
	}
	return due, nil
}

// Retire removes the heartbeat of a dispatcher that has ended, and the window that was noted last: one that lives notes its own again.
func (s *Store) Retire(ctx context.Context, owner string) error {
	pipe := s.Clients.Write.Pipeline()
	retired, window := pipe.ZRem(ctx, s.Keys.Dispatchers, owner), pipe.HDel(ctx, s.Keys.Heard, HeardWindow)
	_, _ = pipe.Exec(ctx) // each has its error
	return redis.Wrap(cmp.Or(retired.Err(), redis.IgnoreWrongType(window.Err())), "retire dispatcher")
}

// Forget takes a uid out of all sets that a dispatcher reads, while its key holds no hash. blocker may be empty.
func (s *Store) Forget(ctx context.Context, uid string, blocker model.Blocker) error {
	return TakeOut(ctx, s, uid, s.Keys.ParkedBy(string(blocker)))
}

// TakeOut is Forget with the key of another set.
func TakeOut(ctx context.Context, s *Store, uid, also string) error {
	k := &s.Keys
	_, err := s.Clients.WriteIf(ctx, func(tx *goredis.Tx) (bool, error) {
		err := tx.HGetAll(ctx, k.Model(uid)).Err()
		_, broken := redis.WrongType(err) // otherwise it was mended since, or is gone
		return broken, redis.IgnoreWrongType(err)
	}, func(pipe goredis.Pipeliner) {
		for _, set := range []string{k.Due, k.Urgent, k.Running, k.StaleAt, k.Parked, also} {
			pipe.ZRem(ctx, set, uid)
		}
	}, k.Model(uid))
	return redis.Wrap(redis.IgnoreWrongType(err), fmt.Sprintf("forget %q", uid)) // a key of the wrong type has no members
}
