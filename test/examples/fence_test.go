package examples

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

const fencedRounds = 10 // of each model; together a thousand, with the long tests

var fencedModels = long.Or(10, 100)

// TestAThawedWorkerLeavesNoStaleRowInPostgresAlsoWhenRedisWasRestored freezes a worker past the deadline of its attempt, lets the next one publish,
// and thaws the first, which writes what it has read long ago. In between Redis is restored from an older copy. A table without the condition
// shows that each of these writes would have been seen.
func TestAThawedWorkerLeavesNoStaleRowInPostgresAlsoWhenRedisWasRestored(t *testing.T) {
	t.Parallel()
	testkit.RequireProgram(t, "psql", "postgresql-client")
	f := newFenced(t)
	f.inTurn(1, 4)
	copied := f.copyRedis()
	frozen := make([]*frozenWorker, fencedModels)
	f.each(func(model int) { frozen[model] = f.round(model) }) // these are thawed in another history
	f.restoreRedis(copied)
	f.each(func(model int) {
		f.thaw(f.round(model))
		f.thaw(frozen[model])
	})
	f.inTurn(7, fencedRounds)
	want := int64(fencedModels * fencedRounds)
	failIf(t, f.stale.Load() != want, "without the condition %d of %d thawed writes replace a newer row", f.stale.Load(), want)
}

// fenced is a queue with its daemons, and two tables of a Postgres: fenced has the condition, plain has not.
type fenced struct {
	*fixture.Queue
	t        *testing.T
	sessions chan *session
	attempts []chan attempt  // by model: what a worker takes
	ended    []chan struct{} // by model: an attempt was ended by its success
	source   atomic.Int64    // what there is to read: each reader finds more
	stale    atomic.Int64    // rows of plain that a thawed worker has made older
	last     []int64
}

type attempt struct {
	Model      string `json:"big_table_uid"`
	AttemptUID string `json:"refresh_attempt_uid"`
	Fence      int64
	For        string
}

// frozenWorker has read, and not yet written.
type frozenWorker struct {
	attempt
	model   int
	version int64
}

func newFenced(t *testing.T) *fenced {
	f := &fenced{Queue: fixture.Live(t, testkit.Redis(t)), t: t, sessions: make(chan *session, 8), last: make([]int64, fencedModels)}
	address := startPostgres(t)
	for i := range cap(f.sessions) {
		s := startSession(t, address)
		if i == 0 {
			for _, table := range []string{"fenced", "plain"} {
				s.query("CREATE TABLE " + table + " (uid text PRIMARY KEY, fence bigint NOT NULL, version bigint NOT NULL);")
			}
		}
		f.sessions <- s
	}
	for model := range fencedModels {
		f.attempts, f.ended = append(f.attempts, make(chan attempt, 10)), append(f.ended, make(chan struct{}, 10))
		f.Command(fmt.Sprintf(`{"type":"put","uid":"m%d","policy":{"timeout":"200ms","retries":[%s0]}}`, model, strings.Repeat("0,", 30)))
	}
	d := check.Got(dispatcher.New(dispatcher.RoomsOf(f.Store), dispatcher.Config{}))(t)
	p := check.Got(poller.New(poller.RoomsOf(f.Store), poller.Config{}))(t)
	check.Run(t, d.Run, p.Run, f.deal, f.follow)
	return f
}

// deal takes attempts as workers do, and hands each to the test of its model.
func (f *fenced) deal(ctx context.Context) error {
	client := f.Server.Client(f.t)
	for ctx.Err() == nil {
		taken, err := client.BLPop(ctx, time.Second, f.Store.Keys.Input).Result()
		var a attempt
		if err != nil || json.Unmarshal([]byte(taken[1]), &a) != nil {
			continue
		}
		client.RPush(ctx, f.Store.Keys.Output, fixture.Result("started", a.Model, a.AttemptUID))
		f.attempts[modelNumber(a.Model)] <- a
	}
	return nil
}

func modelNumber(uid string) (n int) {
	_, _ = fmt.Sscanf(uid, "m%d", &n)
	return n
}

// follow returns which model has ended an attempt.
func (f *fenced) follow(ctx context.Context) error {
	client, from := f.Server.Client(f.t), "0"
	for ctx.Err() == nil {
		streams, err := client.XRead(ctx, &redis.XReadArgs{Streams: []string{f.Store.Keys.Journal, from}, Block: 100 * time.Millisecond}).Result()
		if err != nil {
			continue
		}
		for _, entry := range streams[0].Messages {
			if from = entry.ID; entry.Values["event"] == "success" {
				f.ended[modelNumber(entry.Values["uid"].(string))] <- struct{}{}
			}
		}
	}
	return nil
}

func (f *fenced) each(do func(model int)) {
	var group sync.WaitGroup
	for model := range fencedModels {
		group.Go(func() { do(model) })
	}
	group.Wait()
	stopIf(f.t, f.t.Failed(), "no use to go on")
}

// inTurn runs rounds of each model, from the first to the last.
func (f *fenced) inTurn(first, last int) {
	f.each(func(model int) {
		for range last - first + 1 {
			f.thaw(f.round(model))
		}
	})
}

