package architecture

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// A rule reads all sources and returns one line for each place that breaks it.
type rule func(files []file) []string

var rules = map[string]rule{
	"a line of a script fits the screen":              scriptsAreNarrow,
	"a key is written in internal/store/keys.go only": keysAreInOnePlace,
	"the domain starts no goroutine":                  domainStartsNoGoroutine,
	"a package is named after what it holds":          packagesHaveNouns,
}

func TestRepositoryKeepsItsRules(t *testing.T) {
	files := readTree(t, os.DirFS("../.."))
	for name, broken := range rules {
		t.Run(name, func(t *testing.T) {
			for _, place := range broken(files) {
				t.Error(place)
			}
		})
	}
}

// maxScriptColumns is the length of a line that can be read without turning it over.
const maxScriptColumns = 120

func scriptsAreNarrow(files []file) (places []string) {
	for _, f := range files {
		if !f.isLua() {
			continue
		}
		for i, line := range strings.Split(f.text, "\n") {
			if len(line) > maxScriptColumns {
				places = append(places, fmt.Sprintf("%s:%d: expected at most %d columns, found %d", f.path, i+1, maxScriptColumns, len(line)))
			}
		}
	}
	return places
}

const keysFile = "internal/store/keys.go"

// keysAreInOnePlace takes the parts of keys from the keys file, such as "-input" and ":model:", and looks for them in the
// literals of all other files. A literal with a space in it is a sentence, such as a help text, and no key. Examples are
// code of users, who have only the names.
func keysAreInOnePlace(files []file) (places []string) {
	parts := keyParts(files)
	for _, f := range files {
		if f.path == keysFile || f.isTest() || strings.HasPrefix(f.path, "examples/") {
			continue
		}
		for _, literal := range literals(f) {
			if part := partIn(literal, parts); part != "" {
				places = append(places, fmt.Sprintf("%s: expected keys to come from %s, found %q in %q", f.path, keysFile, part, literal))
			}
		}
	}
	return places
}

func keyParts(files []file) (parts []string) {
	for _, f := range files {
		if f.path != keysFile {
			continue
		}
		for _, literal := range literals(f) {
			if len(literal) > 1 && strings.ContainsAny(literal[:1], "-:") {
				parts = append(parts, literal)
			}
		}
	}
	return parts
}

func partIn(literal string, parts []string) string {
	if strings.ContainsAny(literal, " \n") {
		return ""
	}
	for _, part := range parts {
		if strings.HasSuffix(literal, part) || strings.HasSuffix(part, ":") && strings.Contains(literal, part) {
			return part
		}
	}
	return ""
}

// literals returns the string literals of a file.
func literals(f file) (texts []string) {
	if f.isLua() {
		return luaLiterals(f.text)
	}
	f.inspect(func(n ast.Node) {
		if literal, ok := n.(*ast.BasicLit); ok {
			// A literal that is no string does not unquote to anything that could be a key.
			text, _ := strconv.Unquote(literal.Value)
			texts = append(texts, text)
		}
	})
	return texts
}

// luaLiterals takes what stands between quotes outside comments. The scripts have no escapes and no long strings.
func luaLiterals(text string) (texts []string) {
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "--")
		for i, part := range strings.Split(strings.ReplaceAll(code, `"`, "'"), "'") {
			if i%2 == 1 {
				texts = append(texts, part)
			}
		}
	}
	return texts
}

func domainStartsNoGoroutine(files []file) (places []string) {
	for _, f := range files {
		if path.Dir(f.path) != "model" || f.isTest() {
			continue
		}
		f.inspect(func(n ast.Node) {
			if statement, ok := n.(*ast.GoStmt); ok {
				places = append(places, positions.Position(statement.Pos()).String()+": the model package decides and never acts")
			}
		})
	}
	return places
}

var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "shared"}

func packagesHaveNouns(files []file) (places []string) {
	for _, f := range files {
		if f.syntax != nil && slices.Contains(emptyNames, f.syntax.Name.Name) {
			places = append(places, fmt.Sprintf("%s: expected the name of a thing, found package %s", f.path, f.syntax.Name.Name))
		}
	}
	return places
}

// TestRulesCanFail breaks each rule once, with a file beside it that does not.
func TestRulesCanFail(t *testing.T) {
	tests := []struct {
		rule    string
		sources map[string]string
		want    []string
	}{
		{"a line of a script fits the screen", map[string]string{
			"scripts/long.lua":  "return 1\n--" + strings.Repeat("-", 119),
			"scripts/short.lua": strings.Repeat("return 1\n", 400) + strings.Repeat("-", 120),
		}, []string{"scripts/long.lua:2: expected at most 120 columns, found 121"}},

		{"a key is written in internal/store/keys.go only", map[string]string{
			"internal/store/keys.go": "package store\nvar a, b = \"-input\", \":model:\"",
			"worker/worker.go":       "package worker\nvar key = \"bigtables-input\"",
			"worker/help.go":         "package worker\nconst help = \"takes attempts from <queue>-input\"",
			"worker/help_test.go":    "package worker\nvar key = \"bigtables-input\"",
			"scripts/built.lua":      "return redis.call('HGET', KEYS[1] .. ':model:' .. ARGV[1])",
			"scripts/declared.lua":   "-- KEYS[1] '<queue>-input'\nreturn redis.call('LLEN', KEYS[1])",
		}, []string{
			`scripts/built.lua: expected keys to come from internal/store/keys.go, found ":model:" in ":model:"`,
			`worker/worker.go: expected keys to come from internal/store/keys.go, found "-input" in "bigtables-input"`,
		}},

		{"the domain starts no goroutine", map[string]string{
			"model/busy.go":  "package model\nfunc f() { go f() }",
			"poller/busy.go": "package poller\nfunc f() { go f() }",
		}, []string{"model/busy.go:2:12: the model package decides and never acts"}},

		{"a package is named after what it holds", map[string]string{
			"internal/util/x.go":  "package util",
			"internal/clock/x.go": "package clock",
		}, []string{"internal/util/x.go: expected the name of a thing, found package util"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			got := rules[test.rule](readTree(t, mapTree(test.sources)))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
	if len(tests) != len(rules) {
		t.Errorf("%d of %d rules were broken, want all", len(tests), len(rules))
	}
}

func mapTree(sources map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, text := range sources {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}
