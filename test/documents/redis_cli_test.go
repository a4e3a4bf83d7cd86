package documents

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

const cookbook = "docs/redis-cli.md"

// kitchen is the fleet of the cookbook: a queue on a clock that is turned, so that each run prints the same, with a dispatcher and a poller.
type kitchen struct {
	*fixture.Queue
	t          *testing.T
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
	path, tty  string
	users      *fixture.Users
}

func newKitchen(t *testing.T) *kitchen {
	t.Helper()
	testkit.RequireProgram(t, "redis-cli", "redis-tools")
	testkit.RequireProgram(t, "bash", "bash")
	k := &kitchen{Queue: fixture.New(t, testkit.Redis(t)), t: t, path: t.TempDir()}
	attempts := 0
	uid := func() string { attempts++; return fmt.Sprintf("attempt%019d", attempts) }
	k.dispatcher = check.Got(dispatcher.New(dispatcher.RoomsOf(k.Store), dispatcher.Config{Owner: "d1", MaxQueued: 3, NewUID: uid}))(t)
	k.poller = check.Got(poller.New(poller.RoomsOf(k.Store), poller.Config{Owner: "p1", NewUID: uid}))(t)
	cli := check.Got(exec.LookPath("redis-cli"))(t)
	_, port, _ := net.SplitHostPort(k.Server.Addr)
	k.tty = k.path + "/out"
	// What goes to the reader is printed as on a terminal, and what goes elsewhere as it is.
	program(t, k.path, "redis-cli", fmt.Sprintf("shape=--raw\n[ /dev/stdout -ef %q ] && shape=--no-raw\nexec %q -p %s $KITCHEN_USER $shape \"$@\"", k.tty, cli, port))
	program(t, k.path, "date", fmt.Sprintf("exec /bin/date -u -d @%d \"$@\"", fixture.Start.Unix()))
	k.cook()
	k.users = fixture.UsersOn(t, k.Server, k.Store.Keys.Queue)
	return k
}

// role is who may run a line: a reader, an application, or a worker.
func role(command string) acl.Role {
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(command, word) })
	}
	switch {
	case says("RPUSH bigtables-control", "bigtables:reply:"):
		return acl.Application
	case says("LPOP bigtables-input", "RPUSH bigtables-output"):
		return acl.ForeignWorker
	default:
		return acl.Viewer
	}
}

// work lets a second pass, and the daemons do their work.
func (k *kitchen) work() {
	k.t.Helper()
	k.Clock.Turn(time.Second)
	for range 2 {
		check.Got(k.poller.RunOnce(k.t.Context()))(k.t)
		check.Got(k.dispatcher.RunOnce(k.t.Context()))(k.t)
	}
}

// take lets a worker take the attempt of a model, whatever precedes it.
func (k *kitchen) take(uid string) (attempt string) {
	k.t.Helper()
	attempt = k.Attempt(uid)
	for _, entry := range k.List(k.Store.Keys.Input) {
		if strings.Contains(entry, attempt) && attempt != "" {
			k.Redis.LRem(k.t.Context(), k.Store.Keys.Input, 1, entry)
			return attempt
		}
	}
	k.t.Fatalf("want an attempt of %s in line, got %v", uid, k.Model(uid))
	return ""
}

func (k *kitchen) say(kind, uid string, fields ...string) {
	k.t.Helper()
	k.Say(fixture.Result(kind, uid, k.take(uid), fields...))
	k.work()
}

