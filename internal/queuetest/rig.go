// Package queuetest gives tests one queue on a real server: its store, a clock to turn, and the two ends that workers and
// applications hold. Only tests import it.
package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redistest"
	"github.com/refreshd/refreshd/scripts"
)

// Rig is one queue under test.
type Rig struct {
	Store  *scripts.Store
	Redis  redis.UniversalClient
	Clock  *Clock // nil: the clock of Redis
	Server *redistest.Server

	t      testing.TB
	daemon redis.UniversalClient // that of the store
}

// Intercept lets a hook see what the store does in Redis.
func (r *Rig) Intercept(hook redis.Hook) { r.daemon.AddHook(hook) }

// usersVariable names the environment variable that lets the stores of all rigs on a redis-server log in as a user who may do what all
// roles of package acl may do together, and nothing else: REFRESHD_TEST_USERS=1 go test ./...
const usersVariable = "REFRESHD_TEST_USERS"

// Start is where a turned clock begins: a Saturday.
var Start = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)

// New returns a rig whose clock stands at Start until it is turned.
func New(t testing.TB, server *redistest.Server) *Rig {
	t.Helper()
	return build(t, server, &Clock{now: Start})
}

// Live returns a rig on the clock of Redis.
func Live(t testing.TB, server *redistest.Server) *Rig {
	t.Helper()
	return build(t, server, nil)
}

func build(t testing.TB, server *redistest.Server, clock *Clock) *Rig {
	t.Helper()
	config := scripts.Config{}
	if server.IsCluster() {
		config.Queue = "{bigtables}"
	}
	if clock != nil {
		config.Clock = clock.Now
	}
	client := server.Client(t)
	daemon := client
	if os.Getenv(usersVariable) != "" && server.Mini == nil && !server.IsCluster() {
		daemon = UsersOn(t, server, config.WithDefaults().Queue).everybody(t)
	}
	store, err := scripts.New(&scripts.Clients{Read: daemon, Write: daemon, Block: daemon, Clustered: server.IsCluster()}, config)
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	return &Rig{Store: store, Redis: client, Clock: clock, Server: server, t: t, daemon: daemon}
}

// Clock is a clock that moves only when it is turned. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

// Now returns where the clock stands.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Turn moves the clock forward.
func (c *Clock) Turn(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

// Set moves the clock to an instant.
func (c *Clock) Set(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = to
}

// Say pushes messages as a worker does.
func (r *Rig) Say(messages ...string) { r.t.Helper(); r.push(r.Store.Keys.Output(), messages) }

// Command pushes messages as an application does.
func (r *Rig) Command(messages ...string) { r.t.Helper(); r.push(r.Store.Keys.Control(), messages) }

func (r *Rig) push(key string, messages []string) {
	r.t.Helper()
	for _, message := range messages {
		if err := r.Redis.RPush(context.Background(), key, message).Err(); err != nil {
			r.t.Fatalf("push %s: %v", key, err)
		}
	}
}

// Model reads the hash of a model.
func (r *Rig) Model(uid string) map[string]string {
	r.t.Helper()
	return must(r.Redis.HGetAll(context.Background(), r.Store.Keys.Model(uid)).Result())(r.t)
}

// Attempt returns the fence of a model; empty: it is idle.
func (r *Rig) Attempt(uid string) string { r.t.Helper(); return r.Model(uid)["attempt_uid"] }

// Stats reads the counters.
func (r *Rig) Stats() map[string]int {
	r.t.Helper()
	counters := map[string]int{}
	for name, text := range must(r.Redis.HGetAll(context.Background(), r.Store.Keys.Stats()).Result())(r.t) {
		counters[name] = must(strconv.Atoi(text))(r.t)
	}
	return counters
}

// Scores reads a sorted set.
func (r *Rig) Scores(key string) map[string]int64 {
	r.t.Helper()
	scores := map[string]int64{}
	for _, z := range must(r.Redis.ZRangeWithScores(context.Background(), key, 0, -1).Result())(r.t) {
		scores[fmt.Sprint(z.Member)] = int64(z.Score)
	}
	return scores
}

// List reads a list.
func (r *Rig) List(key string) []string {
	r.t.Helper()
	return must(r.Redis.LRange(context.Background(), key, 0, -1).Result())(r.t)
}

// Entry is what a worker reads of an attempt.
type Entry struct {
	UID        string `json:"big_table_uid"`
	AttemptUID string `json:"refresh_attempt_uid"`
	AttemptNo  int    `json:"attempt_no"`
	DeadlineAt string `json:"deadline_at"`
	InputURL   string `json:"input_url"`
}

// Take pops one attempt as a worker does; false: none waits.
func (r *Rig) Take() (Entry, bool) {
	r.t.Helper()
	raw, err := r.Redis.LPop(context.Background(), r.Store.Keys.Input()).Result()
	if errors.Is(err, redis.Nil) {
		return Entry{}, false
	}
	var entry Entry
	if err == nil {
		err = json.Unmarshal([]byte(raw), &entry)
	}
	if err != nil {
		r.t.Fatalf("take an attempt: %v", err)
	}
	return entry, true
}

// Result renders a message of a worker about an attempt; fields are further JSON members, such as `"reason":"x"`.
func Result(kind, uid, attemptUID string, fields ...string) string {
	text := fmt.Sprintf(`{"type":%q,"big_table_uid":%q,"refresh_attempt_uid":%q`, kind, uid, attemptUID)
	for _, field := range fields {
		text += "," + field
	}
	return text + "}"
}

// must unwraps a result inside a test.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
