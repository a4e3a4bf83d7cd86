package store

import (
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/scripts"
)

// Each fault is planted in one place of a real script, and must be found.
func TestTheCheckerOfHeadersFindsEachPlantedFault(t *testing.T) {
	t.Parallel()
	tests := []struct{ file, old, fault, want string }{
		{"read-due.lua", "-- Reads the clock, what is due or urgent, whose deadline has passed, whose freshness changes, and when any of it\n-- happens next. It is also the heartbeat of a dispatcher, and shares the work among the living, so that they do not all\n-- decide about the same models: by the order of their names, each reads a page of its own when there is more than one\n-- page, and otherwise leaves what is there to those before it for a while.\n", "", "what the script is for"},
		{"read-due.lua", "-- Reads", "\n-- Reads", "what the script is for"},
		{"read-due.lua", "-- Returns", "-- Gives", "what the script returns"},
		{"read-due.lua", "<queue>:due zset", "<queue>:due", "KEYS[1] has 0 patterns with a type"},
		{"read-due.lua", "<queue>:due zset", "the due zset", "KEYS[1] has 0 patterns with a type"},
		{"read-due.lua", "<queue>:due zset", "<queue>:due zset, <queue>:stats hash", "KEYS[1] has 2 patterns with a type"},
		{"read-due.lua", "<queue>:due zset", "<queue>:done zset", "no method of Keys builds <queue>:done"},
		{"read-due.lua", "<queue>:due zset", "<queue>:due list", "<queue>:due is a list in the header and a zset in Go"},
		{"read-due.lua", "ARGV[1] now in Unix ms", "ARGV[1] now", "ARGV[1] is a time without a unit"},
		{"read-due.lua", "ARGV[2] most uids of each kind", "ARGV[2]", "ARGV[2] is not explained"},
		{"read-due.lua", "-- ARGV[2] most uids of each kind\n", "", "the header explains ARGV [1 3 4 5], the body uses [1 2 3 4 5]"},
		{"read-due.lua", "-- ARGV[2] most uids of each kind\n", "-- ARGV[2] most uids\n-- ARGV[3] of each kind\n", "the header explains ARGV [1 2 3 3 4 5], the body uses [1 2 3 4 5]"},
		{"read-due.lua", "ARGV[2] most uids of each kind", "ARGV[3] most uids of each kind", "ARGV[3] is explained out of order"},
		{"read-due.lua", "-- KEYS[3] <queue>-input list\n", "", "the header explains KEYS [1 2 4 5 6 7 8 9 10 11], the body uses [1 2 3 4 5 6 7 8 9 10 11]"},
		{"read-due.lua", "due, running, input, dispatchers, urgent = KEYS[1], KEYS[2]", "running, due, input, dispatchers, urgent = KEYS[2], KEYS[1]", "the body uses [2 1 3 4 5 6 7 8 9 10 11]"},
		{"read-due.lua", "redis.call('LLEN', input)", "7", "<queue>-input is passed and not touched"},
		{"read-due.lua", "'LLEN', input", "'LLEN', 'bigtables'", "expected an entry of KEYS as a key of LLEN, found 'bigtables'"},
		{"read-due.lua", "'LLEN', input", "'LLEN', ARGV[2]", "expected an entry of KEYS as a key of LLEN, found ARGV[2]"},
		{"read-due.lua", "'LLEN', input", "'LLEN', due .. 'x'", "expected an entry of KEYS as a key of LLEN, found due .. 'x'"},
		{"read-due.lua", "'LLEN', input", "command, input", "expected a command in quotes, found command"},
		{"read-due.lua", "return {string", "local key = queue .. ':due' return {string", "the body holds a part of a key: ':due'"},
		{"read-due.lua", "return {string", "local key = queue .. '-input' return {string", "the body holds a part of a key: '-input'"},
		{"read-due.lua", "return {string", "local all = #KEYS return {string", "uses KEYS in another way"},
		{"read-due.lua", "return {string", "input = limit\nreturn {string", "the key input gets another value"},
		{"read-due.lua", "return {string", "cjson.encode({}) return {string", "the body uses cjson"},
		{"read-due.lua", "return {string", "bit.band(1, 1) return {string", "the body uses bit"},
		{"read-due.lua", "return {string", "error('x') return {string", "the body uses error"},
		{"read-due.lua", "return {string", "if not now then return 7 end return {string", "the body returns 7, which the header does not explain"},
		{"adopt-messages.lua", "'LMOVE', orphan, claimed", "'LMOVE', orphan, owner", "expected an entry of KEYS as a key of LMOVE, found owner"},
		{"adopt-messages.lua", "; -1: the", "; the", "the body returns -1, which the header does not explain"},
		{"answer-attempts.lua", "ARGV[1..] per message", "ARGV[1] per message", "the header explains ARGV [1], the body uses [1..]"},
		{"answer-attempts.lua", "for i = 1, #ARGV, 3", "for i = 2, #ARGV, 3", "the header explains ARGV [1..], the body uses [2..]"},
		{"answer-attempts.lua", "3 gone (", "4 gone (", `the header names the code 4 gone, Go has "taken"`},
		{"answer-attempts.lua", "3 gone (", "3 lost (", `the header names the code 3 lost, Go has "gone"`},
		{"answer-attempts.lua", "local code = 3", "local code = 2", "the body answers the code 2, which the header does not name"},
		{"answer-attempts.lua", "    code = 1\n", "", "the header names the code 1, which the body never answers"},
		{"commit.lua", ", 6 broken\n--   (the model is no hash)", "", "the body answers the code 6, which the header does not name"},
		{"commit.lua", "key = key + kind.keys", "key = key + 5", "keys an item, the header has 10"},
		{"commit.lua", "local at, key = 9, 27", "local at, key = 9, 26", "the body uses [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 26..]"},
		{"commit.lua", "local at, key = 9, 27", "local at, key = 10, 27", "the body uses [1 2 3 4 5 6 7 8 10..]"},
		{"commit.lua", "'DEL', hash, body, history", "'DEL', hash, body, uid", "expected an entry of KEYS as a key of DEL, found uid"},
		{"commit.lua", "KEYS[key + 2]", "KEYS[key + 10]", "expected an entry of KEYS as a key of DEL, found body"},
		{"commit.lua", "'list',\n  'stream',\n  'stream'", "'stream',\n  'stream'", "the types 'zset', 'zset', 'list', 'list', 'list', 'string', 'stream'"},
	}
	side := newGoSide(t)
	for _, test := range tests {
		text := scripts.Sources()[test.file]
		if n := strings.Count(text, test.old); n != 1 {
			t.Fatalf("%s: %q stands there %d times, expected once", test.file, test.old, n)
		}
		found := strings.Join(faultsOf(test.file, strings.Replace(text, test.old, test.fault, 1), side), "\n")
		if test.want == "" && found != "" || !strings.Contains(found, test.want) {
			t.Errorf("%s with %q: expected %q, found %q", test.file, test.fault, test.want, found)
		}
	}
}