func (k *kitchen) put(uid, host string, fields ...string) {
	k.t.Helper()
	if len(fields) == 0 {
		fields = []string{`"policy":"daily"`}
	}
	k.Command(fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"input_url":"https://%s/%s.csv"},"rrule":"FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0",`+
		`"labels":{"tenant":"t1"},"refresh":"now"%s}`, uid, host, uid, strings.Join(append([]string{""}, fields...), ",")))
	k.work()
}

// cook prepares the fleet in the hour before seven.
func (k *kitchen) cook() {
	k.t.Helper()
	k.Clock.Set(fixture.Start.Add(-time.Hour))
	k.Redis.HSet(k.t.Context(), k.Store.Keys.Policies, "daily", `{"name":"daily","timeout":"20m","retries":["5m","30m"],"on_exhausted":"give_up",`+
		`"fresh_within":"26h","circuit":{"key":"{host(input_url)}","open_after":"2 of 2","probe":"2h"},"limits":[{"key":"{host(input_url)}","running":1}]}`)
	k.put("tbl_1", "shop.example")
	k.say("success", "tbl_1")
	k.Redis.HSet(k.t.Context(), k.Store.Keys.Policies, "hourly", `{"name":"hourly","timeout":"10m","retries":["5m"],"on_exhausted":"next_planned","fresh_within":"50m","warn_within":"40m"}`)
	k.put("hour_1", "shop.example", `"policy":"hourly"`)
	k.say("success", "hour_1")
	k.put("tbl_gone", "gone.example")
	k.say("failure", "tbl_gone", `"reason":"HTTP 404"`, `"error_type":"http_404"`, `"retryable":false`, `"user_friendly_reason":"The address of your table does not exist."`)
	for _, uid := range []string{"feed_1", "feed_2"} {
		k.put(uid, "down.example")
		k.say("failure", uid, fmt.Sprintf(`"reason":"GET https://down.example/%s.csv: 503 Service Unavailable"`, uid), `"error_type":"http_503"`)
	}
	k.Command(`{"type":"run","uid":"tbl_9","by":"ann"}`)
	k.Command(`{"type":"hold","id":"move","selector":"uid=house_*","reason":"moves house","until":"2026-11-21T12:00:00Z","by":"ann"}`)
	k.put("house_1", "house.example")
	k.Command(`{"type":"put","uid":"late_1","payload":{"input_url":"https://late.example/1.csv"},"rrule":"FREQ=DAILY;BYHOUR=6;BYMINUTE=58;BYSECOND=0","policy":"hourly"}`)
	k.work()
	k.Clock.Set(fixture.Start.Add(-5 * time.Minute))
	k.put("slow_1", "slow.example")
	k.Say(fixture.Result("started", "slow_1", k.take("slow_1"), `"worker":"w1"`), fixture.Result("user_friendly_status", "slow_1", k.Attempt("slow_1"), `"status":"half of 2,500 rows"`, `"progress":50`))
	k.put("slow_2", "slow.example")
	for i := range 3 {
		k.put(fmt.Sprintf("many_%d", i+1), fmt.Sprintf("many%d.example", i+1))
	}
	k.Clock.Set(fixture.Start)
	k.work()
	const pool = "host7:4711-20261121T065800Z-abcdefgh"
	check.Got(k.Store.Pool().Take(k.t.Context(), store.TakeRequest{Owner: pool, New: true}))(k.t)
	check.Must(k.t, (&store.Queue{Parts: []*store.Store{k.Store}}).Fleet().OrderPools(k.t.Context(), []string{pool}, store.PoolOrder{Verb: store.PoolQuiet, By: "ann"}))
}

// run runs a line as a reader would, and returns the screen.
func (k *kitchen) run(command string) []string {
	k.t.Helper()
	out := check.Got(os.Create(k.tty))(k.t)
	defer func() { _ = out.Close() }()
	var complaint strings.Builder
	shell := exec.CommandContext(k.t.Context(), "bash", "-c", command)
	name, secret := k.users.Credentials(k.t, role(command))
	shell.Env = append(os.Environ(), "KITCHEN_USER=--no-auth-warning --user "+name+" --pass "+secret, "PATH="+k.path+":"+os.Getenv("PATH"))
	shell.Stdout, shell.Stderr = out, &complaint
	err := shell.Start()
	if err == nil && strings.Contains(command, " BLOCK ") {
		check.Eventually(k.t, "somebody waits for an entry", func() bool {
			return strings.Contains(k.Redis.Info(k.t.Context(), "clients").Val(), "blocked_clients:1")
		})
		k.Command(`{"type":"disable","uid":"hour_1","reason":"Please pay your bill.","by":"bob"}`)
		k.work()
	}
	if err = cmp.Or(err, shell.Wait()); err != nil || complaint.Len() > 0 {
		k.t.Errorf("%s: %v\n%s", command, err, complaint.String())
	}
	text := check.Got(os.ReadFile(k.tty))(k.t)
	k.work()
	return strings.FieldsFunc(streamID.ReplaceAllString(string(text), "1795244400000-0"), func(r rune) bool { return r == '\n' })
}

func TestEachLineOfTheCookbookPrintsWhatStandsBelowIt(t *testing.T) {
	long.Only(t)
	t.Parallel()
	k := newKitchen(t)
	lines, blocks := read(t, cookbook)
	type change struct {
		b   *block
		s   step
		got []string
	}
	var changes []change
	for _, b := range blocks {
		if b.fence != "sh" {
			continue
		}
		if !b.asks() {
			t.Fatalf("%s line %d: expected a command behind \"$ \"", cookbook, b.line)
		}
		for _, s := range b.steps() {
			got := k.run(s.command)
			changes = append(changes, change{b, s, got})
			if found := diff.Diff(inOrder(s.command, s.output), inOrder(s.command, got)); found != "" && !*update && len(s.output)+len(got) > 0 {
				t.Errorf("%s line %d: %s (-page +printed):\n%s", cookbook, b.line+s.at-1, s.command, found)
			}
		}
	}
	if len(changes) < 30 {
		t.Errorf("want the lines of the cookbook, got %d", len(changes))
	}
	if *update {
		for _, c := range slices.Backward(changes) {
			lines = printed(lines, c.b, c.s, c.got)
		}
		save(t, cookbook, lines)
	}
}
