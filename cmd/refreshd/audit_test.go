package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// newest is the newest deed, as "DEED WHAT MODELS: REASON [BEFORE > AFTER]".
func (c *console) newest() string {
	c.t.Helper()
	found := c.objects(c.do("audit", "-o", "json", "--limit", "1"))
	if len(found) == 0 {
		return ""
	}
	d := found[0]
	return fmt.Sprintf("%v|%v|%v|%v|%v > %v|%v", d["deed"], d["what"], d["models"], d["reason"], d["before"], d["after"], d["by"])
}

// changing are command lines, in order, and the deeds that they are. Each begins by the path of its command.
var changing = []struct{ command, in, want string }{
	{"model put -", `{"uid":"a","rrule":"FREQ=YEARLY","labels":{"t":"1"}}` + "\n" + `{"uid":"b","rrule":"FREQ=YEARLY"}`, "model put|a b|2|| > "},
	{"model put -", `{"uid":"b","rrule":"FREQ=DAILY"}`, "model put|b|1||rrule FREQ=YEARLY > rrule FREQ=DAILY|ann"},
	{"model put -", `{"uid":"a","rrule":"FREQ=YEARLY","labels":{"t":"1","k":"v"},"payload":{"n":2}}`, "model put|a|1|| > k=v, another payload|ann"},
	{"model run a b", "", "model run|a b|2|| > "},
	{"model disable a --reason not·paid", "", "model disable|a|1|not paid| > "},
	{"model enable a", "", "model enable|a|1|| > "},
	{"hold --id h -l t=1 --reason deploy", "", "hold|h t=1|0|deploy| > selector t=1"},
	{"release h", "", "release|h t=1|0||held by ann: deploy > released"},
	{"limit set host=a --running 3", "", "limit set|host=a|0|| > running 3"},
	{"limit set host=a --running 5", "", "limit set|host=a|0||running 3 > running 5"},
	{"limit rm host=a", "", "limit rm|host=a|0||running 5 > "},
	{"limit open host=c", "", "limit open|host=c|0|| > "},
	{"circuit open host=b --reason down", "", "circuit open|host=b|0|down| > "},
	{"circuit close host=b", "", "circuit close|host=b|0|| > "},
	{"circuit set queue --on --min 7", "", "circuit set|queue|0|| > on 1, share 0.5, window_ms 300000, min 7"},
	{"policy put -", "name: p\ntimeout: 1m\nretries: [1m]\n", "policy put|p|0|| > "},
	{"policy put -", "name: p\ntimeout: 2m\nretries: [1m]\n", "policy put|p|0||timeout 1m > timeout 2m"},
	{"policy rm p", "", "policy rm|p|0||"},
	{"calendar put -", "{name: holidays, rrule: FREQ=DAILY, dtstart: 2026-01-01T00:00:00, timezone: UTC, for: 1m}", "calendar put|holidays|0|| > "},
	{"calendar rm holidays", "", "calendar rm|holidays|0||"},
	{"queue set --new-error-above 9", "", "queue set|bigtables|0|| > new_error_above 9"},
	{"worker quiet host:1-w1", "", "worker quiet|host:1-w1|0|| > "},
	{"worker resume host:1-w1", "", "worker resume|host:1-w1|0||quiet ann > "},
	{"worker stop host:1-w1", "", "worker stop|host:1-w1|0|| > "},
	{"rejected requeue --all", "", "rejected requeue|expected a JSON object, found \"garbage\"|1|| > "},
	{"rejected drop --all", "", "rejected drop||2|| > "},
	{"undelivered requeue --all", "", "undelivered requeue|mail:a|1|| > "},
	{"undelivered drop --all", "", "undelivered drop||1|| > "},
	{"limit set host=d --running 1 --reason slow", "", "limit set|host=d|0|slow| > running 1"},
	{"level --apply --within 1h", "", "level apply|all models|0|| > within 1h"},
	{"level --clear", "", "level clear|all models|0|| > |"},
	{"apply -f DIR --owner ann", "", "apply|owner=ann|1|| > 1 created, 0 changed, 0 deleted; policies 0"},
	{"model import -", `{"kind":"model","uid":"i","rrule":"FREQ=YEARLY"}`, "model import|standard input|1|| > "},
	{"doctor --repair", "", "doctor repair||"},
	{"model rm b", "", "model rm|b|1|| > "},
}

