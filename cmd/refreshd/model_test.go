package main

import (
	"fmt"
	"os/user"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
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
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		c.in = twoModels
		expectContains(t, c.do("model", "put", "-", "--verbose"), "created    daily\n", "created    once\n", "2 models: 2 created, 0 updated, 0 unchanged, 0 refused\n")
		got := c.object("model", "get", "daily")
		for _, computed := range []string{"refresh_at", "planned_at", "rev"} {
			failIf(t, got[computed] == nil, "expected %s, found nothing", computed)
			delete(got, computed)
		}
		want := map[string]any{
			"uid": "daily", "status": "scheduled", "refresh_why": "planned",
			"attempt_uid": "", "attempt_no": 0.0, "started_at": nil, "deadline_at": nil, "processing_at": nil, "worker": "", "again": false,
			"refresh_disabled_until_update": false, "refresh_disabled_user_friendly_reason": "",
			"user_friendly_status": "", "progress": 0.0,
			"last_success_at": nil, "freshness": "", "stale_at": nil, "fresh_since": nil, "failing_since": nil, "final_failure_at": nil, "last_attempt_uid": "", "deferrals": 0.0, "deaths": 0.0,
			"trying_since": nil, "gives_up_at": nil, "host": "example.com",
			"total_retries": 0.0, "successful_retries": 0.0, "retried_cycles": 0.0, "retry_success_rate": nil,
			"rrule": "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "timezone": "Europe/Berlin", "dtstart": "2026-01-01T00:00:00",
			"policy": got["policy"],
			"policy_definition": map[string]any{
				"timeout": "1h", "retries": []any{"0s", "1m"}, "alignment": "align_planned", "on_exhausted": "give_up",
			},
			"payload": map[string]any{"input_url": "https://example.com/feed.csv"},
			"fault":   "", "rejected": nil, "labels": map[string]any{},
			"missing": nil, "not_before": nil, "outdated": false, "phase": "", "parked_by": "", "parked_since": nil, "reserved": []any{}, "counted_by": []any{}, "refresh_for": "planned", "refresh_disabled_by": "", "refresh_disabled_who": "",
		}
		equal(t, want, got)
		name := fmt.Sprint(got["policy"])
		failIf(t, !strings.HasPrefix(name, "inline-"), "expected a policy named by its content, found %s", name)
		expectContains(t, c.do("model", "get", "once"), "due", "saved: refresh now", "default {")
	})
}

func TestModelsAreSteered(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		c.put(twoModels)
		status := func(uid, want string) {
			t.Helper()
			got := c.object("model", "get", uid)["status"]
			failIf(t, got != want, "expected %s to be %s, found %s", uid, want, got)
		}
		expectContains(t, c.do("model", "disable", "daily", "--reason", "The owner is away"), "disabled   daily\n")
		status("daily", "disabled")
		expectContains(t, c.do("model", "get", "daily"), "The owner is away")
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

func start(t *testing.T, q *fixture.Queue) {
	t.Helper()
	due := check.Got(q.Store.ReadDue(t.Context(), store.DueRequest{Limit: 100}))(t)
	uids := slices.Concat(due.Urgent, due.Due)
	records := check.Got(q.Store.Load(t.Context(), uids))(t)
	var transitions []*store.Transition
	for _, uid := range uids {
		transitions = append(transitions, records[uid].Decide(records[uid].Start(due.Now, "attempt-of-"+uid), due.Now))
	}
	q.Commit(due.Now, transitions...)
}

func TestARunIsRefusedWhileAnAttemptIsQueuedOrRunning(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, q := at(t, server), fixture.Live(t, server)
		c.put("uid: a\n")
		start(t, q)
		for _, status := range []string{"queued", "processing"} {
			got := c.object("model", "get", "a")["status"]
			failIf(t, got != status, "expected %s, found %s", status, got)
			expectContains(t, c.fail(exitFailed, "model", "run", "a"), "a: an attempt is queued or running. To replace it: refreshd model run a --force")
			q.Take()
		}
		expectContains(t, c.do("model", "run", "a", "--force"), "run        a\n")
		got := c.object("model", "get", "a")
		failIf(t, got["status"] != "due" || got["attempt_uid"] != "" || got["last_attempt_uid"] != "", "expected the attempt superseded, found %v", got)

		c.put("- uid: b\n- uid: c\n- uid: d\n- uid: e\n") // the new command takes the queued attempts back
		start(t, q)
		c.do("model", "run", "a", "b", "--force")
		c.do("model", "disable", "c")
		c.do("model", "rm", "d")
		left := q.List(q.Store.Keys.Input)
		failIf(t, len(left) != 1 || !strings.Contains(left[0], `"refresh_attempt_uid":"attempt-of-e"`),
			"expected only the attempt of e in the input list, found %v", left)
	})
}

