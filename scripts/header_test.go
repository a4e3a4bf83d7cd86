package scripts

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sources reads every file of this package but its tests, by name.
func sources(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"*.lua", "*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, "_test.go") {
				files[name] = string(text)
			}
		}
	}
	return files
}

func TestHeadersOfScriptsTellTheTruth(t *testing.T) {
	files := sources(t)
	if n := len(luaNames(files)); n < 5 {
		t.Fatalf("found %d scripts, want at least 5", n)
	}
	for _, fault := range faultsOf(files, mustReadWall(t, files)) {
		t.Error(fault)
	}
}

func luaNames(files map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool { return filepath.Ext(name) != ".lua" })
}

func mustReadWall(t *testing.T, files map[string]string) wall {
	t.Helper()
	wall, err := readWall(files)
	if err != nil {
		t.Fatal(err)
	}
	return wall
}

// faultsOf checks all scripts against the Go code around them.
func faultsOf(files map[string]string, wall wall) []string {
	var all faults
	named := map[int]bool{}
	for _, name := range luaNames(files) {
		script := readLua(name, files[name])
		all.add(name, script.checkShape(), script.checkNumbers("KEYS"), script.checkNumbers("ARGV"), script.checkKeys(), script.checkBody(),
			script.checkCodes(wall.codes), script.checkTypes(wall.types), script.checkCaller(wall.callers[name]))
		for code := range script.codes() {
			named[code] = true
		}
	}
	for code, name := range wall.codes {
		if !named[code] {
			all = append(all, fmt.Sprintf("code %d %s is named in no header", code, name))
		}
	}
	return all
}

// faults are sentences about what is wrong.
type faults []string

