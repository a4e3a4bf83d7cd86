package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/queuetest"
	"github.com/refreshd/refreshd/internal/redistest"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

const twoModels = `
uid: daily
payload: {input_url: "https://example.com/feed.csv"}
rrule: FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0
timezone: Europe/Berlin
dtstart: 2026-01-01T00:00:00
policy: {timeout: 1h, retries: [0, 1m], on_exhausted: give_up}
---
uid: once
`

func TestASavedModelIsReadBackWithAllFields(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		c := at(t, server)
		c.in = twoModels
		expectContains(t, c.do("model", "put", "-"), "created    daily\n", "created    once\n", "2 models: 2 created, 0 updated, 0 unchanged, 0 refused\n")
		got := c.object("model", "get", "daily")
		for _, computed := range []string{"refresh_at", "planned_at", "rev"} {
			if got[computed] == nil {
				t.Errorf("expected %s, found nothing", computed)
			}
			delete(got, computed)
		}
		want := map[string]any{
			"uid": "daily", "status": "scheduled", "refresh_why": "planned",
			"attempt_uid": "", "attempt_no": 0.0, "started_at": nil, "deadline_at": nil, "processing_at": nil, "worker": "", "again": false,
			"refresh_disabled_until_update": false, "refresh_disabled_user_friendly_reason": "",
			"user_friendly_status": "", "progress": 0.0,
			"last_success_at": nil, "failing_since": nil, "final_failure_at": nil, "last_attempt_uid": "", "deferrals": 0.0,
			"rrule": "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "timezone": "Europe/Berlin", "dtstart": "2026-01-01T00:00:00",
			"policy": got["policy"],
			"policy_definition": map[string]any{
				"timeout": "1h", "retries": []any{"0s", "1m"}, "alignment": "align_planned", "on_exhausted": "give_up",
			},
			"payload": map[string]any{"input_url": "https://example.com/feed.csv"},
			"fault":   "",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if name := fmt.Sprint(got["policy"]); !strings.HasPrefix(name, "inline-") {
			t.Errorf("expected a policy named by its content, found %s", name)
		}
		expectContains(t, c.do("model", "get", "once"), "due: waits for a dispatcher", "saved: refresh now", "default {")
	})
}

func TestASecondSaveChangesNothing(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		c := at(t, server)
		c.in = twoModels
		c.do("model", "put", "-")
		before := server.Dump(t)
		expectContains(t, c.do("model", "put", "-"), "2 models: 0 created, 0 updated, 2 unchanged, 0 refused\n")
		if diff := cmp.Diff(before, server.Dump(t)); diff != "" {
			t.Error(diff)
		}
		c.in = strings.Replace(twoModels, "feed.csv", "other.csv", 1)
		expectContains(t, c.do("model", "put", "-"), "updated    daily\n", "unchanged  once\n")
	})
}

func TestABadDocumentHarmsItselfOnly(t *testing.T) {
	c := at(t, redistest.Miniredis(t))
	path := file(t, "models.yaml", "uid: a\n---\nuid: b\nrrule: FREQ=NEVER\n---\nuid: c\npolicy: nightly\n---\nuid: d\n---\nuid: [e]\n")
	code, stdout, stderr := c.run("model", "put", path, "-o", "json")
	if code != exitFailed {
		t.Errorf("expected exit code 1, found %d", code)
	}
	var results []string
	for _, told := range c.objects(stdout) {
		results = append(results, fmt.Sprint(told["uid"], " ", told["result"]))
	}
	if diff := cmp.Diff([]string{"a created", "b refused", "c refused", "d created", " refused"}, results); diff != "" {
		t.Error(diff)
	}
	expectContains(t, stderr,
		"models.yaml line 4: rrule FREQ: expected",
		`models.yaml line 7: policy: expected a policy, or the name of a stored one (default), found "nightly"`,
		"models.yaml line 11: uid: expected a text, found a list")
}

func TestAFileCutOffInTheMiddleSavesNothing(t *testing.T) {
	server := redistest.Miniredis(t)
	c := at(t, server)
	for _, text := range []string{"uid: a\n---\nuid: \"b\n", `[{"uid":"a"},{"uid":"b"`} {
		c.in = text
		c.fail(exitFailed, "model", "put", "-")
		if dump := server.Dump(t); len(dump) > 0 {
			t.Errorf("expected nothing saved, found %v", dump)
		}
	}
}

