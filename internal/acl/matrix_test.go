package acl_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/acl"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/scripts"
)

// probes are ways to look at a key, to add to it, to take from it and to destroy it, by the letter of the matrix below.
var probes = map[string]map[string]string{
	"list":   {"r": "LRANGE %s 0 -1", "a": "RPUSH %s x", "p": "LPUSH %s x", "t": "LPOP %s", "m": "LMOVE %s %[1]s LEFT LEFT", "w": "BLMOVE %s %[1]s LEFT LEFT 1", "c": "LREM %s 1 x", "d": "DEL %s"},
	"hash":   {"r": "HGETALL %s", "f": "HMGET %s x", "a": "HSET %s f v", "c": "HDEL %s f", "d": "DEL %s"},
	"zset":   {"r": "ZRANGEBYSCORE %s 0 1", "s": "ZSCAN %s 0", "a": "ZADD %s 1 m", "c": "ZREM %s m", "d": "DEL %s"},
	"stream": {"r": "XRANGE %s - +", "a": "XADD %s * f v", "g": "XREADGROUP GROUP g c STREAMS %s >", "c": "XTRIM %s MAXLEN 0", "d": "DEL %s"},
	"set":    {"s": "SSCAN %s 0", "a": "SADD %s m", "c": "SREM %s m", "d": "DEL %s"},
	"string": {"r": "GET %s", "a": "SET %s v", "d": "DEL %s"},
}

// everyKey is one key of each kind with its type.
var everyKey = map[string]string{
	"q-input": "list", "q-output": "list", "q-control": "list", "q:model:m": "hash", "q:payload:m": "string", "q:history:m": "list",
	"q:due": "zset", "q:running": "zset", "q:policies": "hash", "q:policy_uses": "hash", "q:claimed:p": "list", "q:pollers": "zset", "q:taken:w": "list", "q:workers": "zset",
	"q:journal": "stream", "q:created": "stream", "q:outbox": "stream", "q:rejected": "list", "q:stats": "hash", "q:brake": "hash", "q:wake": "list",
	"q:claimed:control": "list", "q:holder": "string", "q:forwarded": "hash", "q:commands": "zset", "q:reply:r": "list", "q:bulk:x": "hash", "q:bulks": "zset", "q:bulks_ended": "zset", "q:front": "list", "q:errors": "zset", "q:past_errors": "zset", "q:error:x": "hash",
	"q:failing": "zset", "q:disabled": "zset", "q:parked": "zset", "q:label:tenant=t1": "set", "q:gates": "zset", "q:parked:hold:h1": "zset", "q:holds": "hash", "q:limits": "hash",
	"q:calendars": "hash", "q:limit:host=h": "zset", "q:rate:host=h": "string", "q:circuit:host=h": "hash", "q:circuit:queue": "hash",
	"q:recipients:ops": "zset", "q:notices:ops": "list", "q:deliveries": "hash", "q:undelivered": "list", "q:told:ops": "list",
}

