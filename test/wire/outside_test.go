package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// outside is a running refreshd as its users see it: through redis-cli.
type outside struct {
	t *testing.T
	place
	users *fixture.Users // nil: everybody may do everything
}

// setup starts a dispatcher and a poller at a place, with a user for each part if there are any.
func setup(t *testing.T, at place, users *fixture.Users) *outside {
	t.Helper()
	testkit.RequireProgram(t, "redis-cli", "redis-tools")
	for _, role := range []acl.Role{acl.Dispatcher, acl.Poller} {
		flags := at.flags()
		if users != nil {
			flags = []string{"--redis", users.URL(t, role)}
		}
		testkit.Refreshd(t, append([]string{string(role)}, flags...)...)
	}
	return &outside{t, at, users}
}

// as returns the arguments of redis-cli to log in as a role.
func (o *outside) as(role acl.Role) []string {
	if o.users == nil {
		return o.login()
	}
	name, password := o.users.Credentials(o.t, role)
	return append(o.login(), "--user", name, "--pass", password, "--no-auth-warning")
}

// cli runs one command of redis-cli on the keys of a name, as a user with all rights. Each key adds its output.
func (o *outside) cli(command, name string, words ...string) string {
	o.t.Helper()
	var answers []string
	for _, key := range o.keys(name) {
		if answer := o.redisCLI(o.login(), append([]string{command, key}, words...)...); answer != "" {
			answers = append(answers, answer)
		}
	}
	return strings.Join(answers, "\n")
}

// length is the length of all lists of a name together.
func (o *outside) length(name string) (length int) {
	o.t.Helper()
	for text := range strings.Lines(o.cli("LLEN", name)) {
		length += number(strings.TrimSpace(text))
	}
	return length
}

func (o *outside) redisCLI(login []string, words ...string) string {
	o.t.Helper()
	output, err := exec.Command("redis-cli", append(login, words...)...).CombinedOutput()
	stopIf(o.t, err != nil, "redis-cli %s: %v\n%s", strings.Join(words, " "), err, output)
	return strings.TrimSuffix(string(output), "\n")
}

// hash reads a hash. If there is one in each part, they hold counters, and the sums are what counts.
func (o *outside) hash(key string) map[string]string {
	o.t.Helper()
	fields := map[string]string{}
	lines := strings.Split(o.cli("HGETALL", key), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		if sum, found := fields[lines[i]]; found {
			lines[i+1] = strconv.Itoa(number(sum) + number(lines[i+1]))
		}
		fields[lines[i]] = lines[i+1]
	}
	return fields
}