func TestJSONLinesAreSavedWhileTheyAreRead(t *testing.T) {
	c := at(t, redistest.Miniredis(t))
	in, send := io.Pipe()
	told, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"model", "put", "-", "--format", "jsonl"}, in, out, io.Discard, c.lookup)
		_ = out.Close()
	}()
	for i := range batchSize {
		fmt.Fprintf(send, "{\"uid\":\"m%d\"}\n", i)
	}
	first := make([]byte, len("created    m0\n"))
	if _, err := io.ReadFull(told, first); err != nil || string(first) != "created    m0\n" {
		t.Fatalf("expected the first model saved while the input is open, found %q, %v", first, err)
	}
	go func() {
		fmt.Fprintln(send, `{"uid":"last"}`)
		_ = send.Close()
	}()
	rest, err := io.ReadAll(told)
	if code := <-ended; code != exitDone || err != nil {
		t.Fatalf("expected exit code 0, found %d, %v", code, err)
	}
	expectContains(t, string(rest), "created    last\n", fmt.Sprintf("%d models: %[1]d created", batchSize+1))
}

func TestAModelSavedTwiceInOneFileEndsAsTheLast(t *testing.T) {
	c := at(t, redistest.Miniredis(t))
	c.in = `[{"uid":"a","payload":{"n":1}},{"uid":"b"},{"uid":"a","payload":{"n":2}}]`
	expectContains(t, c.do("model", "put", "-"), "created    a\ncreated    b\nupdated    a\n")
	if diff := cmp.Diff(map[string]any{"n": 2.0}, c.object("model", "get", "a")["payload"]); diff != "" {
		t.Error(diff)
	}
}

func TestModelsAreSteered(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		c := at(t, server)
		c.in = twoModels
		c.do("model", "put", "-")
		status := func(uid, want string) {
			t.Helper()
			if got := c.object("model", "get", uid)["status"]; got != want {
				t.Errorf("expected %s to be %s, found %s", uid, want, got)
			}
		}
		expectContains(t, c.do("model", "disable", "daily", "--reason", "The owner is away"), "disabled   daily\n")
		status("daily", "disabled")
		expectContains(t, c.do("model", "get", "daily"), "disabled until the next update: The owner is away")
		expectContains(t, c.do("model", "disable", "daily", "--reason", "The owner is away"), "unchanged  daily\n")
		expectContains(t, c.do("model", "enable", "daily"), "enabled    daily\n")
		status("daily", "scheduled")
		expectContains(t, c.do("model", "run", "daily"), "run        daily\n")
		status("daily", "due")
		expectContains(t, c.do("model", "rm", "daily"), "removed    daily\n")
		for _, command := range []string{"get", "rm", "run", "enable", "disable", "history"} {
			stderr := c.fail(exitFailed, "model", command, "daily")
			expectContains(t, stderr, "refreshd: daily: expected the uid of a stored model, found none of that name")
		}
		expectContains(t, c.fail(exitFailed, "model", "rm", "daily", "once"), "daily: expected")
		expectContains(t, c.fail(exitFailed, "model", "get", "once"), "once: expected")
	})
}

// start lets a dispatcher do one round.
func start(t *testing.T, rig *queuetest.Rig) {
	t.Helper()
	due, err := rig.Store.ReadDue(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	records, err := rig.Store.Load(t.Context(), due.Due)
	if err != nil {
		t.Fatal(err)
	}
	var transitions []*scripts.Transition
	for _, uid := range due.Due {
		transitions = append(transitions, records[uid].Decide(records[uid].Start(due.Now, "attempt-of-"+uid), due.Now))
	}
	if _, err := rig.Store.Apply(t.Context(), transitions, "", 100, due.Now); err != nil {
		t.Fatal(err)
	}
}

func TestARunIsRefusedWhileAnAttemptIsQueuedOrRunning(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		c, rig := at(t, server), queuetest.Live(t, server)
		c.in = "uid: a\n"
		c.do("model", "put", "-")
		start(t, rig)
		if got := c.object("model", "get", "a")["status"]; got != "queued" {
			t.Errorf("expected queued, found %s", got)
		}
		refused := "a: expected an idle model, found an attempt queued or running; --force supersedes it"
		expectContains(t, c.fail(exitFailed, "model", "run", "a"), refused)
		if _, found := rig.Take(); !found {
			t.Fatal("expected an attempt in the input list")
		}
		if got := c.object("model", "get", "a")["status"]; got != "processing" {
			t.Errorf("expected processing, found %s", got)
		}
		expectContains(t, c.fail(exitFailed, "model", "run", "a"), refused)
		expectContains(t, c.do("model", "run", "a", "--force"), "run        a\n")
		if got := c.object("model", "get", "a"); got["status"] != "due" || got["last_attempt_uid"] != "attempt-of-a" {
			t.Errorf("expected the attempt superseded, found %v", got)
		}
	})
}

