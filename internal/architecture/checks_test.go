package architecture

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

// TestEachCheckFindsItsFault gives each check of this package a small tree with a few faults, beside places that have none.
func TestEachCheckFindsItsFault(t *testing.T) {
	tree := fstest.MapFS{}
	for name, text := range map[string]string{
		"scripts/long.lua":       "return 1\n--" + strings.Repeat("-", 119),
		"scripts/built.lua":      "return redis.call('HGET', KEYS[1] .. ':model:' .. ARGV[1])",
		"scripts/declared.lua":   "-- KEYS[1] '<queue>-input'\nreturn redis.call('LLEN', KEYS[1])",
		"scripts/include/a.lua":  strings.Repeat("\n", 101),
		"internal/store/keys.go": "package store\ntype Keys struct{ Input string `key:\"-input\" type:\"list\"` }\nvar b = \":model:\"\nfunc text() {\n}\nfunc Claim() {\n}\n",
		"worker/worker.go":       "package worker\nvar key = \"bigtables-input\"\nconst help = \"takes from <queue>-input\"",
		"internal/util/x.go":     "package util",
		"model/busy.go":          "package model\nfunc f() { go f() }\nconst EventStart Event = \"start\"",
		"model/a_test.go":        "package model\nfunc TestRuns(t *testing.T) {}\nfunc TestSleeps(t *testing.T) { t.Parallel(); long.Only(t) }",
		"test/faults/a_test.go":  "package faults\nfunc TestKill(t *testing.T) { d.conclude() }\nfunc TestOther(t *testing.T) { d.settle() }",
		"loop/loop.go": "package loop\nimport \"x/internal/ui/health\"\ntype Config struct { Progress health.Progress; hidden health.Progress }\n" +
			"type Loop struct { health.State }\nfunc New() health.State { return nil }\nfunc (l *hidden) Pace() health.State { return nil }",
	} {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	files := readTree(t, tree)
	tests := testsOf(files)
	const head = "| word | meaning | where |\n|---|---|---|\n"
	glossary := head + "| input | means | `model.Even` |\n| input | means | `x.lua` |\n| a |  | x |\n"
	for name, found := range map[string]struct{ want, got []string }{
		"lines of scripts":  {[]string{"scripts/long.lua:2:"}, scriptsAreNarrow(files)},
		"keys":              {[]string{"scripts/built.lua:", "worker/worker.go:"}, keysAreInOnePlace(files)},
		"goroutines":        {[]string{"model/busy.go:2:"}, domainStartsNoGoroutine(files)},
		"names of packages": {[]string{"internal/util/x.go:"}, packagesHaveNouns(files)},
		"public types":      {[]string{"in Config Progress,", "in Loop (embedded),", "in New,"}, unusable(files)},
		"words": {[]string{"input: expected one row", "a: expected the alphabet", "found model.Even", "found x.lua", "model: expected a row", "start: expected a row"},
			unexplained(glossary, "", files)},
		"meanings": {[]string{"a: expected a meaning", "start: expected a row"}, unexplained(head+"| a |  | x |\n", "An input of a model.", files)},
		"rules": {[]string{"bug 1: expected a test that always runs", "bug 3: expected `package.TestName`", "bug 9: expected a test, found none", "bug 2: expected one row", "bug 9: expected a number"},
			untested("| rule | in short | tests |\n|---|---|---|\n| bug 1 | x | `model.TestRuns`, `model.TestSleeps` |\n| bug 3 | x | TestRuns |\n| bug 9 | x | `model.TestNone` |\n", map[string]int{"bug %d": 3}, tests)},
		"numbers of faults": {[]string{"the numbers of TestKill", "found TestNone"}, unnumbered("`TestOther` `TestNone`", tests)},
		"pages":             {[]string{"a script, found b.lua", "a name of the repository, found model.None", "a room, found `shed`"}, astray("`b.lua` `model.None`\n| `shed` | x |\n", files, tree)},
		"sizes": {[]string{"scripts/include/a.lua: expected at most 100, found 101", "lines of model/busy.go is within its limit"},
			outgrown(sizesOf(files), map[string]int{"lines of model/busy.go": 500})},
	} {
		missing := slices.DeleteFunc(slices.Clone(found.want), func(text string) bool {
			return slices.ContainsFunc(found.got, func(place string) bool { return strings.Contains(place, text) })
		})
		failIf(t, len(missing) > 0 || len(found.got) != len(found.want), "%s: expected %q, found %q", name, found.want, found.got)
	}
}
