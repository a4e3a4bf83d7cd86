package conformance_test

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// bench is where the worker in Bash works on entries that a test pushes.
type bench struct {
	t      *testing.T
	client redis.UniversalClient
}

// startBash starts the worker with a program, a script of sh, at a bench of the Redis of a URL, with more in its environment.
func startBash(t *testing.T, client redis.UniversalClient, address, script string, environ ...string) *bench {
	t.Helper()
	testkit.RequireProgram(t, "redis-cli", "redis-tools")
	testkit.RequireProgram(t, "jq", "jq")
	var said check.Buffer
	worker := exec.Command(fromRoot(t, "clients/bash/worker.sh"), "sh", "-c", script)
	worker.Env = append(append(os.Environ(), "REDIS_URL="+address, "REFRESHD_QUEUE=q"), environ...)
	worker.Stdout, worker.Stderr = &said, &said
	must(t, worker.Start())
	t.Cleanup(func() {
		_ = worker.Process.Signal(os.Interrupt)
		_ = worker.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return &bench{t, client}
}

// hand gives an attempt to the worker, whose model has further fields.
func (b *bench) hand(uid string, fields ...any) {
	b.t.Helper()
	must(b.t, b.client.HSet(b.t.Context(), "q:model:"+uid, append([]any{"attempt_uid", "of-" + uid}, fields...)...).Err())
	must(b.t, b.client.RPush(b.t.Context(), "q-input", `{"big_table_uid":"`+uid+`","refresh_attempt_uid":"of-`+uid+`"}`).Err())
}

type word struct{ Type, UID, Reason, Status string }

func (b *bench) next() (said word) {
	b.t.Helper()
	reply, err := b.client.BLPop(b.t.Context(), check.Limit, "q-output").Result()
	stopIf(b.t, err != nil, "expected the worker to say something: %v", err)
	if err := json.Unmarshal([]byte(reply[1]), &said); err != nil {
		b.t.Fatalf("%q: %v", reply[1], err)
	}
	return said
}

// end waits for the end of an attempt, and returns what the worker has said before, too.
func (b *bench) end() (said []word) {
	b.t.Helper()
	for {
		said = append(said, b.next())
		if kind := said[len(said)-1].Type; kind != "started" && kind != "user_friendly_status" {
			return said
		}
	}
}

// locked starts a Redis with a password, which the user a:b has, too.
func locked(t *testing.T, password string) *testkit.Server {
	t.Helper()
	s := testkit.Redis(t, "--appendonly", "no")
	for _, command := range [][]any{
		{"ACL", "SETUSER", "a:b", "on", ">" + password, "~*", "+@all"},
		{"CONFIG", "SET", "requirepass", password},
	} {
		must(t, s.Client(t).Do(t.Context(), command...).Err())
	}
	return s
}

func last(said []word) word { return said[len(said)-1] }

func TestTheBashWorkerFindsRedisWhereItsURLSays(t *testing.T) {
	long.Only(t)
	const password = `p@s:s/w%\n?`
	s := locked(t, password)
	encoded := url.QueryEscape(password)
	for name, test := range map[string]struct {
		address string
		db      int
	}{
		"password alone":    {"redis://:" + encoded + "@" + s.Addr, 0},
		"user and database": {"redis://a%3Ab:" + encoded + "@" + s.Addr + "/5", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := redis.NewClient(&redis.Options{Addr: s.Addr, Password: password, DB: test.db})
			t.Cleanup(func() { _ = client.Close() })
			b := startBash(t, client, test.address, "exit 0")
			b.hand("m")
			end := last(b.end())
			failIf(t, end.Type != "success", "expected success, found %+v", end)
		})
	}
}

// TestTheBashWorkerShowsItsPasswordToNobody looks at the arguments of its processes while it waits, and at what its program finds.
func TestTheBashWorkerShowsItsPasswordToNobody(t *testing.T) {
	long.Only(t)
	t.Parallel()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("no /proc")
	}
	const password = "open-sesame"
	s := locked(t, password)
	client := redis.NewClient(&redis.Options{Addr: s.Addr, Password: password})
	t.Cleanup(func() { _ = client.Close() })
	found := filepath.Join(t.TempDir(), "environment")
	b := startBash(t, client, "redis://:"+password+"@"+s.Addr, "env >"+found)
	_, port, _ := strings.Cut(s.Addr, ":")
	check.Eventually(t, "redis-cli waits for an attempt", func() (waits bool) {
		for _, arguments := range commandLines(t) {
			waits = waits || strings.HasPrefix(arguments, "redis-cli ") && strings.Contains(arguments, port)
			failIf(t, strings.Contains(arguments, password), "expected no password, found %q", arguments)
		}
		return waits
	})
	b.hand("m")
	b.end()
	environment, err := os.ReadFile(found)
	failIf(t, err != nil || strings.Contains(string(environment), password) || !strings.Contains(string(environment), "REFRESHD_QUEUE=q"),
		"expected the environment of the worker without its password, found %v, %s", err, environment)
}