// round lets one worker read and freeze. Its deadline passes, and another worker reads, publishes and succeeds.
func (f *fenced) round(model int) *frozenWorker {
	if f.last[model] > 0 {
		f.Redis.RPush(f.t.Context(), f.Store.Keys.Control, fmt.Sprintf(`{"type":"run","uid":"m%d"}`, model))
	}
	frozen, next := f.take(model, "the first worker"), f.take(model, "the next worker")
	if next.For != "retry" {
		f.t.Errorf("m%d: the second attempt is for %q", model, next.For)
	}
	for next != nil {
		f.write(next)
		f.Redis.RPush(f.t.Context(), f.Store.Keys.Output, fixture.Result("success", next.Model, next.AttemptUID))
		next = f.end(model)
	}
	return frozen
}

// end waits for the success; where the machine was too slow for the timeout, it returns the worker of one more attempt.
func (f *fenced) end(model int) *frozenWorker {
	select {
	case <-f.ended[model]:
		return nil
	case a := <-f.attempts[model]:
		return f.read(model, a)
	case <-time.After(patience):
		f.t.Errorf("m%d: waited for the success in vain", model)
		return nil
	}
}

const patience = 30 * time.Second

// take is the first step of a worker.
func (f *fenced) take(model int, who string) *frozenWorker {
	select {
	case a := <-f.attempts[model]:
		return f.read(model, a)
	case <-time.After(patience):
		f.t.Errorf("m%d: waited for %s in vain", model, who)
		return f.read(model, attempt{Fence: f.last[model] + 1})
	}
}

func (f *fenced) read(model int, a attempt) *frozenWorker {
	if a.Fence <= f.last[model] || time.Since(time.UnixMilli(a.Fence)).Abs() > time.Minute {
		f.t.Errorf("m%d: an attempt has fence %d, behind %d", model, a.Fence, f.last[model])
	}
	f.last[model] = a.Fence
	return &frozenWorker{a, model, f.source.Add(1)}
}

// write publishes the data that a worker has read, and returns the versions that both tables have then.
func (f *fenced) write(w *frozenWorker) (fenced, plain int64) {
	s := <-f.sessions
	defer func() { f.sessions <- s }()
	const insert = "INSERT INTO %[1]s AS t VALUES ('%[2]s', %[3]d, %[4]d) ON CONFLICT (uid) DO UPDATE SET fence = excluded.fence, version = excluded.version%[5]s;\n"
	s.query(fmt.Sprintf(insert, "fenced", w.Model, w.Fence, w.version, " WHERE t.fence < excluded.fence") + fmt.Sprintf(insert, "plain", w.Model, w.Fence, w.version, ""))
	found := s.query(fmt.Sprintf("SELECT f.version, p.version FROM fenced f, plain p WHERE f.uid = '%[1]s' AND p.uid = '%[1]s';", w.Model))
	if _, err := fmt.Sscanf(strings.Join(found, ","), "%d|%d", &fenced, &plain); err != nil {
		f.t.Errorf("Postgres tells %q: %v", found, err)
	}
	return fenced, plain
}

// thaw lets a frozen worker write at last.
func (f *fenced) thaw(w *frozenWorker) {
	fenced, plain := f.write(w)
	if fenced <= w.version {
		f.t.Errorf("%s: the row has version %d, after a thawed worker with fence %d wrote %d", w.Model, fenced, w.Fence, w.version)
	}
	if plain < fenced {
		f.stale.Add(1)
	}
}

type copiedKey struct {
	key, value string
	lasts      time.Duration
}

// copyRedis is the content of a backup of Redis.
func (f *fenced) copyRedis() (copied []copiedKey) {
	keys := check.Got(f.Redis.Keys(f.t.Context(), "*").Result())(f.t)
	for _, key := range keys {
		if value, err := f.Redis.Dump(f.t.Context(), key).Result(); err == nil { // a token of a moment may have gone
			copied = append(copied, copiedKey{key, value, max(0, f.Redis.PTTL(f.t.Context(), key).Val())})
		}
	}
	return copied
}

// restoreRedis replaces all that there is by a copy. The daemons go on meanwhile.
func (f *fenced) restoreRedis(copied []copiedKey) {
	must(f.t, check.Only(f.Redis.TxPipelined(f.t.Context(), func(pipe redis.Pipeliner) error {
		pipe.FlushDB(f.t.Context())
		for _, one := range copied {
			pipe.Restore(f.t.Context(), one.key, one.lasts, one.value)
		}
		return nil
	})))
}

// session is a connection to Postgres.
type session struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

func startSession(t *testing.T, address string) *session {
	t.Helper()
	psql := exec.CommandContext(t.Context(), "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", address[len("127.0.0.1:"):], "-U", "postgres")
	s := &session{t: t}
	in := check.Got(psql.StdinPipe())(t)
	s.in, s.out = in, bufio.NewScanner(check.Got(psql.StdoutPipe())(t))
	must(t, psql.Start())
	t.Cleanup(func() { _, _ = in.Close(), psql.Wait() })
	return s
}

// query returns the lines that Postgres answers.
func (s *session) query(sql string) (lines []string) {
	_, _ = io.WriteString(s.in, sql+"\n\\echo .\n")
	for s.out.Scan() {
		if s.out.Text() == "." {
			return lines
		}
		lines = append(lines, s.out.Text())
	}
	s.t.Errorf("psql has ended: %s", sql)
	return lines
}