// matrix says for each role what it may do with each key: r read all, f read fields it knows, s scan, a add or set, p push in front,
// t take the first, m move, w wait, c cut out, d delete. A key that is not named may not be touched in any of these ways.
var matrix = map[acl.Role]map[string]string{
	acl.Dispatcher: {
		"q:errors": "c", "q:past_errors": "ac", "q:error:x": "ad",
		"q-input": "acr", "q:holder": "r", "q:model:m": "acdfr", "q:payload:m": "dr", "q:history:m": "dp", "q:due": "acr", "q:running": "acr", "q:policies": "f",
		"q:journal": "ac", "q:outbox": "acr", "q:stats": "cr", "q:circuit:queue": "acf", "q:brake": "df", "q:wake": "a", "q:front": "adpr",
		"q:calendars": "r", "q:circuit:host=h": "acf", "q:disabled": "ac", "q:failing": "ac", "q:gates": "acr", "q:holds": "cr", "q:label:tenant=t1": "ac", "q:limit:host=h": "ac", "q:limits": "cr",
		"q:parked": "ac", "q:parked:hold:h1": "ac", "q:rate:host=h": "ar",
	},
	acl.Poller: {
		"q:errors": "c", "q:past_errors": "ac", "q:error:x": "ad",
		"q-input": "cr", "q-output": "atw", "q-control": "atw", "q:claimed:control": "acmr", "q:holder": "ar", "q:model:m": "acdfr", "q:payload:m": "adr", "q:history:m": "dp", "q:due": "ac", "q:running": "acs",
		"q:policies": "cf", "q:policy_uses": "ac", "q:claimed:p": "acmr", "q:pollers": "acr", "q:journal": "ac", "q:created": "ac", "q:outbox": "ar", "q:rejected": "acr", "q:bulk:x": "acfr", "q:bulks": "c", "q:bulks_ended": "a", "q:circuit:queue": "f", "q:stats": "r", "q:wake": "a",
		"q:commands": "ac", "q:reply:r": "a", "q:holds": "a",
		"q:circuit:host=h": "acf", "q:disabled": "acs", "q:failing": "acs", "q:gates": "a", "q:label:tenant=t1": "acs", "q:limit:host=h": "ac", "q:parked": "acs", "q:parked:hold:h1": "ac", "q:rate:host=h": "ar",
	},
	acl.Worker: {"q-input": "mw", "q-output": "a", "q:model:m": "f", "q:taken:w": "cmr", "q:workers": "acr"},
	acl.Notifier: { // and XACK
		"q:model:m": "r", "q:payload:m": "r", "q:policies": "f", "q:circuit:queue": "f", "q:outbox": "g",
		"q:recipients:ops": "acr", "q:notices:ops": "ar", "q:deliveries": "ac", "q:undelivered": "a", "q:told:ops": "a",
	},
	acl.Subscriber:    {"q:outbox": "g", "q:told:ops": "t"}, // and XACK
	acl.ForeignWorker: {"q-input": "t", "q-output": "a"},    // and HGET of a fence
	acl.Application:   {"q-control": "a", "q:reply:r": "rt"},
	acl.Operator: {
		"q:errors": "acrs", "q:past_errors": "acrs", "q:error:x": "adfr",
		"q-input": "cr", "q-output": "ar", "q-control": "ar", "q:claimed:control": "r", "q:holder": "r", "q:model:m": "acdfr", "q:payload:m": "adr", "q:history:m": "dpr", "q:due": "acrs", "q:running": "acrs",
		"q:policies": "acfr", "q:policy_uses": "acfr", "q:claimed:p": "r", "q:pollers": "ars", "q:taken:w": "cmr", "q:workers": "acrs", "q:journal": "acr", "q:created": "acr", "q:outbox": "ar",
		"q:rejected": "cr", "q:stats": "cfr", "q:circuit:queue": "acfr", "q:brake": "fr", "q:wake": "ar", "q:bulk:x": "acdfr", "q:bulks": "acrs", "q:bulks_ended": "acrs", "q:forwarded": "fr", "q:commands": "crs", "q:reply:r": "r", "q:front": "r",
		"q:calendars": "acr", "q:circuit:host=h": "acfr", "q:disabled": "acrs", "q:failing": "acrs", "q:gates": "as", "q:holds": "ar", "q:label:tenant=t1": "acs", "q:limit:host=h": "acs", "q:limits": "acr",
		"q:recipients:ops": "ars", "q:notices:ops": "ar", "q:deliveries": "fr", "q:undelivered": "cr", "q:told:ops": "r",
		"q:parked": "acrs", "q:parked:hold:h1": "acs", "q:rate:host=h": "ar",
	},
	acl.Viewer: {
		"q:errors": "rs", "q:past_errors": "rs", "q:error:x": "fr",
		"q-input": "r", "q-output": "r", "q-control": "r", "q:claimed:control": "r", "q:holder": "r", "q:model:m": "fr", "q:payload:m": "r", "q:history:m": "r", "q:due": "rs", "q:running": "rs",
		"q:policies": "fr", "q:policy_uses": "fr", "q:claimed:p": "r", "q:pollers": "rs", "q:taken:w": "r", "q:workers": "rs", "q:journal": "r", "q:created": "r", "q:outbox": "r",
		"q:rejected": "r", "q:stats": "fr", "q:circuit:queue": "fr", "q:brake": "fr", "q:wake": "r", "q:bulk:x": "fr", "q:bulks": "rs", "q:bulks_ended": "rs", "q:forwarded": "fr", "q:commands": "rs", "q:reply:r": "r", "q:front": "r",
		"q:calendars": "r", "q:circuit:host=h": "fr", "q:disabled": "rs", "q:failing": "rs", "q:gates": "s", "q:holds": "r", "q:label:tenant=t1": "s", "q:limit:host=h": "s", "q:limits": "r",
		"q:recipients:ops": "rs", "q:notices:ops": "r", "q:deliveries": "fr", "q:undelivered": "r", "q:told:ops": "r",
		"q:parked": "rs", "q:parked:hold:h1": "s", "q:rate:host=h": "r",
	},
}