func TestTheCheckerOfHeadersFindsEachFaultOfGo(t *testing.T) {
	t.Parallel()
	const due, commits = "read-due.lua", "commit.lua"
	for want, plant := range map[string]func(side goSide){
		"no method of Store runs the script": func(side goSide) { delete(side.calls, due) },
		"Go passes the keys [<queue>:stale_at <queue>:calendars <queue>:limits <queue>:gates <queue>:holds <queue>:front <queue>:urgent <queue>:dispatchers <queue>-input <queue>:running <queue>:due]": func(side goSide) { slices.Reverse(side.calls[due][0].keys) },
		"Go passes 4 arguments, the header wants 5":            func(side goSide) { side.calls[due][0].args-- },
		"Go passes 6 arguments, the header wants 5":            func(side goSide) { side.calls[due][0].args++ },
		"Go passes the keys [<queue>:running <queue>-input ":   func(side goSide) { call := &side.calls[commits][0]; call.keys = call.keys[1:] },
		"a client that repeats what it sends runs the script":  func(side goSide) { side.calls[due][0].repeats = true },
		"<queue>:due is a zset in the header and a list in Go": func(side goSide) { side.kinds["<queue>:due"] = "list" },
		`the header names the code 5 full, Go has "empty"`:     func(side goSide) { side.codes[5] = "empty" },
	} {
		side := newGoSide(t)
		plant(side)
		found := strings.Join(append(faultsOf(due, scripts.Sources()[due], side), faultsOf(commits, scripts.Sources()[commits], side)...), "\n")
		if !strings.Contains(found, want) {
			t.Errorf("expected %q, found %q", want, found)
		}
	}
}

func TestArgumentsAreSplitAtTheCommasThatStandInNothingElse(t *testing.T) {
	for text, want := range map[string][]string{
		"a, b":                        {"a", "b"},
		"'SET', key, 'a,b') .. ', c'": {"'SET'", "key", "'a,b'"},
		"'(', list[1], f(a, b), {c, d}[1]) or ')'": {"'('", "list[1]", "f(a, b)", "{c, d}[1]"},
	} {
		if got := splitArguments(text); !slices.Equal(got, want) {
			t.Errorf("%s: want %q, got %q", text, want, got)
		}
	}
}