// unchanging are the commands that change nothing, or only what a worker or a daemon does.
var unchanging = strings.Fields(`acl audit bulk·ls bulk·show calendar·ls circuit·ls circuit·show conformance dashboard demo bench dispatcher explain failures failures·show history import·bullmq import·celery-beat import·k8s import·sidekiq-cron import·systemd policy·english
	forecast freshness health hold·ls import·crontab limit·ls model·export model·get model·history model·ls notifier policy·check policy·diff policy·get policy·ls
	poller queue·show rejected·groups rejected·ls schedule·next shadow simulate stats suspect·ls undelivered·ls up version worker worker·ls`)

// elsewhere are the commands whose deeds other tests show.
var elsewhere = strings.Fields("bulk·cancel failures·run queue·create suspect·accept suspect·reject")

func TestEachCommandThatChangesSomethingIsADeed(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		q, client := fixture.Live(t, server), server.Client(t)
		must(t, client.ZAdd(t.Context(), q.Store.Keys.Workers, goredis.Z{Score: float64(time.Now().UnixMilli()), Member: "host:1-w1"}).Err())
		directory := file(t, "fleet.yaml", "uid: mine\nrrule: FREQ=YEARLY\n")
		for _, step := range changing {
			switch {
			case strings.HasPrefix(step.command, "rejected"):
				q.Say("garbage")
				poll(q)
			case strings.HasPrefix(step.command, "undelivered"):
				must(t, client.RPush(t.Context(), q.Store.Keys.Undelivered, `{"channel":"mail","recipient":"mail:a","notices":["{\"event\":\"disabled\"}"]}`).Err())
			case strings.HasPrefix(step.command, "limit open"):
				slots := model.Slots{Free: time.Now().Add(time.Hour), Closed: time.Now().Add(time.Hour), By: "a"}
				must(t, client.Set(t.Context(), q.Store.Keys.Rate("host=c"), slots.String(), time.Hour).Err())
			case step.command == "doctor --repair":
				must(t, client.ZAdd(t.Context(), q.Store.Keys.Due, goredis.Z{Score: 1, Member: "ghost"}).Err())
			}
			c.in = step.in
			before := c.newest()
			args := append(line(strings.Replace(step.command, "DIR", directory, 1)), "--by", "ann")
			if _, _, stderr := c.run(args...); strings.Contains(stderr, "unknown flag: --by") {
				c.in = step.in
				_, _, _ = c.run(args[:len(args)-2]...)
			}
			got := c.newest()
			if got == before || !strings.HasPrefix(got, step.want) {
				t.Errorf("%s: got the deed %s, want %s", step.command, got, step.want)
			}
		}
	})
}

func TestNoCommandThatChangesSomethingIsForgotten(t *testing.T) {
	known := map[string]bool{}
	for _, list := range [][]string{unchanging, elsewhere} {
		for _, path := range list {
			known[strings.ReplaceAll(path, "·", " ")] = true
		}
	}
	a := &app{problems: map[string]int{}}
	var visit func(command *cobra.Command)
	visit = func(command *cobra.Command) {
		path := strings.TrimPrefix(command.CommandPath(), "refreshd ")
		changes := slices.ContainsFunc(changing, func(step struct{ command, in, want string }) bool {
			return strings.HasPrefix(step.command+" ", path+" ")
		})
		if command.Runnable() && command.HasParent() && !known[path] && !changes && !command.HasSubCommands() {
			t.Errorf("refreshd %s: expected it among the commands that change something or nothing", path)
		}
		delete(known, path)
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(a.rootCommand())
	if len(known) > 0 {
		t.Errorf("no such commands: %v", slices.Sorted(maps.Keys(known)))
	}
}

// deeds are all deeds, the newest first, as "DEED WHAT MODELS BY".
func (c *console) deeds(args ...string) (all []string) {
	c.t.Helper()
	for _, d := range c.objects(c.do(append([]string{"audit", "-o", "json"}, args...)...)) {
		all = append(all, fmt.Sprintf("%v|%v|%v|%v", d["deed"], d["what"], d["models"], d["by"]))
	}
	return all
}

func TestABulkIsOneDeedFromItsBeginToItsEnd(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		c.withPoller(server)
		c.fleet()
		c.do("model", "run", "-l", "tenant=t1", "--by", "ann")
		equal(t, []string{"model run|tenant=t1|10|ann"}, c.deeds("--about", "tenant=t1"))
		failIf(t, strings.Contains(c.do("audit"), "goes on"), "expected a bulk that is over")
		id := strings.Fields(strings.Split(c.do("bulk", "ls"), "\n")[1])[0]
		code, _, _ := c.run("bulk", "cancel", id)
		failIf(t, code != exitFailed || len(c.deeds("--about", "bulk cancel")) != 0, "expected no deed of what was refused")
		code, _, _ = c.run("circuit", "close", "host=x")
		failIf(t, code != exitFailed || len(c.deeds("--about", "circuit close")) != 0, "expected no deed of a circuit that was not open")

		slow := c.start("model", "disable", "-l", "tenant=t2", "--rate", "1/h", "--by", "bob")
		check.Eventually(t, "a bulk that goes on", func() bool { return strings.Contains(c.do("audit"), "still going on") })
		rows := strings.Split(strings.TrimSpace(c.do("bulk", "ls")), "\n")
		c.do("bulk", "cancel", strings.Fields(rows[len(rows)-1])[0])
		_ = slow.stop()
		failIf(t, strings.Contains(c.do("audit"), "still going on"), "expected that the cancel ends it, found %s", c.do("audit"))
	})
}

