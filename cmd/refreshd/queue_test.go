package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

type divided struct {
	*console
	*store.Queue
	server *testkit.Server
}

func divide(t *testing.T, server *testkit.Server, parts int) *divided {
	t.Helper()
	d := &divided{console: at(t, server), server: server}
	d.do("queue", "create", "--parts", strconv.Itoa(parts))
	client := server.Client(t)
	clients := &redis.Clients{Read: client, Write: client, Block: client, Clustered: server.IsCluster()}
	d.Queue = check.Got(store.Open(t.Context(), clients, store.Config{}))(t)
	return d
}

// start hands out an attempt for every model that is due.
func (d *divided) start() {
	d.t.Helper()
	for _, part := range d.Parts {
		q := fixture.Live(d.t, d.server)
		q.Store = part
		start(d.t, q)
	}
}

// say runs a command and returns its output, without the rows that only a queue of several parts has and without the order of
// unordered lists.
func (d *divided) say(in, command string) string {
	d.t.Helper()
	d.in = in
	code, stdout, stderr := d.run(strings.Fields(command)...)
	lines := strings.Split(stdout, "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "parts ") || strings.Contains(line, `"parts":`) || strings.Contains(line, `"open_parts":`)
	})
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, ",")
	}
	if strings.HasPrefix(command, "model ls") {
		slices.Sort(lines)
	}
	stderr = placeInLine.ReplaceAllString(stderr, "") // each part has a line of its own
	return fmt.Sprintf("%s\nexit code %d\n%s%s", strings.Join(lines, "\n"), code, stderr, strings.Repeat("-", 20))
}

var placeInLine = regexp.MustCompile(`(?m)^\S+: \d+ (is|are) before it.*\n`)

// sixteen are models of all parts of a queue of four.
func sixteen() string {
	var text strings.Builder
	for i := range 16 {
		fmt.Fprintf(&text, "uid: m%d\nrrule: FREQ=HOURLY\npolicy: nightly\n---\n", i)
	}
	return text.String()
}

// TestEveryCommandSaysTheSameHoweverManyPartsTheQueueHas runs the same commands one after the other on a queue of one part and on one of four.
func TestEveryCommandSaysTheSameHoweverManyPartsTheQueueHas(t *testing.T) {
	const other = "name: nightly\ntimeout: 40m\nretries: [1m]\n"
	commands := []struct{ in, command string }{
		{"", "stats"}, {"", "model ls"}, {"", "model get m0"}, {"", "circuit show queue"}, {"", "policy ls"}, {"", "policy rm nightly"},
		{nightlyYAML, "policy put -"}, {nightlyYAML, "policy put -"}, {"", "policy get nightly"}, {"", "policy ls -o json"}, {"", "policy english nightly"},
		{sixteen() + "uid: broken\nrrule: never\n---\nuid: m3\nrrule: FREQ=HOURLY\npayload: {n: 1}\n", "model put - -o json"},
		{sixteen(), "model put -"},
		{"", "model ls"}, {"", "model ls --prefix m1 -o json"}, {"", "model get m7"}, {"", "model get m7 -o json"}, {"", "model get none"},
		{"", "explain m7"}, {"", "explain m7 -o json"}, {"", "model history m7"},
		{"", "model run m0 m1 m2 m3 m4 none m5 m6 m7 m0"}, {"", "model run m8 --force -o json"},
		{"", "start"}, {"", "model run m0 m9"}, {"", "model disable m1 m2 m3 --reason tired"}, {"", "model ls --status disabled"},
		{"", "model history m1"}, {"", "model history m1 -o json"}, {"", "explain m1"}, {"", "stats"}, {"", "stats -o json"},
		{other, "policy put - --plan"}, {other, "policy put - --plan -o json"}, {other, "policy diff nightly -"}, {"", "policy rm nightly"},
		{other, "policy put -"}, {"", "simulate --policy nightly --start 2026-01-05T06:00:00Z --limit 3"},
		{"", "circuit set queue --on --share 80% --min 5"}, {"", "circuit show queue -o json"}, {"", "circuit close queue"}, {"", "circuit ls"}, {"", "circuit set queue --off"},
		{"", "model enable m1 m3"}, {"", "model rm m1 m2 m3 m4 none"}, {"", "policy rm nightly --force"}, {"", "model ls -o json"}, {"", "stats"},
		{other, "policy put -"},
	}
	var said [2][]string
	for i, parts := range []int{1, 4} {
		server := testkit.Miniredis(t)
		server.Mini.SetTime(time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC))
		d := divide(t, server, parts)
		for _, c := range commands {
			if c.command == "start" {
				d.start()
				continue
			}
			said[i] = append(said[i], c.command+"\n"+d.say(c.in, c.command))
		}
		report := d.object("doctor")
		codes := slices.Sorted(maps.Keys(report["codes"].(map[string]any)))
		said[i] = append(said[i], fmt.Sprint(codes, report["models"], report["complete"]))
	}
	for i, one := range said[0] {
		equal(t, one, said[1][i])
	}
}