func TestACommandTakesBackTheQueuedAttemptThatItSupersedes(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		c, rig := at(t, server), queuetest.Live(t, server)
		c.in = "- uid: a\n- uid: b\n- uid: c\n- uid: d\n"
		c.do("model", "put", "-")
		start(t, rig)
		c.do("model", "run", "a", "--force")
		c.do("model", "disable", "b")
		c.do("model", "rm", "c")
		left := rig.List(rig.Store.Keys.Input())
		if len(left) != 1 || model.InputUID(left[0]) != "attempt-of-d" {
			t.Errorf("expected only the attempt of d in the input list, found %v", left)
		}
	})
}

func TestModelsAreListed(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		c := at(t, server)
		c.env["REFRESHD_QUEUE"] = "{shop:1}"
		var text strings.Builder
		for i := range 450 {
			fmt.Fprintf(&text, "{\"uid\":\"tbl_%d\"}\n", i)
		}
		c.in = text.String() + "{\"uid\":\"a\"}\n{\"uid\":\"once\"}\n"
		c.do("model", "put", "-")
		c.do("model", "disable", "a", "--reason", "No feed")
		other := at(t, server)
		other.in = "uid: of-another-queue\n"
		other.do("model", "put", "-")

		list := func(args ...string) []string {
			t.Helper()
			var uids []string
			for _, object := range c.objects(c.do(append([]string{"model", "ls", "-o", "json"}, args...)...)) {
				uids = append(uids, fmt.Sprint(object["uid"]))
			}
			slices.Sort(uids)
			return uids
		}
		if all := list(); len(all) != 452 || len(slices.Compact(all)) != 452 {
			t.Errorf("expected 452 models, each once, found %d", len(all))
		}
		for name, test := range map[string]struct{ got, want []string }{
			"by status":                 {list("--status", "disabled"), []string{"a"}},
			"by prefix":                 {list("--prefix", "o"), []string{"once"}},
			"a prefix is no pattern":    {list("--prefix", "*"), nil},
			"nor a set of characters":   {list("--prefix", "[ao]"), nil},
			"by both":                   {list("--prefix", "o", "--status", "disabled"), nil},
			"in a queue with no models": {list("--queue", "shop"), nil},
		} {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if got := list("--limit", "250"); len(got) != 250 {
			t.Errorf("expected 250 models, found %d", len(got))
		}
		expectContains(t, c.do("model", "ls", "--status", "disabled"), "UID  ", "a  ", "disabled", "No feed")
	})
}

func TestHistoryShowsWhatEnded(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		c, rig := at(t, server), queuetest.Live(t, server)
		c.in = "uid: a\n"
		c.do("model", "put", "-")
		if got := c.do("model", "history", "a", "-o", "json"); got != "" {
			t.Errorf("expected no attempts, found %s", got)
		}
		start(t, rig)
		c.do("model", "disable", "a", "--reason", "by\x1b[2J hand")
		got := c.objects(c.do("model", "history", "a", "-o", "json"))
		if len(got) != 1 || got[0]["outcome"] != "disable" || got[0]["attempt_uid"] != "attempt-of-a" {
			t.Fatalf("expected the superseded attempt, found %v", got)
		}
		want := []string{"attempt_no", "attempt_uid", "changed", "duration_ms", "ended_at", "error_type", "final", "outcome", "reason",
			"refresh_at", "refresh_why", "started_at", "worker"}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got[0]))); diff != "" {
			t.Error(diff)
		}
		expectContains(t, c.do("model", "history", "a"), "ENDED AT", "disable", "superseded: disabled by hand")
	})
}

func TestTextsFromOutsideCannotSteerATerminal(t *testing.T) {
	server := redistest.Miniredis(t)
	c, rig := at(t, server), queuetest.Live(t, server)
	c.in = "uid: a\n"
	c.do("model", "put", "-")
	rig.Redis.HSet(t.Context(), rig.Store.Keys.Model("a"), "refresh_why", "x\x1b[2Jy\nz", "user_friendly_status", "\u202Ework")
	for _, command := range []string{"get a", "ls"} {
		if text := c.do(strings.Fields("model " + command)...); strings.ContainsAny(text, "\x1b\u202E") || strings.Contains(text, "y\nz") {
			t.Errorf("expected no control characters, found %q", text)
		}
	}
}

