package acl_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
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

var everyKey = map[string]string{
	"q-input": "list", "q-output": "list", "q-control": "list", "q:model:m": "hash", "q:payload:m": "string", "q:history:m": "list",
	"q:due": "zset", "q:running": "zset", "q:policies": "hash", "q:policy_uses": "hash", "q:claimed:p": "list", "q:pollers": "zset", "q:taken:w": "list", "q:workers": "zset", "q:orders": "hash",
	"q:journal": "stream", "q:outbox": "stream", "q:rejected": "list", "q:stats": "hash", "q:zones": "hash", "q:hours": "hash", "q:wake": "list",
	"q:claimed:control": "list", "q:holder": "string", "q:forwarded": "hash", "q:commands": "zset", "q:reply:r": "list", "q:bulk:x": "hash", "q:bulks": "zset", "q:bulks_ended": "zset", "q:front": "list", "q:errors": "zset", "q:past_errors": "zset", "q:error:x": "hash",
	"q:failing": "zset", "q:disabled": "zset", "q:parked": "zset", "q:label:tenant=t1": "set", "q:gates": "zset", "q:parked:hold:h1": "zset", "q:holds": "hash", "q:limits": "hash",
	"q:calendars": "hash", "q:limit:host=h": "zset", "q:rate:host=h": "string", "q:circuit:host=h": "hash", "q:circuit:queue": "hash",
	"q:recipients:ops": "zset", "q:notices:ops": "list", "q:summary:ops": "hash", "q:deliveries": "hash", "q:undelivered": "list", "q:told:ops": "list",
}