func TestAQueueIsCreatedOnceAndShown(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	const wire = "model: big_table_uid, attempt: refresh_attempt_uid, payload: top\n"
	expectEqualText(t, "bigtables: 1 part, bigtables\n"+wire, c.do("queue", "show"))
	expectEqualText(t, "bigtables: 8 parts, {bigtables:0} to {bigtables:7}\n"+wire, c.do("queue", "create", "--parts", "8"))
	expectEqualText(t, "bigtables: 8 parts, {bigtables:0} to {bigtables:7}\n"+wire, c.do("queue", "create", "--parts", "8"))
	want := map[string]any{"queue": "bigtables", "parts": 8.0, "model_name": "big_table_uid", "attempt_name": "refresh_attempt_uid", "payload": "top", "new_error_above": 50.0}
	equal(t, want, c.object("queue", "show"))
	expectEqualText(t, "{bigtables:3}: 1 part, {bigtables:3}\n"+wire, c.do("queue", "show", "--queue", "{bigtables:3}"))
	expectContains(t, c.fail(exitFailed, "queue", "create", "--parts", "9"), "parts: expected the 8 that it was created with")
	c.in = "uid: a\n"
	c.do("model", "put", "-", "--queue", "used")
	expectContains(t, c.fail(exitFailed, "queue", "create", "--parts", "2", "--queue", "used"), "expected one that nobody uses yet")
}

func TestEachModelLivesInItsPart(t *testing.T) {
	server := testkit.Miniredis(t)
	d := divide(t, server, 4)
	d.policy(nightlyYAML)
	d.put(sixteen())
	for i, part := range d.Parts {
		listed := d.objects(d.do("model", "ls", "-o", "json", "--queue", part.Keys.Queue))
		failIf(t, len(listed) == 0, "expected models in part %d, found none", i)
		for _, m := range listed {
			failIf(t, d.Of(fmt.Sprint(m["uid"])) != part, "part %d has %s", i, m["uid"])
		}
	}
	got := len(d.objects(d.do("model", "ls", "-o", "json", "--limit", "7")))
	failIf(t, got != 7, "expected 7 of all parts, found %d", got)
	expectContains(t, d.do("stats"), "parts           4\n", "counted create  16\n")
	d.do("circuit", "set", "queue", "--on")
	must(t, server.Client(t).HSet(t.Context(), d.Parts[2].Keys.QueueCircuit, "opened_at", "2026-01-05T06:00:00.000Z").Err())
	expectContains(t, d.do("circuit", "show", "queue"), "open since 2026-01-05T06:00:00Z", "4, 1 of them open\n")
	d.do("circuit", "close", "queue")
	expectContains(t, d.do("circuit", "show", "queue"), "closed", "4, 0 of them open\n")
}

// TestManyDocumentsOfManyPartsAreSavedByFewCommitsInTheirOrder wants that each commit of a large file has much to do, whatever the number of parts.
func TestManyDocumentsOfManyPartsAreSavedByFewCommitsInTheirOrder(t *testing.T) {
	long.Only(t)
	server := testkit.Redis(t)
	d := divide(t, server, 4)
	var text, want strings.Builder
	const documents = 8 * operate.BatchSize
	for n := range documents {
		fmt.Fprintf(&text, "{\"uid\":\"m%d\"}\n", n)
		fmt.Fprintf(&want, "created    m%d\n", n)
	}
	d.in = "uid: first"
	d.do("model", "put", "-") // from here on Redis knows the scripts
	d.in = text.String()
	must(t, server.Client(t).ConfigResetStat(t.Context()).Err())
	got := d.do("model", "put", "-", "--verbose", "--format", "jsonl")
	expectEqualText(t, want.String()+fmt.Sprintf("%d models: %[1]d created, 0 updated, 0 unchanged, 0 refused\n", documents), got)
	info := server.Client(t).Info(t.Context(), "commandstats").Val()
	_, calls, _ := strings.Cut(info, "cmdstat_evalsha:calls=")
	calls, _, _ = strings.Cut(calls, ",")
	commits, err := strconv.Atoi(calls)
	failIf(t, err != nil || commits < 8 || commits > 20, "expected 8 to 20 commits, found %s, %v", calls, err)
	var lines strings.Builder
	const last = 20 * operate.BatchSize
	for n := range last { // one model again and again ends as its last document
		fmt.Fprintf(&lines, "{\"uid\":\"m%d\",\"payload\":{\"n\":%d}}\n", n%10, n)
	}
	d.in = lines.String()
	d.do("model", "put", "-", "--format", "jsonl")
	for uid := range 10 {
		got := d.object("model", "get", fmt.Sprint("m", uid))["payload"]
		failIf(t, cmp.Diff(map[string]any{"n": float64(last - 10 + uid)}, got) != "", "m%d: found %v", uid, got)
	}
}