func (f *faults) note(wrong bool, format string, args ...any) {
	if wrong {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

func (f *faults) add(name string, lists ...faults) {
	for _, fault := range slices.Concat(lists...) {
		*f = append(*f, name+": "+fault)
	}
}

const maxScriptLines = 40

func (s luaScript) checkShape() (f faults) {
	f.note(s.lines > maxScriptLines, "%d lines, want at most %d", s.lines, maxScriptLines)
	f.note(len(strings.Fields(s.purpose)) < 5, "the header does not say what the script is for")
	f.note(len(strings.Fields(s.returns)) < 2, "the header does not say what the script returns")
	for _, one := range s.declared {
		f.note(one.text == "", "%s[%d] is not explained", one.table, one.first)
	}
	for _, one := range s.of("KEYS") {
		n := len(declared{one}.patterns())
		f.note(n == 0 || n > 1 && !one.open, "KEYS[%d] has %d patterns with a type, want one", one.first, n)
	}
	for _, one := range s.of("ARGV") {
		f.note(timeWord.MatchString(one.text) && !unitWord.MatchString(one.text), "ARGV[%d] is a time without a unit", one.first)
	}
	return f
}

var (
	timeWord = regexp.MustCompile(`\b(now|cutoff|due|deadline|running)\b`)
	unitWord = regexp.MustCompile(`\bms\b`)
)

// checkNumbers compares the entries of a table that the header explains with those that the body reads.
func (s luaScript) checkNumbers(table string) (f faults) {
	used, open := s.uses(table)
	declaredOpen := 0
	for i, one := range s.of(table) {
		f.note(one.first != i+1, "%s[%d] is explained out of order", table, one.first)
		if one.open {
			declaredOpen = one.first
			continue
		}
		f.note(!used[one.first], "%s[%d] is explained and not used", table, one.first)
		delete(used, one.first)
	}
	for n := range used {
		f.note(true, "%s[%d] is used and not explained", table, n)
	}
	f.note(open != declaredOpen, "the body reads %s from %d on, the header says %d", table, open, declaredOpen)
	return f
}

// checkKeys sees to it that every key comes from KEYS.
func (s luaScript) checkKeys() (f faults) {
	for _, call := range s.calls(callPattern) {
		f.note(!commandName.MatchString(call.args[0]), "calls %s, want a command in quotes", call.args[0])
		for _, key := range call.keyArguments() {
			f.note(!s.isKey(key) && !s.isParameter(key), "%s of the key %s, want an entry of KEYS", call.args[0], key)
		}
	}
	for _, literal := range literalPattern.FindAllString(s.body, -1) {
		f.note(keyLiteral.MatchString(literal), "the body holds a part of a key: %s", literal)
	}
	for name := range s.locals {
		f.note(s.isKey(name) && joined(name).MatchString(s.body), "the key %s is joined with a text", name)
		f.note(s.isKey(name) && strings.Count(" "+wordsOf(s.body), " "+name+" ") < 2, "the key %s is named and not used", name)
	}
	open := s.of("KEYS")[max(0, len(s.of("KEYS"))-1):]
	f.note(len(open) == 1 && open[0].open && len(open.patterns()) != s.group(), "takes %d keys an item, the header has %d", s.group(), len(open.patterns()))
	return f
}

var (
	commandName    = regexp.MustCompile(`^'[A-Z]+'$`)
	literalPattern = regexp.MustCompile(`'[^'\n]*'|"[^"\n]*"|\[\[`)
	keyLiteral     = regexp.MustCompile(`[:{}\[]|-(input|output|control)`)
	forbiddenWord  = regexp.MustCompile(`\b(cjson|cmsgpack|bit|struct|os|io|print|require|package|loadfile|dofile|setfenv|goto|error|tostring)\b`)
)

func joined(name string) *regexp.Regexp {
	return regexp.MustCompile(`\b` + name + `\s*\.\.|\.\.\s*` + name + `\b`)
}

func wordsOf(text string) string {
	return strings.Join(wordPattern.FindAllString(text, -1), "  ") + " "
}

// checkBody refuses what only one of the two servers knows, and what makes an error of a refusal.
func (s luaScript) checkBody() (f faults) {
	for _, word := range forbiddenWord.FindAllString(s.body, -1) {
		f.note(true, "the body uses %s", word)
	}
	return f
}

var (
	codePattern    = regexp.MustCompile(`(-?\d+) ([a-z]+)`)
	codeAssignment = regexp.MustCompile(`\bcode = (-?\d+)`)
	numberReturned = regexp.MustCompile(`\breturn (-?\d+)\b`)
	numberNamed    = regexp.MustCompile(`(-?\d+):`)
)

// codes are those that the header names, if the script answers with codes.
func (s luaScript) codes() map[int]string {
	codes := map[int]string{}
	if !strings.HasPrefix(s.returns, "a code per ") {
		return codes
	}
	for _, found := range codePattern.FindAllStringSubmatch(s.returns, -1) {
		code, _ := strconv.Atoi(found[1])
		codes[code] = found[2]
	}
	return codes
}

func (s luaScript) checkCodes(known map[int]string) (f faults) {
	named := s.codes()
	for code, name := range named {
		f.note(known[code] != name, "the header names the code %d %s, Go has %q", code, name, known[code])
	}
	answered := numbersIn(s.body, codeAssignment)
	if code, err := strconv.Atoi(s.locals["code"]); err == nil {
		answered[code] = true
	}
	for code := range answered {
		f.note(named[code] == "", "answers with the code %d, which the header does not name", code)
	}
	for code := range named {
		f.note(!answered[code], "never answers with the code %d that the header names", code)
	}
	for number := range numbersIn(s.body, numberReturned) {
		f.note(!numbersIn(s.returns, numberNamed)[number], "returns %d, which the header does not explain", number)
	}
	return f
}

func numbersIn(text string, pattern *regexp.Regexp) map[int]bool {
	numbers := map[int]bool{}
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		number, _ := strconv.Atoi(found[1])
		numbers[number] = true
	}
	return numbers
}

// checkTypes compares the keys of a header with those that Go can build.
func (s luaScript) checkTypes(types map[string]string) (f faults) {
	for _, key := range s.patterns() {
		kind, known := types[key.pattern]
		f.note(!known, "no method of Keys builds %s", key.pattern)
		f.note(known && kind != key.kind, "%s is a %s in the header and a %s in Go", key.pattern, key.kind, kind)
	}
	return f
}

// checkCaller compares what the header asks for with what the Go method passes.
func (s luaScript) checkCaller(c caller) (f faults) {
	f.note(!c.found, "no Go method runs the script")
	var want []string
	for _, key := range s.patterns() {
		want = append(want, key.pattern)
	}
	f.note(c.found && !slices.Equal(want, c.keys), "Go passes the keys %v, the header wants %v", c.keys, want)
	fixed := len(slices.DeleteFunc(s.of("ARGV"), func(one declaration) bool { return one.open }))
	f.note(c.found && fixed != c.args, "Go passes %d arguments, the header wants %d", c.args, fixed)
	return f
}