func TestAModelWithAFaultIsShown(t *testing.T) {
	server := redistest.Miniredis(t)
	c, rig := at(t, server), queuetest.Live(t, server)
	c.in = twoModels
	c.do("model", "put", "-")
	rig.Redis.HSet(t.Context(), rig.Store.Keys.Model("daily"), "rrule", "FREQ=NEVER", "rev", "x")
	rig.Redis.Set(t.Context(), rig.Store.Keys.Payload("daily"), "{", 0)
	rig.Redis.Set(t.Context(), rig.Store.Keys.Model("list"), "no hash", 0)
	got := c.object("model", "get", "daily")
	if fault := fmt.Sprint(got["fault"]); !strings.Contains(fault, "FREQ") || got["payload"] != nil {
		t.Errorf("expected the fault told and no payload, found %v", got)
	}
	expectContains(t, c.do("model", "get", "list"), "fault", "WRONGTYPE")
	expectContains(t, c.do("model", "ls"), "daily", "list", "once")
	expectContains(t, c.fail(exitFailed, "model", "run", "list"), "expected the key of the model to hold a model, found something else")
}

func TestStatsCountsWhatTheQueueHolds(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		c, rig := at(t, server), queuetest.Live(t, server)
		c.in = twoModels + "---\nuid: taken\n"
		c.do("model", "put", "-")
		c.do("model", "disable", "once")
		start(t, rig)
		c.do("model", "run", "daily")
		c.do("model", "enable", "once")
		c.do("model", "disable", "daily")
		rig.Say("{}", "{}", "{}")
		if _, _, err := rig.Store.Claim(t.Context(), "me", 2); err != nil {
			t.Fatal(err)
		}
		rig.Command("{}")
		got := c.object("stats")
		if _, err := time.Parse(time.RFC3339, fmt.Sprint(got["at"])); err != nil {
			t.Error(err)
		}
		delete(got, "at")
		want := map[string]any{
			"queue": "bigtables", "due": 1.0, "waiting": 0.0, "running": 1.0, "input": 1.0, "output": 1.0, "control": 1.0, "claimed": 2.0,
			"rejected": 0.0, "journal": 8.0, "outbox": 0.0,
			"counters": map[string]any{"create": 3.0, "disable": 2.0, "enable": 1.0, "run": 1.0, "start": 1.0},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		expectContains(t, c.do("stats"), "claimed", "counted create", "3")
	})
}

// meddler is a queue in which somebody else changes the model after it was read.
type meddler struct {
	*scripts.Store
	times  int
	meddle func()
}

func (m *meddler) Apply(ctx context.Context, transitions []*scripts.Transition, owner string, maxQueued int, now time.Time) ([]scripts.Code, error) {
	if m.times > 0 {
		m.times--
		m.meddle()
	}
	return m.Store.Apply(ctx, transitions, owner, maxQueued, now)
}

func TestACommandIsDecidedAgainWhenItsModelHasChanged(t *testing.T) {
	for name, test := range map[string]struct {
		times int
		want  string
	}{
		"once":            {1, resultUpdated},
		"again and again": {maxPasses, resultRefused},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Redis(t)
			c, rig := at(t, server), queuetest.Live(t, server)
			c.in = `[{"uid":"a"},{"uid":"still"}]`
			c.do("model", "put", "-")
			other := &meddler{rig.Store, test.times, func() {
				c.do("model", "disable", "a", "--reason", "now")
				c.do("model", "enable", "a")
			}}
			var orders []*order
			for _, text := range []string{`{"uid":"a","payload":{"n":1}}`, `{"uid":"still","payload":{"n":1}}`, `{"uid":"a","payload":{"n":1}}`} {
				orders = append(orders, (&document{}).orderJSON([]byte(text)))
			}
			if err := obey(t.Context(), other, orders); err != nil {
				t.Fatal(err)
			}
			if orders[0].result != test.want || orders[1].result != resultUpdated {
				t.Errorf("found %s %v and %s %v", orders[0].result, orders[0].refused, orders[1].result, orders[1].refused)
			}
			if want := map[string]string{resultUpdated: resultUnchanged, resultRefused: resultRefused}[test.want]; orders[2].result != want {
				t.Errorf("expected what was decided on top to be %s, found %s", want, orders[2].result)
			}
		})
	}
}