func TestACreatedQueueAndItsHoldInAllPartsAreADeedEach(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		c.do("queue", "create", "--parts", "4")
		c.do("hold", "--id", "h", "--reason", "move", "--by", "ann")
		c.do("queue", "create", "--parts", "4") // changes nothing
		c.put("uid: a\n---\nuid: b\n---\nuid: c\n---\nuid: d\n")
		found := c.deeds()
		failIf(t, len(found) != 3 || !strings.HasPrefix(found[0], "model put|") || found[1] != "hold|h all models|0|ann" || !strings.HasPrefix(found[2], "queue create|"), "found %q", found)
		failIf(t, !strings.Contains(found[0], "|4|"), "expected four models of all parts together, found %s", found[0])
	})
}

func TestDeedsAreFoundByWhoWhatAndWhen(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	for i := range 7 {
		c.do("hold", "--id", fmt.Sprint("h", i), "--reason", "move", "--by", []string{"ann", "bob"}[i%2])
	}
	equal(t, []string{"hold|h5 all models|0|bob", "hold|h3 all models|0|bob", "hold|h1 all models|0|bob"}, c.deeds("--by", "BOB"))
	equal(t, []string{"hold|h4 all models|0|ann"}, c.deeds("--about", "H4"))
	failIf(t, len(c.deeds("--since", "1h")) != 7 || len(c.deeds("--since", "2099-01-01T00:00:00Z")) != 0, "expected all within an hour, and none of the future")
	var paged []string
	args := []string{"--limit", "3"}
	for range 3 {
		_, _, stderr := c.run(append([]string{"audit"}, args...)...)
		paged = append(paged, c.deeds(args...)...)
		_, next, _ := strings.Cut(strings.TrimSpace(stderr), "--before ")
		args = []string{"--limit", "3", "--before", next}
	}
	equal(t, c.deeds(), paged)
	c.refuses(exitUsage, map[string]string{"audit --since x": "--since: expected a length of time", "audit --before x": "--before: expected a position", "audit --limit 0": "--limit: expected at least 1"})
}

func TestAUserWithoutTheRightToDeedsChangesAllTheSame(t *testing.T) {
	s := fixture.WithUsers(t, "bigtables")
	admin := s.Server.Client(t)
	users := admin.Do(t.Context(), "ACL", "LIST").String()
	_, rules, _ := strings.Cut(users, "user operator-bigtables ")
	rules, _, _ = strings.Cut(rules, " user ")
	older := []any{} // what an older refreshd acl has printed
	for _, rule := range regexp.MustCompile(`\([^)]*\)|\S+`).FindAllString(rules, -1) {
		older = append(older, regexp.MustCompile(`(%\w+)?~bigtables:deeds ?`).ReplaceAllString(rule, ""))
	}
	must(t, admin.Do(t.Context(), append([]any{"ACL", "SETUSER", "operator-bigtables", "reset"}, older...)...).Err())
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "operator-bigtables", "on", ">geheim").Err())
	c := at(t, s.Server)
	c.do("stats") // the scripts are loaded by somebody else
	c.put("uid: z\n")
	c.env["REDIS_URL"] = strings.Replace(s.Server.URL, "://", "://operator-bigtables:geheim@", 1)
	for _, command := range []string{"hold --id h --reason x", "release h", "policy put -", "limit set host=a --running 1", "circuit open host=b", "model run z", "level --apply --within 1h", "queue set --new-error-above 9"} {
		c.in = "name: p\ntimeout: 1m\nretries: [1m]\n"
		code, _, stderr := c.run(line(command)...)
		failIf(t, code != exitDone || !strings.Contains(stderr, "audit does not show what is done: bigtables:deeds: NOPERM"), "%s: expected that it is done, and not kept, found %d, %s", command, code, stderr)
	}
	_, report, _ := c.run("doctor")
	expectContains(t, report, "deeds-refused")
}