// may reports whether a user may do what a command says.
func may(t *testing.T, admin redis.UniversalClient, user, command string) bool {
	t.Helper()
	words := []any{"ACL", "DRYRUN", user}
	for _, word := range strings.Fields(command) {
		words = append(words, word)
	}
	answer, err := admin.Do(t.Context(), words...).Text()
	return err == nil && answer == "OK"
}

// rightsOn is what a user may do with the keys of a queue, or a part of one, as in the matrix.
func rightsOn(t *testing.T, admin redis.UniversalClient, user, queue string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for key, kind := range everyKey {
		var letters []string
		for letter, probe := range probes[kind] {
			if may(t, admin, user, fmt.Sprintf(probe, queue+strings.TrimPrefix(key, "q"))) {
				letters = append(letters, letter)
			}
		}
		if slices.Sort(letters); len(letters) > 0 {
			got[key] = strings.Join(letters, "")
		}
	}
	return got
}

func TestEachRoleMayDoItsOwnWorkAndNobodyElses(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	admin := users.Server.Client(t)
	for _, role := range acl.Roles() {
		if diff := cmp.Diff(matrix[role], rightsOn(t, admin, string(role)+"-q", "q")); diff != "" {
			t.Errorf("%s may (-want +got):\n%s", role, diff)
		}
	}
}

// TestInEachPartARoleMayDoWhatItMayDoInAQueueOfOnePart allows for pollers, which number commands and forward them.
func TestInEachPartARoleMayDoWhatItMayDoInAQueueOfOnePart(t *testing.T) {
	users := fixture.WithUsersOfParts(t, "q")
	admin := users.Server.Client(t)
	for _, role := range acl.Roles() {
		user, want := string(role)+"-q", maps.Clone(matrix[role])
		if role == acl.Poller {
			want["q-control"], want["q:forwarded"] = "atw", "a"
		}
		for _, part := range []string{"{q:0}", "{q:1023}"} {
			if diff := cmp.Diff(want, rightsOn(t, admin, user, part)); diff != "" {
				t.Errorf("%s may in %s (-want +got):\n%s", role, part, diff)
			}
		}
		for _, other := range []string{"{other:0}", "q", "{q}", "{qq:0}", "q:0"} {
			if got := rightsOn(t, admin, user, other); len(got) > 0 {
				t.Errorf("%s may in %s: %v", role, other, got)
			}
		}
	}
}

func TestEverybodyMayReadTheSettingsAndAnOperatorFixesThem(t *testing.T) {
	for name, users := range map[string]*fixture.Users{"one part": fixture.WithUsers(t, "q"), "several": fixture.WithUsersOfParts(t, "q")} {
		admin := users.Server.Client(t)
		for _, role := range acl.Roles() {
			user := string(role) + "-q"
			for command, want := range map[string]bool{
				"HGET {q}:settings parts": true, "HSETNX {q}:settings parts 8": role == acl.Operator,
				"HSET {q}:settings model_name x": role == acl.Operator, "HSET {other}:settings model_name x": false, "HDEL {q}:settings parts": false, "DEL {q}:settings": false,
				"HGET {other}:settings parts": false, "HSETNX {other}:settings parts 8": false, "HSETNX {q:0}:settings parts 8": false,
			} {
				if got := may(t, admin, user, command); got != want {
					t.Errorf("%s, %s: expected that it may %s: %t, found %t", name, role, command, want, got)
				}
			}
		}
	}
}

// everybody is what nobody may do, whoever asks.
var everybody = []string{
	"FLUSHALL", "FLUSHDB", "KEYS *", "CONFIG GET requirepass", "CONFIG SET dir /tmp", "CONFIG REWRITE", "ACL LIST", "ACL SETUSER x", "SHUTDOWN", "DEBUG SLEEP 1",
	"SCRIPT FLUSH", "SCRIPT KILL", "EVAL x 0", "EVAL_RO x 0", "EVAL x 1 q-input", "EVAL x 1 q:due", "EVAL x 1 q-output", "FCALL x 0", "FUNCTION LOAD x", "MONITOR", "CLIENT KILL TYPE normal", "CLIENT LIST", "REPLICAOF h 1", "SAVE", "BGREWRITEAOF", "SWAPDB 0 1", "PUBLISH c m",
	"SUBSCRIBE c", "MIGRATE h 1 q:due 0 1", "RENAME q:due q:x", "COPY q:due q:x", "DUMP q:model:m", "SORT q-input", "EXPIRE q:model:m 1", "RANDOMKEY",
	"GET other:payload:m", "HGETALL other:model:m", "LPOP other-input", "RPUSH other-output x", "RPUSH other-control x", "ZADD other:due 1 m", "GET q", "SET q:else x",
	"GET qq:payload:m", "HGETALL q2:model:m", "RPUSH q-outputs x", "EVAL x 1 other:due", "EVALSHA x 1 q:else", "EVAL_RO x 1 q:due",
}