func commandLines(t *testing.T) (lines []string) {
	t.Helper()
	files := check.Got(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil { // it may have ended
			lines = append(lines, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return lines
}

func TestTheBashWorkerTellsLongAndManyLinesInShort(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Redis(t)
	b := startBash(t, s.Client(t), s.URL, `seq 200; head -c 300000 /dev/zero | tr '\0' x >&2; exit 7`)
	b.hand("m")
	said, told := b.end(), 0
	for _, w := range said {
		if w.Type == "user_friendly_status" {
			told++
		}
	}
	end := last(said)
	failIf(t, end.Type != "failure" || end.Reason != strings.Repeat("x", 2000),
		"expected a failure with the begin of its last line, found %s with %d bytes", end.Type, len(end.Reason))
	if told == 0 || told > 20 || said[len(said)-2].Status != "200" {
		t.Errorf("expected a few of the lines and the last, found %d, %+v", told, said[len(said)-2])
	}
}

// TestTheBashWorkerLosesNoResultWhenWhatWritesItIsEnded has every other message end before it is written, as a signal to the whole group ends it.
func TestTheBashWorkerLosesNoResultWhenWhatWritesItIsEnded(t *testing.T) {
	t.Parallel()
	s, dir := testkit.Redis(t), t.TempDir()
	testkit.RequireProgram(t, "jq", "jq")
	path := check.Got(exec.LookPath("jq"))(t)
	fake := "#!/bin/sh\nif [ \"$1\" = -cn ] && mkdir " + dir + "/ended 2>/dev/null; then exit 143; fi\nrmdir " + dir + "/ended 2>/dev/null\nexec " + path + ` "$@"`
	must(t, os.WriteFile(filepath.Join(dir, "jq"), []byte(fake), 0o700))
	b := startBash(t, s.Client(t), s.URL, "echo half; sleep 2", "PATH="+dir+":"+os.Getenv("PATH"))
	b.hand("m")
	said := b.end()
	failIf(t, said[0].Type != "started" || last(said).Type != "success", "expected the begin and a success, found %+v", said)
}

func TestTheBashWorkerEndsItsWorkAtTheDeadlineThatRedisTells(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Redis(t)
	b := startBash(t, s.Client(t), s.URL, `case $(cat) in *late*) trap '' TERM; sleep 3600 & wait; sleep 3600 ;; esac`)
	b.hand("late", "deadline_at", "2020-01-01T00:00:00.000Z") // which moves when it is begun
	if w := b.next(); w.Type != "started" {
		t.Fatalf("expected the begin of the work, found %+v", w)
	}
	must(t, b.client.HSet(t.Context(), "q:model:late", "processing_at", "2020-01-01T00:00:00.000Z").Err())
	b.hand("next")
	for _, w := range b.end() {
		failIf(t, w.UID != "next", "expected nothing more about the attempt whose deadline has passed, found %+v", w)
	}
}

// TestTheBashWorkerPushesNothingIntoAnotherDatabase refuses its database, as a Redis that loads does: redis-cli says so and goes on in database 0.
func TestTheBashWorkerPushesNothingIntoAnotherDatabase(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Miniredis(t)
	var selected atomic.Int64
	s.Mini.Server().SetPreHook(func(peer *server.Peer, command string, words ...string) bool {
		if command != "SELECT" || selected.Add(1)%3 != 1 { // of a script's digest and its text, not always the same one
			return false
		}
		peer.WriteError("LOADING Redis is loading the dataset in memory")
		return true
	})
	client := redis.NewClient(&redis.Options{Addr: s.Addr, DB: 5, MaxRetries: 10}) // it is refused, too
	t.Cleanup(func() { _ = client.Close() })
	b := startBash(t, client, s.URL+"/5", "exit 0")
	for i := range 3 {
		b.hand("m" + strconv.Itoa(i))
		end := last(b.end())
		failIf(t, end.Type != "success", "expected success, found %+v", end)
	}
}
