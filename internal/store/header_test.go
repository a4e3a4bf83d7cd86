package store

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/scripts"
)

// goSide is what Go knows of keys and codes, and what it passes to scripts.
type goSide struct {
	kinds map[string]string // by the pattern of the key
	codes map[int]string
	calls map[string][]scriptCall // by the file of the script
}

// faultsOf compares the header of a script with its body, and both with Go.
func faultsOf(file, text string, side goSide) (faults []string) {
	a, err := analyse(text)
	note := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	note(err != nil, "%v", err)
	note(len(strings.Fields(a.Purpose)) < 5, "the header does not say what the script is for")
	note(len(strings.Fields(a.Returns)) < 2, "the header does not say what the script returns")
	a.checkTables(note)
	a.checkKeys(note, side.kinds)
	a.checkCodes(note, side.codes)
	for _, word := range forbiddenWord.FindAllString(a.body, -1) {
		note(true, "the body uses %s", word)
	}
	note(len(side.calls[file]) == 0 && !slices.Contains(runElsewhere, file), "no method of Store runs the script")
	for _, call := range side.calls[file] {
		a.checkCall(note, call)
	}
	return faults
}

// runElsewhere are run by packages beside this one.
var runElsewhere = []string{
	"drop-probe.lua", "recount-error.lua", "requeue-rejected.lua", "turn-circuit.lua", "change-queue.lua", "route-notices.lua", "settle-notices.lua", "requeue-notices.lua",
	"trim-outbox.lua",
}

type notes func(wrong bool, format string, args ...any)

var (
	timeWord      = regexp.MustCompile(`\b(now|cutoff|due|deadline|running|heartbeat)\b`)
	unitWord      = regexp.MustCompile(`\bms\b`)
	forbiddenWord = regexp.MustCompile(`\b(cjson|cmsgpack|bit|struct|os|io|print|require|package|loadfile|dofile|setfenv|goto|tostring)\b|\berror\(`)
	numberedUse   = regexp.MustCompile(`\b(KEYS|ARGV)\[(\d+)\]`)
	variableUse   = regexp.MustCompile(`\b(?:(KEYS)\[(key)|(ARGV)\[([a-z_]+))`)
	startPattern  = regexp.MustCompile(`\b(?:local|for) ([a-z_, ]+) = (\d+(?:, \d+)*)`)
)

// checkTables wants each entry of KEYS and ARGV explained, and used in its order.
func (a *analysis) checkTables(note notes) {
	starts := map[string]string{} // the number that a variable begins with
	for _, found := range startPattern.FindAllStringSubmatch(a.body, -1) {
		values := strings.Split(found[2], ", ")
		for i, name := range strings.Split(found[1], ", ") {
			starts[name] = values[min(i, len(values)-1)]
		}
	}
	for _, table := range []string{"KEYS", "ARGV"} {
		var explained, used []string
		for i, one := range slices.DeleteFunc(slices.Clone(a.Entries), func(one scripts.Entry) bool { return one.Table != table }) {
			note(one.First != i+1, "%s[%d] is explained out of order", table, one.First)
			note(one.Text == "", "%s[%d] is not explained", table, one.First)
			isTime := table == "ARGV" && !one.Open && timeWord.MatchString(one.Text) && !strings.Contains(one.Text, "RFC 3339")
			note(isTime && !unitWord.MatchString(one.Text), "ARGV[%d] is a time without a unit", one.First)
			n := len(one.Keys())
			several := one.Open || strings.Contains(one.Text, "one of ")
			note(table == "KEYS" && (n == 0 || n > 1 && !several), "KEYS[%d] has %d patterns with a type, expected one", one.First, n)
			explained = append(explained, strconv.Itoa(one.First)+map[bool]string{true: ".."}[one.Open])
		}
		for _, found := range numberedUse.FindAllStringSubmatch(a.body, -1) {
			if found[1] == table {
				used = append(used, found[2])
			}
		}
		for _, found := range variableUse.FindAllStringSubmatch(a.body, -1) {
			if open := starts[found[2]+found[4]] + ".."; found[1]+found[3] == table && !slices.Contains(used, open) {
				used = append(used, open)
			}
		}
		note(!slices.Equal(explained, used), "the header explains %s %v, the body uses %v", table, explained, used)
	}
}