func TestNobodyMayDoWhatEndangersTheServerOrAnotherQueue(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	admin := users.Server.Client(t)
	for _, role := range acl.Roles() {
		for _, command := range everybody {
			if may(t, admin, string(role)+"-q", command) {
				t.Errorf("%s may %s", role, command)
			}
		}
	}
}

func TestOnlyADispatcherAndAPollerMayLoadScripts(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	for _, role := range acl.Roles() {
		err := users.Client(t, role).ScriptLoad(t.Context(), "return 1").Err()
		if loads := role == acl.Dispatcher || role == acl.Poller; loads && err != nil || !loads && !scripts.Refused(err) {
			t.Errorf("%s: expected that it may load a script: %t, found %v", role, loads, err)
		}
	}
}

// TestAScriptMayDoNoMoreThanItsUser tries what a stolen password is good for beside that of a dispatcher: scripts of one's own.
func TestAScriptMayDoNoMoreThanItsUser(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	admin := users.Server.Client(t)
	admin.HSet(t.Context(), "q:model:m", "attempt_uid", "a1")
	admin.RPush(t.Context(), "q-output", "result")
	before := users.Server.Dump(t)
	tries := map[acl.Role][][2]string{
		acl.Worker: {
			{"q:model:m", "return redis.call('HSET', KEYS[1], 'attempt_uid', 'mine')"}, {"q:due", "return redis.call('ZADD', KEYS[1], 1, 'm')"},
			{"q-control", "return redis.call('RPUSH', KEYS[1], '{}')"}, {"q-output", "return redis.call('LPOP', KEYS[1])"},
			{"q-output", "return redis.call('LRANGE', KEYS[1], 0, -1)"}, {"q-input", "return redis.call('HSET', 'q:model:m', 'attempt_uid', 'mine')"},
			{"q-input", "return redis.call('HGETALL', 'q:model:m')"}, {"q-input", "return redis.call('RPUSH', KEYS[1], '{}')"},
		},
		acl.Dispatcher: {
			{"q:payload:m", "return redis.call('SET', KEYS[1], '{}')"}, {"q-input", "return redis.call('RPUSH', 'q-output', '{}')"},
			{"q-input", "return redis.call('LPOP', 'q-output')"}, {"q-input", "return redis.call('LPOP', KEYS[1])"},
			{"q:rejected", "return redis.call('RPUSH', KEYS[1], '{}')"}, {"q:claimed:", "return redis.call('LREM', KEYS[1], 1, 'x')"},
			{"q:claimed:p", "return redis.call('TYPE', KEYS[1])"},
		},
		acl.Poller: {
			{"q-input", "return redis.call('RPUSH', KEYS[1], '{}')"}, {"q-input", "return redis.call('LPOP', KEYS[1])"},
			{"q:due", "return redis.call('HSET', 'q:circuit:queue', 'on', '1')"}, {"q:due", "return redis.call('HSET', 'q:policies', 'x', '{}')"},
			{"q-output", "return redis.call('LRANGE', KEYS[1], 0, -1)"}, {"q:outbox", "return redis.call('DEL', KEYS[1])"},
		},
		acl.Operator: {
			{"q-input", "return redis.call('RPUSH', KEYS[1], '{}')"}, {"q-input", "return redis.call('LPOP', KEYS[1])"},
			{"q-input", "return redis.call('LMOVE', KEYS[1], 'q:taken:me', 'LEFT', 'RIGHT')"}, {"q:due", "return redis.call('LPOP', 'q-output')"},
		},
		acl.Viewer:        {{"q:due", "return redis.call('ZCARD', KEYS[1])"}, {"q:model:m", "return 1"}},
		acl.ForeignWorker: {{"q-input", "return redis.call('LPOP', KEYS[1])"}, {"q-output", "return 1"}},
		acl.Application:   {{"q-control", "return redis.call('RPUSH', KEYS[1], '{}')"}},
	}
	for _, role := range acl.Roles() {
		client := users.Client(t, role)
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatalf("%s: %v", role, err)
		}
		for _, try := range tries[role] {
			digest := admin.ScriptLoad(t.Context(), try[1]).Val()
			if err := client.EvalSha(t.Context(), digest, []string{try[0]}).Err(); err == nil || errors.Is(err, redis.Nil) || !scripts.Refused(err) {
				t.Errorf("%s: expected %s refused on %s, found %v", role, try[1], try[0], err)
			}
		}
	}
	if diff := cmp.Diff(before, users.Server.Dump(t)); diff != "" {
		t.Errorf("something was changed:\n%s", diff)
	}
}

