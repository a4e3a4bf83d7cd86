package scripts

import (
	"maps"
	"strings"
	"testing"
)

// Each lie is told in one place of the real files, and must be found.
func TestTheCheckerFindsEveryLie(t *testing.T) {
	tests := []struct{ file, old, lie, want string }{
		{"read-due.lua", "-- Reads the clock, what is due, whose deadline has passed, and when either happens next. Writes nothing.\n", "", "what the script is for"},
		{"read-due.lua", "-- Reads", "\n-- Reads", "what the script is for"},
		{"read-due.lua", "-- Returns", "-- Gives", "what the script returns"},
		{"read-due.lua", "local due,", strings.Repeat("\n", 40) + "local due,", "lines, want at most 40"},
		{"read-due.lua", "<queue>:due zset", "<queue>:due", "KEYS[1] has 0 patterns with a type"},
		{"read-due.lua", "<queue>:due zset", "the due zset", "KEYS[1] has 0 patterns with a type"},
		{"read-due.lua", "<queue>:due zset", "<queue>:done zset", "no method of Keys builds <queue>:done"},
		{"read-due.lua", "<queue>:due zset", "<queue>:due list", "<queue>:due is a list in the header and a zset in Go"},
		{"read-due.lua", "ARGV[1] now in Unix ms", "ARGV[1] now", "ARGV[1] is a time without a unit"},
		{"read-due.lua", "ARGV[2] most uids of each kind", "ARGV[2]", "ARGV[2] is not explained"},
		{"read-due.lua", "ARGV[2] most uids of each kind", "", "ARGV[2] is used and not explained"},
		{"read-due.lua", "ARGV[2] most uids of each kind", "ARGV[2] most uids   ARGV[3] of each kind", "ARGV[3] is explained and not used"},
		{"read-due.lua", "ARGV[2] most uids of each kind", "ARGV[3] most uids of each kind", "ARGV[3] is explained out of order"},
		{"read-due.lua", "KEYS[2] <queue>:running zset, uid -> deadline_at ms", "", "KEYS[2] is used and not explained"},
		{"read-due.lua", "= KEYS[1], KEYS[2], KEYS[3]", "= KEYS[1], KEYS[2]", "KEYS[3] is explained and not used"},
		{"read-due.lua", "past(due), past(running)", "past(due), past(due)", ""},
		{"read-due.lua", "following(due), following(running), past(due), past(running)", "following(due), past(due)", "the key running is named and not used"},
		{"read-due.lua", "past(running)}", "past('running')}", "of the key set, want an entry of KEYS"},
		{"read-due.lua", "'LLEN', input", "'LLEN', 'bigtables'", "of the key 'bigtables', want an entry of KEYS"},
		{"read-due.lua", "'LLEN', input", "'LLEN', ARGV[2]", "of the key ARGV[2], want an entry of KEYS"},
		{"read-due.lua", "'LLEN', input", "'LLEN', due .. 'x'", "the key due is joined with a text"},
		{"read-due.lua", "'LLEN', input", "'LLEN', queue .. ':due'", "holds a part of a key: ':due'"},
		{"read-due.lua", "'LLEN', input", "'LLEN', queue .. '-input'", "holds a part of a key: '-input'"},
		{"read-due.lua", "'LLEN', input", "command, input", "calls command, want a command in quotes"},
		{"read-due.lua", "return {now", "cjson.encode({}) return {now", "the body uses cjson"},
		{"read-due.lua", "return {now", "bit.band(1, 1) return {now", "the body uses bit"},
		{"read-due.lua", "return {now", "error('x') return {now", "the body uses error"},
		{"read-due.lua", "return {now", "if not now then return 7 end return {now", "returns 7, which the header does not explain"},
		{"adopt-messages.lua", "'LMOVE', orphan, claimed", "'LMOVE', orphan, owner", "of the key owner, want an entry of KEYS"},
		{"adopt-messages.lua", "; -1: the", "; the", "returns -1, which the header does not explain"},
		{"settle-messages.lua", "ARGV[2..] per message", "ARGV[2] per message", "the body reads ARGV from 2 on, the header says 0"},
		{"settle-messages.lua", "for i = 2, #ARGV, 3", "for i = 3, #ARGV, 3", "the body reads ARGV from 3 on, the header says 2"},
		{"settle-messages.lua", "3 gone (", "4 gone (", "the header names the code 4 gone, Go has"},
		{"settle-messages.lua", "3 gone (", "3 lost (", "the header names the code 3 lost, Go has"},
		{"settle-messages.lua", "local code = 3", "local code = 2", "answers with the code 2, which the header does not name"},
		{"settle-messages.lua", "    code = 1\n", "", "never answers with the code 1 that the header names"},
		{"apply-transitions.lua", ", 6 broken (type)", "", "answers with the code 6, which the header does not name"},
		{"apply-transitions.lua", ", 6 broken (type)", "", "code 6 broken is named in no header"},
		{"apply-transitions.lua", "unpack(KEYS, 1, 8)", "unpack(KEYS, 1, 7)", "KEYS[8] is explained and not used"},
		{"apply-transitions.lua", "unpack(KEYS, key, key + 2)", "unpack(KEYS, key, key + 3)", "takes 4 keys an item, the header has 3"},
		{"apply-transitions.lua", "{}, {}, 4, 9", "{}, {}, 4, 8", "the body reads KEYS from 8 on, the header says 9"},
		{"apply-transitions.lua", "{}, {}, 4, 9", "{}, {}, 5, 9", "the body reads ARGV from 5 on, the header says 4"},
		{"apply-transitions.lua", "'DEL', hash, body, history", "'DEL', hash, body, uid", "of the key uid, want an entry of KEYS"},
		{"apply-transitions.lua", "score(due, uid", "score(uid, uid", "of the key set, want an entry of KEYS"},
		{"due.go", "s.Keys.Due(), s.Keys.Running()", "s.Keys.Running(), s.Keys.Due()", "Go passes the keys [<queue>:running <queue>:due"},
		{"due.go", "s.clockArg(), limit", "s.clockArg()", "Go passes 1 arguments, the header wants 2"},
		{"due.go", "readDue.Run(", "another.Run(", "no Go method runs the script"},
		{"due.go", "//go:embed read-due.lua", "//go:embed read.lua", "no Go method runs the script"},
		{"transition.go", "k.Payload(t.uid), k.History(t.uid)", "k.History(t.uid), k.Payload(t.uid)", "Go passes the keys"},
		{"transition.go", "[]any{maxQueued, ", "[]any{", "Go passes 2 arguments, the header wants 3"},
		{"transition.go", "CodeFull     Code = 5", "CodeFull     Code = 7", "the header names the code 5 full, Go has"},
		{"keys.go", "// Due is a zset", "// Due is a list", "<queue>:due is a zset in the header and a list in Go"},
	}
	files := sources(t)
	honest := mustReadWall(t, files)
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			if strings.Count(files[test.file], test.old) != 1 {
				t.Fatalf("%s: %q stands there %d times, want once", test.file, test.old, strings.Count(files[test.file], test.old))
			}
			told := maps.Clone(files)
			told[test.file] = strings.Replace(files[test.file], test.old, test.lie, 1)
			wall := honest
			if strings.HasSuffix(test.file, ".go") {
				wall = mustReadWall(t, told)
			}
			found := strings.Join(faultsOf(told, wall), "\n")
			if test.want == "" && found != "" || !strings.Contains(found, test.want) {
				t.Errorf("%s with %q: found %q, want %q", test.file, test.lie, found, test.want)
			}
		})
	}
}
