package wire

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/acl"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/scripts"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// outside is a running refreshd as its users see it: through redis-cli.
type outside struct {
	t     *testing.T
	port  string
	users *fixture.Users // nil: everybody may do everything
}

// setup starts a redis-server, a dispatcher and a poller.
func setup(t *testing.T) *outside {
	t.Helper()
	return enter(t, testkit.Redis(t), nil)
}

// setupWithUsers does so with a user for each part, and wants that Redis refuses nothing to anybody.
func setupWithUsers(t *testing.T) *outside {
	t.Helper()
	users := fixture.WithUsers(t, scripts.DefaultQueue)
	t.Cleanup(func() { users.ExpectNoRefusal(t) })
	return enter(t, users.Server, users)
}

func enter(t *testing.T, server *testkit.Server, users *fixture.Users) *outside {
	t.Helper()
	testkit.RequireProgram(t, "redis-cli", "redis-tools")
	_, port, err := net.SplitHostPort(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []acl.Role{acl.Dispatcher, acl.Poller} {
		url := server.URL
		if users != nil {
			url = users.URL(t, role)
		}
		testkit.Refreshd(t, string(role), "--redis", url)
	}
	return &outside{t, port, users}
}

// as are the words by which redis-cli logs in as a role.
func (o *outside) as(role acl.Role) []string {
	if o.users == nil {
		return []string{"-p", o.port}
	}
	name, password := o.users.Credentials(o.t, role)
	return []string{"-p", o.port, "--user", name, "--pass", password, "--no-auth-warning"}
}

// cli runs one command of redis-cli, as whoever may do everything.
func (o *outside) cli(words ...string) string {
	o.t.Helper()
	return o.redisCLI([]string{"-p", o.port}, words...)
}

func (o *outside) redisCLI(login []string, words ...string) string {
	o.t.Helper()
	output, err := exec.Command("redis-cli", append(login, words...)...).CombinedOutput()
	if err != nil {
		o.t.Fatalf("redis-cli %s: %v\n%s", strings.Join(words, " "), err, output)
	}
	return strings.TrimSuffix(string(output), "\n")
}

// hash reads a hash.
func (o *outside) hash(key string) map[string]string {
	o.t.Helper()
	fields := map[string]string{}
	lines := strings.Split(o.cli("HGETALL", key), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		fields[lines[i]] = lines[i+1]
	}
	return fields
}

// await looks until a field of a hash has a value; "*" is any.
func (o *outside) await(key, field, want string) map[string]string {
	o.t.Helper()
	for end := time.Now().Add(testkit.Limit); ; {
		fields := o.hash(key)
		if fields[field] == want || want == "*" && fields[field] != "" {
			return fields
		}
		if time.Now().After(end) {
			o.t.Fatalf("%s: want %s %q, got %v; counters %v; rejected %s", key, field, want, fields,
				o.hash("bigtables:stats"), o.cli("LRANGE", "bigtables:rejected", "0", "-1"))
		}
	}
}

// count waits until a counter has reached a number and then wants it exactly there.
func (o *outside) count(counters map[string]string) {
	o.t.Helper()
	for name, want := range counters {
		o.await("bigtables:stats", name, want)
	}
}

// command pushes a command as an application does.
func (o *outside) command(fields map[string]any) {
	o.t.Helper()
	o.redisCLI(o.as(acl.Application), "RPUSH", "bigtables-control", o.json(fields))
}

// say pushes a message as a worker does.
func (o *outside) say(message string) {
	o.t.Helper()
	o.redisCLI(o.as(acl.ForeignWorker), "RPUSH", "bigtables-output", message)
}

func (o *outside) json(value any) string {
	o.t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		o.t.Fatal(err)
	}
	return string(text)
}

// plan says for each attempt of a model what its worker sends; a message without uids gets those of the attempt.
type plan [][]map[string]any

// put saves a one-shot with a plan under the policy of the thumbnail scenario.
func (o *outside) put(uid, timeout string, plan plan) {
	o.t.Helper()
	o.command(map[string]any{
		"type": "put", "uid": uid, "payload": map[string]any{"plan": plan},
		"policy": map[string]any{"timeout": timeout, "retries": []any{0, "1m", "5m"}, "on_exhausted": "give_up"},
	})
}

// worker works on attempts by their plans until the test ends.
type worker func(o *outside)

// workers are the two that the wire must serve: one by hand, one in another language.
var workers = map[string]worker{"redis-cli": workByHand, "python": workInPython}

// withEachWorker runs a test once for each worker, and once with the users of Redis that refreshd acl prints.
func withEachWorker(t *testing.T, test func(t *testing.T, o *outside)) {
	t.Helper()
	for name, worker := range workers {
		t.Run(name, func(t *testing.T) {
			o := setup(t)
			worker(o)
			test(t, o)
		})
	}
	t.Run("redis-cli with users", func(t *testing.T) {
		o := setupWithUsers(t)
		workByHand(o)
		test(t, o)
	})
}

func workInPython(o *outside) {
	testkit.RequireProgram(o.t, "python3", "python3")
	script, err := filepath.Abs("testdata/planned.py")
	if err != nil {
		o.t.Fatal(err)
	}
	testkit.Start(o.t, "python3", script, "127.0.0.1", o.port)
}

func workByHand(o *outside) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	o.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			o.workOnce()
		}
	}()
}

// workOnce takes one attempt, if one comes within a second, and sends what its plan says.
func (o *outside) workOnce() {
	taken, err := exec.Command("redis-cli", append(o.as(acl.ForeignWorker), "BLPOP", "bigtables-input", "1")...).Output()
	_, raw, found := strings.Cut(strings.TrimSpace(string(taken)), "\n")
	if err != nil || !found {
		return
	}
	var attempt struct {
		fixture.Entry
		Plan plan `json:"plan"`
	}
	if err := json.Unmarshal([]byte(raw), &attempt); err != nil {
		o.t.Errorf("read attempt %s: %v", raw, err)
		return
	}
	for _, fields := range attempt.Plan[min(attempt.AttemptNo, len(attempt.Plan))-1] {
		message := map[string]any{"big_table_uid": attempt.UID, "request_attempt_uid": attempt.AttemptUID}
		maps.Copy(message, fields)
		o.say(o.json(message))
	}
}

// lastDelay is the time between the end of the last attempt and the next refresh, as the history tells.
func (o *outside) lastDelay(uid string) time.Duration {
	o.t.Helper()
	var record struct {
		Next int `json:"next"` // ms after the end
	}
	if err := json.Unmarshal([]byte(o.cli("LINDEX", "bigtables:history:"+uid, "0")), &record); err != nil {
		o.t.Fatal(err)
	}
	return time.Duration(record.Next) * time.Millisecond
}

// clock reads a time of a model.
func (o *outside) clock(text string) time.Time {
	o.t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		o.t.Fatal(err)
	}
	return at
}

func number(text string) int { n, _ := strconv.Atoi(text); return n }