func TestTheJournalNamesWhoUsedTheCommandLine(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		c.put("uid: m1")
		c.do("model", "run", "m1", "--by", "ann")
		c.env["REFRESHD_BY"] = "night shift"
		c.do("model", "disable", "m1")
		c.do("model", "enable", "m1", "--by", strings.Repeat("x", 60))
		c.do("model", "rm", "m1")
		expectContains(t, c.fail(exitUsage, "model", "run", "m1", "--by", strings.Repeat("x", 61)), "by: expected at most 60 bytes on one line, found ")
		entries, _, err := report.Of(fixture.New(t, server).Store).Tail(t.Context(), report.TailStart)
		me, failed := user.Current()
		stopIf(t, err != nil || failed != nil || len(entries) != 5, "expected five entries, found %+v, %v, %v", entries, err, failed)
		for i, want := range []string{me.Username, "ann", "night shift", strings.Repeat("x", 60), "night shift"} {
			failIf(t, entries[i].By != want, "%s: expected %q, found %q", entries[i].Event, want, entries[i].By)
		}
	})
}

func TestAKeyOfAWrongTypeIsBrokenAndTellsWhatItIs(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, redis := at(t, server), server.Client(t)
		c.put(twoModels)
		redis.Set(t.Context(), "bigtables:model:text", "x", 0)
		redis.RPush(t.Context(), "bigtables:model:list", "x")
		expectContains(t, c.do("model", "ls", "--status", "broken"), "text", "list", "broken", "expected a hash, found a string", "expected a hash, found a list")
		listed := c.objects(c.do("model", "ls", "-o", "json", "--status", "finished"))
		failIf(t, len(listed) != 0, "want no finished model, got %v", listed)
		got := c.object("model", "get", "text")
		failIf(t, got["status"] != "broken" || got["fault"] != "key: expected a hash, found a string", "want it broken, got %v", got)
		expectContains(t, c.do("model", "get", "list"), "broken")
		expectContains(t, c.do("explain", "list"), "refreshd doctor")
		expectContains(t, c.fail(exitFailed, "model", "run", "list"), "bigtables:model:list holds a list, expected a hash")

		redis.HSet(t.Context(), "bigtables:model:daily", "rrule", "FREQ=NEVER", "rev", "x")
		redis.Set(t.Context(), "bigtables:payload:daily", "{", 0)
		got = c.object("model", "get", "daily")
		failIf(t, !strings.Contains(fmt.Sprint(got["fault"]), "FREQ") || got["payload"] != nil, "expected the fault told and no payload, found %v", got)
		redis.HSet(t.Context(), "bigtables:model:once", "refresh_why", "x\x1b[2Jy\nz", "user_friendly_status", "\u202Ework")
		for _, command := range []string{"get once", "ls"} {
			text := c.do(line("model " + command)...)
			failIf(t, strings.ContainsAny(text, "\x1b\u202E") || strings.Contains(text, "y\nz"), "expected no control characters, found %q", text)
		}
	})
}
