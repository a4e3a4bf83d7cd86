package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

// Liveness reads, at one instant, the last heartbeats of all who serve the queue, and what waits for them. A key of the wrong type counts as
// empty.
func (s Report) Liveness(ctx context.Context) (model.Liveness, error) {
	k, pipe := s.store.Keys, s.store.Clients.Read.TxPipeline()
	beats := s.askHeartbeats(ctx, pipe)
	input, output, control := pipe.LLen(ctx, k.Input), pipe.LLen(ctx, k.Output), pipe.LLen(ctx, k.Control)
	front, running := pipe.LIndex(ctx, k.Input, 0), pipe.ZCard(ctx, k.Running)
	oldestDue, deadline := s.AskOldestDue(ctx, pipe), pipe.ZRangeWithScores(ctx, k.Running, 0, 0)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return model.Liveness{}, fmt.Errorf("read who serves the queue: %w", err)
	}
	// The clock is read last, so that no heartbeat lies ahead of it.
	now, err := s.store.Now(ctx)
	if err != nil {
		return model.Liveness{}, err
	}
	liveness := model.Liveness{
		Now: now, Queued: input.Val(), Messages: output.Val() + control.Val(), Held: max(0, running.Val()-input.Val()),
		OldestDue: oldestDue(), OldestDeadline: firstScore(deadline.Val()),
	}
	for _, heartbeat := range beats() {
		liveness.Heartbeat(heartbeat.Of, heartbeat.At)
	}
	entry, _ := s.store.Wire().ParseEntry(front.Val()) // what cannot be read is nobody's attempt
	if entry.UID == "" {
		return liveness, nil
	}
	fields, err := s.store.Clients.Read.HMGet(ctx, s.store.Keys.Model(entry.UID), fieldAttemptUID, "started_at").Result()
	if _, wrong := redis.WrongType(err); err != nil && !wrong {
		return liveness, fmt.Errorf("read the front of the input list: %w", err)
	}
	if err == nil && redis.Text(fields[0]) == entry.AttemptUID { // else it is over
		liveness.HeadStartedAt, _ = time.Parse(time.RFC3339, redis.Text(fields[1])) // unreadable: unknown
	}
	return liveness, nil
}

// AskOldestDue asks since when the oldest due or urgent model waits. Call the function that it returns when the pipe was executed.
func (s Report) AskOldestDue(ctx context.Context, pipe goredis.Pipeliner) func() time.Time {
	due, run := pipe.ZRangeWithScores(ctx, s.store.Keys.Due, 0, 0), pipe.ZRangeWithScores(ctx, s.store.Keys.Urgent, 0, 0)
	others := pipe.ZRangeArgsWithScores(ctx, goredis.ZRangeArgs{Key: s.store.Keys.Urgent, Start: "0", Stop: "+inf", ByScore: true, Count: 1})
	return func() time.Time {
		oldest := firstScore(run.Val())
		if !oldest.IsZero() && oldest.UnixMilli() < 0 {
			oldest = oldest.Add(model.RunAhead)
		}
		return Earlier(Earlier(firstScore(due.Val()), firstScore(others.Val())), oldest)
	}
}

// Heartbeat is the last one of a dispatcher, a poller or a worker pool. They give it with what they ask for: by ReadDue, Claim and Take.
type Heartbeat struct {
	Of    model.Role
	Key   string // of its set
	Owner string
	At    time.Time
}

// Heartbeats reads the last heartbeat of every dispatcher, poller and worker pool, and then the clock: none of them was given later, unless
// the clock has been set back since. A set of the wrong type counts as empty.
func (s Report) Heartbeats(ctx context.Context) (heartbeats []Heartbeat, now time.Time, err error) {
	pipe := s.store.Clients.Read.Pipeline()
	beats := s.AskHeartbeats(ctx, pipe)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return nil, time.Time{}, fmt.Errorf("read heartbeats: %w", err)
	}
	return beats()
}