var (
	literalPattern = regexp.MustCompile(`'[^'\n]*'|"[^"\n]*"|\[\[`)
	keyLiteral     = regexp.MustCompile(`[:{}\[]|-(input|output|control)`)
	otherUse       = regexp.MustCompile(`\bKEYS\b[^\[]`)
	stepPattern    = regexp.MustCompile(`\bkey = key \+ ([\w.]+)`)
	wrongTypeCall  = regexp.MustCompile(`= wrong_type\(\{([^}]*)\}\)`)
	methodDoc      = regexp.MustCompile(`(?m)^// (\w+) is a (list|hash|zset|set|stream|string)\b.*\nfunc \(k Keys\) `)
)

// checkKeys wants every key built by Go with the type of the header, touched, and none that does not come from KEYS.
func (a *analysis) checkKeys(note notes, kinds map[string]string) {
	items, sharedKinds := 0, []string{}
	for _, key := range a.Keys() {
		kind, known := kinds[key.Pattern]
		note(!known, "no method of Keys builds %s", key.Pattern)
		note(known && kind != key.Type, "%s is a %s in the header and a %s in Go", key.Pattern, key.Type, kind)
		touched := slices.ContainsFunc(a.accesses, func(one Access) bool { return one.Key == key.Pattern && one.Command != "TYPE" })
		note(!touched, "%s is passed and not touched", key.Pattern)
		switch {
		case key.Item:
			items++
		case key.Place > len(sharedKinds):
			sharedKinds = append(sharedKinds, "'"+key.Type+"'")
		default:
			note(sharedKinds[key.Place-1] != "'"+key.Type+"'", "KEYS[%d] has several types", key.Place)
		}
	}
	if step := stepPattern.FindStringSubmatch(a.body); step != nil || items > 0 {
		note(step == nil || step[1] != "kind.keys" && step[1] != strconv.Itoa(items), "the body takes %v keys an item, the header has %d", step, items)
	}
	if types := wrongTypeCall.FindStringSubmatch(a.body); types != nil {
		checked := strings.Join(strings.Fields(types[1]), " ")
		note(checked != strings.Join(sharedKinds, ", "), "the types %s are checked, the header has %v", checked, sharedKinds)
	}
	note(otherUse.MatchString(a.body), "the body uses KEYS in another way than by its entries")
	for _, literal := range literalPattern.FindAllString(a.body, -1) {
		note(keyLiteral.MatchString(literal), "the body holds a part of a key: %s", literal)
	}
	for name := range a.names { // luacheck refuses a second local of that name
		note(regexp.MustCompile(`(?m)^\s*`+name+` = `).MatchString(a.body), "the key %s gets another value", name)
	}
}

var (
	codePattern    = regexp.MustCompile(`(-?\d+) ([a-z]+)`)
	codeAnswered   = regexp.MustCompile(`\bcode = (-?\d+)`)
	numberReturned = regexp.MustCompile(`\breturn (-?\d+)\b`)
	numberNamed    = regexp.MustCompile(`(-?\d+):`)
)

// checkCodes wants the codes of the header known to Go, and answered by the body.
func (a *analysis) checkCodes(note notes, known map[int]string) {
	named := map[int]string{}
	if strings.HasPrefix(a.Returns, "a code per ") {
		for _, found := range codePattern.FindAllStringSubmatch(a.Returns, -1) {
			code, _ := strconv.Atoi(found[1])
			named[code] = found[2]
		}
	}
	answered := numbersIn(a.body, codeAnswered)
	for code, name := range named {
		note(known[code] != name, "the header names the code %d %s, Go has %q", code, name, known[code])
		note(!answered[code], "the header names the code %d, which the body never answers", code)
	}
	for code := range answered {
		note(named[code] == "", "the body answers the code %d, which the header does not name", code)
	}
	for number := range numbersIn(a.body, numberReturned) {
		note(!numbersIn(a.Returns, numberNamed)[number], "the body returns %d, which the header does not explain", number)
	}
}