func TestAPolicyThatReachedSomePartsOnlyReachesTheOthersWhenItIsPutAgain(t *testing.T) {
	d := divide(t, testkit.Miniredis(t), 3)
	d.policy(nightlyYAML)
	must(t, check.Only(d.Parts[2].Fleet().RemovePolicy(t.Context(), "nightly")))
	expectEqualText(t, "updated    nightly\n", d.do("policy", "put", "-"))
	expectEqualText(t, nightlyCanonical, d.do("policy", "get", "nightly", "--queue", "{bigtables:2}"))
	expectEqualText(t, "unchanged  nightly\n", d.do("policy", "put", "-"))
}

func TestAQueueOfSeveralPartsLivesInACluster(t *testing.T) {
	long.Only(t)
	t.Parallel()
	server := testkit.Cluster(t)
	d := divide(t, server, 8)
	d.policy(nightlyYAML)
	d.in = sixteen()
	expectContains(t, d.do("model", "put", "-"), "16 models: 16 created")
	d.do("model", "run", "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7")
	d.start()
	d.do("model", "disable", "m0")
	d.do("circuit", "set", "queue", "--on")
	expectContains(t, d.do("stats"), "parts            8\n", "counted create   16\n", "running          7 ")
	expectContains(t, d.do("model", "history", "m0"), "superseded")
	expectContains(t, d.do("explain", "m1"), "In line for a worker")
	d.fail(exitFailed, "policy", "rm", "nightly")
	d.do("model", "rm", "m8", "m9")
	expectContains(t, d.do("doctor"), "bigtables: 14 models, 0 errors, ")
	expectContains(t, d.fail(exitUsage, "stats", "--queue", "other"), `queue: expected braces on Redis Cluster as in "{other}", found "other"`)
}

// TestAQueueOfSeveralPartsRunsUnderTheUsersThatACLPrints lets every part of refreshd run as its own user, and wants that Redis has refused
// nothing.
func TestAQueueOfSeveralPartsRunsUnderTheUsersThatACLPrints(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := stage{fixture.WithUsersOfParts(t, "bigtables"), t}
	s.as(acl.Operator).do("queue", "create", "--parts", "3")
	for _, daemon := range []*background{s.as(acl.Dispatcher).start("dispatcher"), s.as(acl.Poller).start("poller")} {
		defer s.stop(daemon)
	}
	application := s.Client(t, acl.Application)
	for i := range 9 { // each to a part that need not be its own
		command := fmt.Sprintf(`{"type":"put","uid":"m%d","refresh":"now","policy":{"timeout":"1m"}}`, i)
		must(t, application.RPush(t.Context(), fmt.Sprintf("{bigtables:%d}-control", i%3), command).Err())
	}
	s.await(acl.Viewer, `"start": 9`, "stats", "-o", "json") // a worker may not load the scripts
	defer s.stop(s.as(acl.Worker).start("worker", "--exec", "true", "--grace", "0"))
	s.await(acl.Viewer, `"success": 9`, "stats", "-o", "json")
	operator := s.as(acl.Operator)
	operator.do("policy", "put", file(t, "p.yaml", nightlyYAML))
	operator.do("circuit", "set", "queue", "--on")
	operator.do("model", "run", "m0", "m1", "m2", "m3", "--force")
	operator.do("model", "rm", "m4", "m5")
	for _, role := range []acl.Role{acl.Operator, acl.Viewer} {
		s.as(role).do("stats", "--queue", "{bigtables:2}")
		expectContains(t, s.as(role).do("doctor"), "bigtables: 7 models, 0 errors, ")
	}
	s.ExpectNoRefusal(t)
}