// AskHeartbeats asks for all heartbeats and then for the clock, in a pipeline. The function that it returns is called when that was executed.
func (s Report) AskHeartbeats(ctx context.Context, pipe goredis.Pipeliner) func() ([]Heartbeat, time.Time, error) {
	beats, clock := s.askHeartbeats(ctx, pipe), s.store.askTime(ctx, pipe)
	return func() ([]Heartbeat, time.Time, error) {
		now, err := s.store.readTime(clock)
		return beats(), now, err
	}
}

// askHeartbeats is AskHeartbeats without the clock.
func (s Report) askHeartbeats(ctx context.Context, pipe goredis.Pipeliner) func() []Heartbeat {
	keys := s.store.Keys.Heartbeats()
	replies := redis.Map(model.Roles, func(role model.Role) *goredis.ZSliceCmd { return pipe.ZRangeWithScores(ctx, keys[role], 0, -1) })
	return func() (heartbeats []Heartbeat) {
		for i, role := range model.Roles {
			for _, member := range replies[i].Val() {
				at := time.UnixMilli(int64(min(member.Score, maxScore))).UTC()
				heartbeats = append(heartbeats, Heartbeat{role, keys[role], redis.Text(member.Member), at})
			}
		}
		return heartbeats
	}
}

// Heartbeats are the sets with the heartbeats of each role.
func (k *Keys) Heartbeats() map[model.Role]string {
	return map[model.Role]string{model.RoleDispatcher: k.Dispatchers, model.RolePoller: k.Pollers, model.RoleWorker: k.Workers}
}

var (
	noHost       = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
	ownerPattern = regexp.MustCompile(`^(([A-Za-z0-9._-]+):(\d+)(?:-(\d{8}T\d{6}Z))?-[a-z2-7]+)(?:~[a-z2-7]+)?$`)
)

// ownerTime is the layout of the start time in the name of an owner.
const ownerTime = "20060102T150405Z"

// NewOwner names a daemon of this process: host, process, start time and random letters. Without a clock there is no start time.
func NewOwner(clock func() time.Time) string {
	host, err := os.Hostname()
	if host = noHost.ReplaceAllString(host, "-"); err != nil || host == "" {
		host = "unknown"
	}
	since := ""
	if clock != nil {
		since = clock().UTC().Format(ownerTime) + "-"
	}
	return fmt.Sprintf("%.60s:%d-%s%s", host, os.Getpid(), since, Letters())
}

// HeardWindow is the field of <queue>:heard that a dispatcher notes in each round: the most entries of the input list, and until when it counts as alive in
// Unix ms, with a space between them. Without it nobody else starts a model.
const HeardWindow = "window"

// Letters are eight that nobody else has drawn.
func Letters() string { return strings.ToLower(rand.Text()[:8]) }

// NewAttemptUID is a uid that nobody else has drawn.
func NewAttemptUID() string { return strings.ToLower(rand.Text()) }

// NextOwner names a worker pool anew in a part of the queue in which its name was forgotten. It is the same pool.
func NextOwner(owner string) string { return PoolName(owner) + "~" + Letters() }

// PoolName is the name of the worker pool that has this one, or had it first.
func PoolName(owner string) string {
	if found := ownerPattern.FindStringSubmatch(owner); found != nil {
		return found[1]
	}
	return owner
}

// Owner is the parsed name of a daemon.
type Owner struct {
	Host  string    `json:"host,omitempty"` // empty: somebody has chosen the name
	PID   string    `json:"pid,omitempty"`
	Since time.Time `json:"since,omitzero"` // by the clock of its host; zero: unknown
}

// ReadOwner reads the name of a daemon.
func ReadOwner(name string) (o Owner) {
	if found := ownerPattern.FindStringSubmatch(name); found != nil {
		o.Host, o.PID = found[2], found[3]
		o.Since, _ = time.Parse(ownerTime, found[4]) // zero if it is unknown
	}
	return o
}