// matrix says for each role what it may do with each key: r read all, f read fields it knows, s scan, a add or set, p push in front,
// t take the first, m move, w wait, c cut out, d delete. A key that is not named may not be touched in any of these ways.
var matrix = map[acl.Role]map[string]string{
	acl.Dispatcher: {
		"q:errors": "c", "q:past_errors": "ac", "q:error:x": "ad",
		"q-input": "acr", "q:holder": "r", "q:model:m": "acdfr", "q:payload:m": "dr", "q:history:m": "dp", "q:due": "acr", "q:running": "acr", "q:policies": "f",
		"q:journal": "ac", "q:outbox": "acr", "q:stats": "cr", "q:hours": "acr", "q:circuit:queue": "acf", "q:wake": "a", "q:front": "adr", "q:taken:w": "cmr", "q:workers": "acr",
		"q:calendars": "r", "q:circuit:host=h": "acf", "q:disabled": "ac", "q:failing": "ac", "q:gates": "acr", "q:holds": "cr", "q:label:tenant=t1": "ac", "q:limit:host=h": "acr", "q:limits": "cr",
		"q:parked": "ac", "q:parked:hold:h1": "ac", "q:rate:host=h": "ar", "q:bulks": "a", "q:zones": "acr", "q:pollers": "r",
	},
	acl.Poller: {
		"q:errors": "c", "q:past_errors": "ac", "q:error:x": "ad",
		"q-input": "acr", "q-output": "atw", "q-control": "atw", "q:claimed:control": "acmr", "q:holder": "ar", "q:model:m": "acdfr", "q:payload:m": "adr", "q:history:m": "dpr", "q:due": "ac", "q:running": "acs",
		"q:policies": "cf", "q:policy_uses": "a", "q:claimed:p": "acmr", "q:pollers": "acr", "q:journal": "ac", "q:outbox": "ar", "q:rejected": "acr", "q:bulk:x": "acfr", "q:bulks": "ac", "q:bulks_ended": "a", "q:circuit:queue": "f", "q:stats": "r", "q:wake": "a",
		"q:commands": "ac", "q:reply:r": "a", "q:holds": "ar", "q:limits": "r", "q:calendars": "r", "q:forwarded": "a", "q:zones": "acr",
		"q:circuit:host=h": "acf", "q:disabled": "acs", "q:failing": "acs", "q:gates": "a", "q:label:tenant=t1": "acs", "q:limit:host=h": "acr", "q:parked": "acs", "q:parked:hold:h1": "ac", "q:rate:host=h": "ar",
	},
	acl.Worker: {"q-input": "mw", "q-output": "a", "q:model:m": "f", "q:taken:w": "cmr", "q:workers": "ac", "q:reply:r": "t"},
	acl.Notifier: { // and XACK
		"q:model:m": "r", "q:payload:m": "r", "q:policies": "f", "q:circuit:queue": "f", "q:outbox": "g",
		"q:recipients:ops": "acr", "q:notices:ops": "ar", "q:summary:ops": "dr", "q:deliveries": "ac", "q:undelivered": "a", "q:told:ops": "a",
	},
	acl.Subscriber:    {"q:outbox": "g", "q:told:ops": "t"},                // and XACK
	acl.ForeignWorker: {"q-input": "t", "q-output": "a", "q:reply:r": "t"}, // and HGET of a fence
	acl.Application: { // and ZRANGE of the sets and of pollers
		"q-control": "a", "q:reply:r": "rt", "q:model:m": "fr", "q:history:m": "r", "q:label:tenant=t1": "s",
		"q:running": "s", "q:failing": "s", "q:disabled": "s", "q:parked": "s",
	},
	acl.Operator: {
		"q:errors": "acrs", "q:past_errors": "acrs", "q:error:x": "adfr",
		"q-input": "cr", "q-output": "ar", "q-control": "ar", "q:claimed:control": "r", "q:holder": "r", "q:model:m": "acdfr", "q:payload:m": "adr", "q:history:m": "dpr", "q:due": "acrs", "q:running": "acrs",
		"q:policies": "acfr", "q:policy_uses": "acfr", "q:claimed:p": "r", "q:pollers": "ars", "q:taken:w": "cmr", "q:workers": "acrs", "q:orders": "acfr", "q:journal": "acr", "q:outbox": "ar",
		"q:rejected": "cr", "q:stats": "cfr", "q:hours": "fr", "q:zones": "fr", "q:circuit:queue": "acfr", "q:wake": "ar", "q:bulk:x": "acdfr", "q:bulks": "acrs", "q:bulks_ended": "acrs", "q:forwarded": "fr", "q:commands": "crs", "q:reply:r": "r", "q:front": "r",
		"q:calendars": "acr", "q:circuit:host=h": "acfr", "q:disabled": "acrs", "q:failing": "acrs", "q:gates": "as", "q:holds": "ar", "q:label:tenant=t1": "acs", "q:limit:host=h": "acrs", "q:limits": "acr",
		"q:recipients:ops": "ars", "q:notices:ops": "ar", "q:summary:ops": "fr", "q:deliveries": "fr", "q:undelivered": "cr", "q:told:ops": "r",
		"q:parked": "acrs", "q:parked:hold:h1": "acs", "q:rate:host=h": "ar",
	},
	acl.Viewer: {
		"q:errors": "rs", "q:past_errors": "rs", "q:error:x": "fr",
		"q-input": "r", "q-output": "r", "q-control": "r", "q:claimed:control": "r", "q:holder": "r", "q:model:m": "fr", "q:payload:m": "r", "q:history:m": "r", "q:due": "rs", "q:running": "rs",
		"q:policies": "fr", "q:policy_uses": "fr", "q:claimed:p": "r", "q:pollers": "rs", "q:taken:w": "r", "q:workers": "rs", "q:orders": "fr", "q:journal": "r", "q:outbox": "r",
		"q:rejected": "r", "q:stats": "fr", "q:hours": "fr", "q:zones": "fr", "q:circuit:queue": "fr", "q:wake": "r", "q:bulk:x": "fr", "q:bulks": "rs", "q:bulks_ended": "rs", "q:forwarded": "fr", "q:commands": "rs", "q:reply:r": "r", "q:front": "r",
		"q:calendars": "r", "q:circuit:host=h": "fr", "q:disabled": "rs", "q:failing": "rs", "q:gates": "s", "q:holds": "r", "q:label:tenant=t1": "s", "q:limit:host=h": "rs", "q:limits": "r",
		"q:recipients:ops": "rs", "q:notices:ops": "r", "q:summary:ops": "fr", "q:deliveries": "fr", "q:undelivered": "r", "q:told:ops": "r",
		"q:parked": "rs", "q:parked:hold:h1": "s", "q:rate:host=h": "r",
	},
}