func numbersIn(text string, pattern *regexp.Regexp) map[int]bool {
	numbers := map[int]bool{}
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		number, _ := strconv.Atoi(found[1])
		numbers[number] = true
	}
	return numbers
}

// checkCall wants the keys and the arguments passed that the header explains.
func (a *analysis) checkCall(note notes, call scriptCall) {
	var want, items []string
	for _, key := range a.Keys() {
		switch at := key.Place - 1; {
		case key.Item:
			items = append(items, key.Pattern)
			fallthrough
		case at == len(want):
			want = append(want, key.Pattern)
		case at < min(len(want), len(call.keys)) && call.keys[at] == key.Pattern: // one of several
			want[at] = key.Pattern
		}
	}
	keys, further := call.keys, false
	for i, key := range call.keys {
		if further = len(items) > 0 && i >= len(want); further { // of items any number, in any order
			note(!slices.Contains(items, key), "Go passes the key %s, the header has none like it", key)
			keys = keys[:len(want)]
		}
	}
	for _, key := range items {
		note(!slices.Contains(call.keys, key), "Go passes no key like %s", key)
	}
	note(!slices.Equal(want, keys), "Go passes the keys %v, the header wants %v", call.keys, want)
	fixed, open := 0, false
	for _, one := range a.Entries {
		if one.Table == "ARGV" && !one.Open {
			fixed++
		}
		open = open || one.Table == "ARGV" && one.Open
	}
	writes := slices.ContainsFunc(a.accesses, func(one Access) bool { return !readOnly.MatchString(one.Command) })
	note(call.repeats && writes, "a client that repeats what it sends runs the script, which writes")
	note(call.args < fixed || call.args > fixed && !open, "Go passes %d arguments, the header wants %d", call.args, fixed)
}

// readOnly are commands that change nothing. Any other is taken to write.
var readOnly = regexp.MustCompile(`^(TIME|TYPE|EXISTS|H?GET|HMGET|HGETALL|ZSCORE|ZCARD|ZCOUNT|ZRANGE|ZRANGEBYSCORE|LLEN|LRANGE|LINDEX|LPOS|XLEN|XRANGE|XINFO|XPENDING)$`)

// keyPatterns are all keys with names for what varies, by the name of their method.
var keyPatterns = allKeys(Keys{"<queue>"}, func(method string) string {
	switch method {
	case "Claimed", "Taken":
		return "<owner>"
	case "Bulk", "Reply", "Error", "Label", "ParkedBy", "Limit", "Rate", "Recipients", "Notices", "Told":
		return "<name>"
	case "Circuit":
		return "<key>"
	}
	return "<uid>"
})

// newGoSide reads the types of keys from the comments of the methods that build them: "// Due is a zset: …".
func newGoSide(t *testing.T) goSide {
	t.Helper()
	side := goSide{map[string]string{}, map[int]string{}, recordCalls(t)}
	for code := CodeApplied; code.String() != fmt.Sprintf("code %d", code); code++ {
		side.codes[int(code)] = code.String()
	}
	text, err := os.ReadFile("keys.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range methodDoc.FindAllStringSubmatch(string(text), -1) {
		side.kinds[keyPatterns[found[1]]] = found[2]
	}
	side.kinds["<queue>:circuit:<name>"] = side.kinds[keyPatterns["Circuit"]] // any, also that of the queue
	return side
}

func TestHeadersOfScriptsSayWhatTheirBodiesDo(t *testing.T) {
	side, named := newGoSide(t), map[int]bool{}
	if len(scripts.Sources()) < 9 {
		t.Fatalf("expected at least 9 scripts, found %d", len(scripts.Sources()))
	}
	for file, text := range scripts.Sources() {
		for _, fault := range faultsOf(file, text, side) {
			t.Errorf("%s: %s", file, fault)
		}
		a, _ := analyse(text)
		maps.Copy(named, numbersIn(a.Returns, codePattern))
	}
	for code, name := range side.codes {
		if !named[code] {
			t.Errorf("the code %d %s is named in no header", code, name)
		}
	}
}