func TestWhatAMonitorDrawsIsReadByADispatcherAPollerAndPeople(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	users.Server.Client(t).ZAdd(t.Context(), "q:gates", redis.Z{Score: 1, Member: "hold:h1"})
	for _, role := range acl.Roles() {
		client := users.Client(t, role)
		store, err := scripts.New(&scripts.Clients{Read: client, Write: client, Block: client}, scripts.Config{Queue: "q"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Gauges(t.Context())
		reads := slices.Contains([]acl.Role{acl.Dispatcher, acl.Poller, acl.Operator, acl.Viewer}, role)
		if reads && err != nil || !reads && !scripts.Refused(err) {
			t.Errorf("%s: found %v", role, err)
		}
	}
}

// workAfterAFlush is work of each role that runs scripts.
var workAfterAFlush = map[acl.Role]func(ctx context.Context, s *scripts.Store) error{
	acl.Dispatcher: func(ctx context.Context, s *scripts.Store) error {
		_, err := s.ReadDue(ctx, scripts.DueRequest{Limit: 1})
		return err
	},
	acl.Poller: func(ctx context.Context, s *scripts.Store) error {
		_, err := s.Claim(ctx, "p", 1, time.Second)
		return err
	},
	acl.Worker:   func(ctx context.Context, s *scripts.Store) error { _, _, err := s.Heartbeat(ctx, "w"); return err },
	acl.Operator: func(ctx context.Context, s *scripts.Store) error { return s.ProbeScripts(ctx) },
}

// TestABulkIsBegunByAnOperatorCarriedOutByAPollerAndSeenByAViewer walks each source: all models, a label and the sets of a status.
func TestABulkIsBegunByAnOperatorCarriedOutByAPollerAndSeenByAViewer(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	as := func(role acl.Role) *scripts.Store {
		client := users.Client(t, role)
		store, err := scripts.New(&scripts.Clients{Read: client, Write: client, Block: client}, scripts.Config{Queue: "q"})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	operator, daemon, viewer := as(acl.Operator), as(acl.Poller), as(acl.Viewer)
	if err := daemon.LoadScripts(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"", "tenant=t1", "status=failing", "status=disabled", "status=running", "status=parked", "uid=a", "status=queued"} {
		id := fmt.Sprint("x", i)
		var failed []error
		note := func(err error) { failed = append(failed, err) }
		selector, err := model.ParseSelector(text)
		note(err)
		_, err = operator.BeginBulk(t.Context(), id, model.Bulk{Action: model.BulkRun, Selector: selector})
		note(err)
		open, err := daemon.Bulks(t.Context())
		note(err)
		_, _, err = daemon.WalkModels(t.Context(), selector, scripts.WalkBegins, 1)
		note(err)
		_, err = daemon.Queued(t.Context())
		note(err)
		if len(open) != 1 {
			t.Fatalf("%q: expected one bulk, found %v, %v", text, open, errors.Join(failed...))
		}
		_, err = daemon.MoveBulk(t.Context(), &open[0], time.UnixMilli(1))
		note(err)
		_, err = operator.CancelBulk(t.Context(), id)
		note(err)
		_, err = viewer.EndedBulks(t.Context())
		note(err)
		note(viewer.EachSelected(t.Context(), selector, func([]string) error { return nil }))
		_, err = viewer.Behind(t.Context(), viewer.Keys.Failing(), scripts.Scored{}, 1)
		note(err)
		_, err = viewer.LastReasons(t.Context(), []string{"a"})
		note(err)
		if err := errors.Join(failed...); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestWhatKeepsModelsFromStartingIsSetByAnOperatorAndSeenByAViewer does what the commands do, under the users of both.
func TestWhatKeepsModelsFromStartingIsSetByAnOperatorAndSeenByAViewer(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	as := func(role acl.Role) *scripts.Store {
		client := users.Client(t, role)
		store, err := scripts.New(&scripts.Clients{Read: client, Write: client, Block: client}, scripts.Config{Queue: "q"})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	operator, daemon, viewer, now := as(acl.Operator), as(acl.Dispatcher), as(acl.Viewer), time.Now()
	calendar, err := schedule.ParseCalendar(map[string]any{"name": "nightly", "rrule": "FREQ=DAILY;BYHOUR=2", "dtstart": "2026-01-01T00:00:00", "for": "1h"})
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.LoadScripts(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, gate := t.Context(), model.NewGate(model.GateHold, "h1")
	change := func(s *scripts.Store) map[string]error {
		_, released := s.ReleaseHold(ctx, "h1", time.Minute, now)
		_, limited := s.RemoveLimit(ctx, "host=h", now)
		_, removed := s.RemoveCalendar(ctx, "nightly", now)
		_, closed := s.CloseCircuit(ctx, "host=h", "me", now)
		_, opened := s.OpenCircuit(ctx, "host=h", "me", "why", now, now)
		_, turned := s.OpenCircuit(ctx, "queue", "me", "", now, now)
		_, dropped := s.DropProbe(ctx, "host=h", "m", now)
		return map[string]error{
			"hold": s.PutHold(ctx, &model.Hold{ID: "h1", Since: now}), "release": released, "limit set": s.PutLimit(ctx, &model.Limit{Name: "host=h", Running: 1}, now),
			"limit rm": limited, "calendar put": s.PutCalendar(ctx, calendar, now), "calendar rm": removed,
			"circuit open": opened, "circuit open queue": turned, "circuit set": s.SetQueueCircuit(ctx, model.DefaultQueueCircuit(), "me"), "circuit close": closed, "doctor": errors.Join(dropped, s.LookAtGate(ctx, gate, now)),
		}
	}
	look := func(s *scripts.Store) map[string]error {
		_, unreadable, holds := s.Holds(ctx)
		_, gates := s.Gates(ctx)
		_, limits := s.Limits(ctx)
		_, uses := s.LimitUses(ctx)
		_, circuits := s.Circuits(ctx)
		_, queue := s.QueueCircuit(ctx)
		_, calendars := s.StoredCalendars(ctx)
		_, rooms := s.Rooms(ctx, []string{"host=h"}, []string{"host=h"}, now)
		_, parked := s.ParkedBy(ctx, []model.Gate{gate}, 1)
		_, counted := s.CountParked(ctx, gate)
		_, texts := s.SteeringTexts(ctx, now)
		_, state := s.GateState(ctx, gate, now)
		return map[string]error{
			"hold ls": errors.Join(holds, unreadable), "gates": gates, "limits": limits, "limit ls": uses, "circuit ls": errors.Join(circuits, queue), "calendar ls": calendars, "rooms": rooms,
			"parked": parked, "count": counted, "doctor": errors.Join(texts, state),
		}
	}
	// Before anything is there the viewer is refused, so that nothing is: what is not there is not asked for.
	for what, err := range change(viewer) {
		if err == nil && what != "release" {
			t.Errorf("viewer: expected %s refused", what)
		}
	}
	for name, all := range map[string]map[string]error{"operator changes": change(operator), "operator looks": look(operator), "viewer": look(viewer)} {
		for what, err := range all {
			if err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}

func TestAfterAScriptFlushEachRoleWorksAsSoonAsADispatcherOrAPollerDoes(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	admin := users.Server.Client(t)
	work := func(role acl.Role) error {
		client := users.Client(t, role)
		store, err := scripts.New(&scripts.Clients{Read: client, Write: client, Block: client}, scripts.Config{Queue: "q"})
		if err != nil {
			t.Fatal(err)
		}
		return workAfterAFlush[role](t.Context(), store)
	}
	for _, loader := range []acl.Role{acl.Dispatcher, acl.Poller} {
		if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		for _, role := range []acl.Role{acl.Worker, acl.Operator} {
			if err := work(role); !errors.Is(err, scripts.ErrNotLoaded) {
				t.Errorf("%s alone: expected %v, found %v", role, scripts.ErrNotLoaded, err)
			}
		}
		if err := work(loader); err != nil {
			t.Errorf("%s: expected it to load the scripts, found %v", loader, err)
		}
		for role := range workAfterAFlush {
			if err := work(role); err != nil {
				t.Errorf("%s behind a %s: expected its work done, found %v", role, loader, err)
			}
		}
	}
}