func may(t *testing.T, admin redis.UniversalClient, user string, commands ...string) (allowed []bool) {
	t.Helper()
	answers, err := admin.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for _, command := range commands {
			words := []any{"ACL", "DRYRUN", user}
			for _, word := range strings.Fields(command) {
				words = append(words, word)
			}
			pipe.Do(t.Context(), words...)
		}
		return nil
	})
	stopIf(t, len(answers) != len(commands), "%d answers: %v", len(answers), err)
	for _, answer := range answers {
		text, err := answer.(*redis.Cmd).Text()
		allowed = append(allowed, err == nil && text == "OK")
	}
	return allowed
}

// rightsOn is what a user may do with the keys of a queue, or a part of one, as in the matrix.
func rightsOn(t *testing.T, admin redis.UniversalClient, user, queue string) map[string]string {
	t.Helper()
	var keys, letters, commands []string
	for key, kind := range everyKey {
		for _, letter := range slices.Sorted(maps.Keys(probes[kind])) {
			keys, letters = append(keys, key), append(letters, letter)
			commands = append(commands, fmt.Sprintf(probes[kind][letter], queue+strings.TrimPrefix(key, "q")))
		}
	}
	got := map[string]string{}
	for n, allowed := range may(t, admin, user, commands...) {
		if allowed {
			got[keys[n]] += letters[n]
		}
	}
	return got
}

func TestEachRoleMayDoItsOwnWorkAndNobodyElses(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	admin := users.Server.Client(t)
	for _, role := range acl.Roles() {
		equal(t, matrix[role], rightsOn(t, admin, string(role)+"-q", "q"))
	}
}

// TestInEachPartARoleMayDoWhatItMayDoInAQueueOfOnePart allows for pollers, which number commands and forward them.
func TestInEachPartARoleMayDoWhatItMayDoInAQueueOfOnePart(t *testing.T) {
	users := fixture.WithUsersOfParts(t, "q")
	admin := users.Server.Client(t)
	for _, role := range acl.Roles() {
		user, want := string(role)+"-q", maps.Clone(matrix[role])
		if role == acl.Poller {
			want["q-control"] = "atw"
		}
		for _, part := range []string{"{q:0}", "{q:1023}"} {
			equal(t, want, rightsOn(t, admin, user, part))
		}
		for _, other := range []string{"{other:0}", "q", "{q}", "{qq:0}", "q:0"} {
			got := rightsOn(t, admin, user, other)
			failIf(t, len(got) > 0, "%s may in %s: %v", role, other, got)
		}
	}
}

func TestEverybodyMayReadTheSettingsAnOperatorFixesThemAndDaemonsRaiseTheLayoutAndLoadScripts(t *testing.T) {
	for name, users := range map[string]*fixture.Users{"one part": fixture.WithUsers(t, "q"), "several": fixture.WithUsersOfParts(t, "q")} {
		admin := users.Server.Client(t)
		for _, role := range acl.Roles() {
			operates, triggers := role == acl.Operator, role == acl.Dispatcher || role == acl.Poller
			want := map[string]bool{
				"HGET {q}:settings parts": true, "HGET {q:0}:settings parts": name == "several" && (operates || role == acl.Viewer),
				"HSETNX {q}:settings parts 8": operates, "HSET {q}:settings layout 2": operates || triggers, "HSET {other}:settings layout 2": false,
				"HDEL {q}:settings parts": false, "DEL {q}:settings": false, "HGET {other}:settings parts": false,
				"HSETNX {other}:settings parts 8": false, "HSETNX {q:0}:settings parts 8": false,
				"SCRIPT LOAD x": triggers,
			}
			commands := slices.Sorted(maps.Keys(want))
			for i, got := range may(t, admin, string(role)+"-q", commands...) {
				failIf(t, got != want[commands[i]], "%s, %s: %s: found %t", name, role, commands[i], got)
			}
		}
	}
}

// everybody lists what no user may do.
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
		for i, allowed := range may(t, admin, string(role)+"-q", everybody...) {
			failIf(t, allowed, "%s may %s", role, everybody[i])
		}
	}
}
