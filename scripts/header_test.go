package scripts

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	comment       = regexp.MustCompile(`\s*--[^\n]*`)
	call          = regexp.MustCompile(`\bredis\.p?call\('([A-Z]+)'`)
	anyCall       = regexp.MustCompile(`\bredis\.p?call\(`)
	numberedUse   = regexp.MustCompile(`\b(KEYS|ARGV)\[(\d+)\]`)
	forbiddenWord = regexp.MustCompile(`\b(cjson|cmsgpack|bit|struct|os|io|print|require|package|loadfile|dofile|setfenv|goto|tostring)\b|\berror\(`)
	literal       = regexp.MustCompile(`'[^'\n]*'`)
	partOfKey     = regexp.MustCompile(`[:{}\[]|-(?:input|output|control)`)
	timeWord      = regexp.MustCompile(`\b(now|cutoff|due|deadline|running|heartbeat)\b`)
	unitWord      = regexp.MustCompile(`\bms\b|RFC 3339`)
)

// givenPattern is what the header of a script says whose commands come from Go, and decidedPattern is where Go names one.
var (
	givenPattern   = regexp.MustCompile(`\bcommands\s+that Go has decided\b`)
	decidedPattern = regexp.MustCompile(`\b(?:Do|Help|Add|Try|Last|Equal|Below)\([^\n"]*"([A-Z]+)"`)
)

// decided are the commands that Go gives to scripts.
func decided() map[string]bool {
	commands := map[string]bool{}
	for _, file := range []string{"commit.go", "steps.go", "flow_steps.go"} {
		text, err := os.ReadFile("../internal/store/" + file)
		if err != nil {
			panic(err)
		}
		for _, found := range decidedPattern.FindAllStringSubmatch(string(text), -1) {
			commands[found[1]] = true
		}
	}
	return commands
}

// faultsOf compares the header of a script with its body.
func faultsOf(script string) (faults []string) {
	note := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	header := ReadHeader(script)
	body := comment.ReplaceAllString(header.Body, "")
	note(len(strings.Fields(header.Purpose)) < 5, "the header does not say what the script is for")
	note(len(strings.Fields(header.Returns)) < 2, "the header does not say what the script returns")
	count := map[string]int{}
	for _, entry := range header.Entries {
		count[entry.Table]++
		note(entry.First != count[entry.Table], "%s[%d] is explained out of order", entry.Table, entry.First)
		note(entry.Text == "", "%s[%d] is not explained", entry.Table, entry.First)
		isTime := entry.Table == "ARGV" && !entry.Open && timeWord.MatchString(entry.Text)
		note(isTime && !unitWord.MatchString(entry.Text), "ARGV[%d] is a time without a unit", entry.First)
		several := entry.Open || strings.Contains(entry.Text, "one of ")
		n := len(entry.Keys())
		note(entry.Table == "KEYS" && (n == 0 || n > 1 && !several), "KEYS[%d] has %d keys with a type, expected one", entry.First, n)
		used := strings.Contains(body, fmt.Sprintf("%s[%d]", entry.Table, entry.First))
		note(!used && !entry.Open, "%s[%d] is explained and not used", entry.Table, entry.First)
	}
	for _, use := range numberedUse.FindAllStringSubmatch(body, -1) {
		n, _ := strconv.Atoi(use[2])
		note(n > count[use[1]], "%s is used and not explained", use[0])
	}
	declared := map[string]bool{"TIME": true, "TYPE": true} // any script may ask
	for _, key := range header.Keys() {
		note(len(key.Commands) == 0, "%s is passed, and the header says no command", key.Pattern)
		for _, command := range key.Commands {
			command, _ = strings.CutSuffix(command, "-to")
			declared[command] = true
			has := strings.Contains(body, "'"+command+"'") || givenPattern.MatchString(header.Purpose) && decided()[command]
			note(!has, "the header says %s of %s, the body has no such command", command, key.Pattern)
		}
	}
	given := givenPattern.MatchString(header.Purpose)
	calls := call.FindAllStringSubmatch(body, -1)
	for _, found := range calls {
		note(!declared[found[1]], "the body has %s, the header says it of no key", found[1])
	}
	note(!given && len(calls) != len(anyCall.FindAllString(body, -1)), "the body has a command that is not in quotes")
	for _, word := range forbiddenWord.FindAllString(body, -1) {
		note(true, "the body uses %s", word)
	}
	for _, text := range literal.FindAllString(body, -1) {
		note(partOfKey.MatchString(text), "the body holds a part of a key: %s", text)
	}
	return faults
}

func TestHeadersSayWhatScriptsDoWithTheirKeys(t *testing.T) {
	for file, script := range Sources() {
		for _, fault := range faultsOf(script) {
			t.Errorf("%s: %s", file, fault)
		}
	}
}

// Each fault is planted in one place of a real script, and must be found.
func TestEachPlantedFaultOfAHeaderIsFound(t *testing.T) {
	for _, test := range []struct{ file, old, fault, want string }{
		{"read-due.lua", "-- Reads the clock", "\n-- Reads the clock", "what the script is for"},
		{"read-due.lua", "-- Returns", "-- Gives", "what the script returns"},
		{"read-due.lua", "<queue>:due zset", "<queue>:due", "KEYS[1] has 0 keys with a type"},
		{"read-due.lua", "<queue>:due zset", "<queue>:stats hash HGET, <queue>:due zset", "KEYS[1] has 2 keys with a type"},
		{"read-due.lua", "ARGV[1] now in Unix ms", "ARGV[1] now", "ARGV[1] is a time without a unit"},
		{"read-due.lua", "ARGV[2] most uids of each kind", "ARGV[2]", "ARGV[2] is not explained"},
		{"read-due.lua", "ARGV[2] most uids of each kind", "ARGV[3] most uids of each kind", "ARGV[3] is explained out of order"},
		{"read-due.lua", "-- KEYS[11] ", "-- ", "KEYS[11] is used and not explained"},
		{"read-due.lua", "-- KEYS[3] <queue>-input list LLEN", "-- KEYS[3] <queue>-input list", "<queue>-input is passed, and the header says no command"},
		{"read-due.lua", "-- KEYS[3] <queue>-input list LLEN", "-- KEYS[3] <queue>-input list LLEN LPOS", "the header says LPOS of <queue>-input"},
		{"read-due.lua", "redis.pcall('LLEN', input)", "redis.pcall('LSET', input)", "the body has LSET, the header says it of no key"},
		{"read-due.lua", "'LLEN', input", "command, input", "a command that is not in quotes"},
		{"read-due.lua", "return {string", "local key = queue .. ':due' return {string", "the body holds a part of a key: ':due'"},
		{"read-due.lua", "return {string", "local key = queue .. '-input' return {string", "the body holds a part of a key: '-input'"},
		{"read-due.lua", "return {string", "cjson.encode({}) return {string", "the body uses cjson"},
		{"read-due.lua", "return {string", "error('x') return {string", "the body uses error"},
	} {
		script := Sources()[test.file]
		if n := strings.Count(script, test.old); n != 1 {
			t.Fatalf("%s: %q stands there %d times, expected once", test.file, test.old, n)
		}
		faults := faultsOf(strings.Replace(script, test.old, test.fault, 1))
		if !slices.ContainsFunc(faults, func(fault string) bool { return strings.Contains(fault, test.want) }) {
			t.Errorf("%s with %q: expected %q, found %q", test.file, test.fault, test.want, faults)
		}
	}
}