// await looks until a field of a hash has a value; "*" is any.
func (o *outside) await(key, field, want string) map[string]string {
	o.t.Helper()
	for end := time.Now().Add(check.Limit); ; time.Sleep(10 * time.Millisecond) {
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

// count waits until counters are at a number.
func (o *outside) count(counters map[string]string) {
	o.t.Helper()
	for name, want := range counters {
		o.await("bigtables:stats", name, want)
	}
}

// command pushes a command as an application does, to a part that has to forward it if there are several.
func (o *outside) command(fields map[string]any) {
	o.t.Helper()
	o.redisCLI(o.as(acl.Application), "RPUSH", o.elsewhere(fmt.Sprint(fields["uid"]))+"-control", o.json(fields))
}

// say pushes a message as a worker does, to the part of the model that it is about.
func (o *outside) say(message string) {
	o.t.Helper()
	var about fixture.Entry
	_ = json.Unmarshal([]byte(message), &about) // garbage is about no model
	o.answer(o.queueOf(about.UID)+"-output", message)
}

func (o *outside) answer(list, message string) {
	o.t.Helper()
	o.redisCLI(o.as(acl.ForeignWorker), "RPUSH", list, message)
}

func (o *outside) json(value any) string {
	o.t.Helper()
	text := check.Got(json.Marshal(value))(o.t)
	return string(text)
}

// plan has the messages of a worker for each attempt of a model; a message without uids gets the uids of the attempt.
type plan [][]map[string]any

// put saves a one-shot with a plan under the policy of the thumbnail scenario.
func (o *outside) put(uid, timeout string, plan plan) {
	o.t.Helper()
	o.command(map[string]any{
		"type": "put", "uid": uid, "payload": map[string]any{"plan": plan},
		"policy": map[string]any{"timeout": timeout, "retries": []any{0, "1m", "5m"}, "on_exhausted": "give_up"},
	})
}

// withEachPlace runs a test once at each place.
func withEachPlace(t *testing.T, test func(t *testing.T, o *outside)) {
	t.Helper()
	for name, enter := range places {
		t.Run(name, func(t *testing.T) { test(t, setup(t, enter(t), nil)) })
	}
}

// withEachWorker runs a test with the two workers that the wire must serve, one by hand and one in another language, at each place, and once with the
// users of Redis that refreshd acl prints, to whom Redis must refuse nothing.
func withEachWorker(t *testing.T, test func(t *testing.T, o *outside)) {
	t.Helper()
	t.Run("redis-cli", func(t *testing.T) {
		withEachPlace(t, func(t *testing.T, o *outside) { workByHand(o); test(t, o) })
	})
	t.Run("python", func(t *testing.T) {
		long.Only(t)
		withEachPlace(t, func(t *testing.T, o *outside) { workInPython(o); test(t, o) })
	})
	t.Run("redis-cli with users", func(t *testing.T) {
		long.Only(t)
		users := fixture.WithUsers(t, store.DefaultQueue)
		t.Cleanup(func() { users.ExpectNoRefusal(t) })
		o := setup(t, place{server: users.Server}, users)
		workByHand(o)
		test(t, o)
	})
}

func workInPython(o *outside) {
	testkit.RequireProgram(o.t, "python3", "python3")
	script := check.Got(filepath.Abs("testdata/planned.py"))(o.t)
	testkit.Start(o.t, "python3", append([]string{script, "127.0.0.1", port(o.server.Addr)}, o.queues()...)...)
}

// workByHand serves the input lists of all parts. They are in different slots, so one BLPOP cannot wait for them all.
func workByHand(o *outside) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	o.t.Cleanup(func() { cancel(); done.Wait() })
	for _, queue := range o.queues() {
		done.Go(func() {
			for ctx.Err() == nil {
				o.workOnce(queue)
			}
		})
	}
}

// workOnce takes one attempt, if one comes within a second, and sends what its plan says.
func (o *outside) workOnce(queue string) {
	taken, err := exec.Command("redis-cli", append(o.as(acl.ForeignWorker), "BLPOP", queue+"-input", "1")...).Output()
	_, raw, found := strings.Cut(strings.TrimSpace(string(taken)), "\n")
	if err != nil || !found {
		return
	}
	attempt := struct {
		fixture.Entry
		ReplyTo string `json:"reply_to"`
		Plan    plan   `json:"plan"`
	}{ReplyTo: queue + "-output"}
	if err := json.Unmarshal([]byte(raw), &attempt); err != nil {
		o.t.Errorf("read attempt %s: %v", raw, err)
		return
	}
	for _, fields := range attempt.Plan[min(attempt.AttemptNo, len(attempt.Plan))-1] {
		message := map[string]any{"big_table_uid": attempt.UID, "request_attempt_uid": attempt.AttemptUID}
		maps.Copy(message, fields)
		o.answer(attempt.ReplyTo, o.json(message))
	}
}

func number(text string) int { n, _ := strconv.Atoi(text); return n }

func (o *outside) find(pattern string) (found string) {
	o.t.Helper()
	for _, address := range o.server.Addrs {
		for _, keys := range o.keys(pattern) {
			found += o.redisCLI([]string{"-p", port(address)}, "KEYS", keys)
		}
	}
	return found
}

// lastDelay is the time between the end of the last attempt and the next refresh, from the history.
func (o *outside) lastDelay(uid string) time.Duration {
	o.t.Helper()
	record := check.Got(model.ParseAttempt(o.cli("LINDEX", "bigtables:history:"+uid, "0")))(o.t)
	return record.RefreshAt.Sub(record.EndedAt)
}
