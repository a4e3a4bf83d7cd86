package store

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/scripts"
)

// header is the header of a script, ready to be compared with calls.
type header struct {
	file  string
	keys  []*regexp.Regexp // of each fixed place
	items []*regexp.Regexp // of the keys that items bring
	args  int              // fixed ones
	more  bool             // any number may follow
}

var headers = readHeaders()

func readHeaders() map[string]header {
	all := map[string]header{}
	for file, script := range scripts.Sources() {
		h := header{file: file}
		for _, entry := range scripts.ReadHeader(script).Entries {
			switch {
			case entry.Table == "ARGV":
				h.more = h.more || entry.Open
				if !entry.Open {
					h.args++
				}
			case entry.Open:
				h.items = append(h.items, pattern(entry))
			default:
				h.keys = append(h.keys, pattern(entry))
			}
		}
		all[goredis.NewScript(script).Hash()] = h
	}
	return all
}

// pattern matches all keys that an entry names.
func pattern(entry scripts.Entry) *regexp.Regexp {
	var names []string
	for _, key := range entry.Keys() {
		text := regexp.QuoteMeta(key.Pattern)
		text = strings.NewReplacer("<index>", "("+strings.Join(redis.Map(ScoreIndexes[:], func(index ScoreIndex) string { return index.Name }), "|")+")", "<queue>", `[^:]+(:\d+})?`, "<uid>", ".*", "<name>", ".*", "<key>", ".*", "<owner>", ".*").Replace(text)
		names = append(names, text)
	}
	return regexp.MustCompile("^(" + strings.Join(names, "|") + ")$")
}

// check returns the fault of a call; empty: none.
func (h *header) check(keys []string, args int) string {
	if len(keys) < len(h.keys) || len(keys) > len(h.keys) && len(h.items) == 0 {
		return fmt.Sprintf("%s: Go passes %d keys, the header has %d", h.file, len(keys), len(h.keys))
	}
	for i, key := range keys {
		want := h.items
		if i < len(h.keys) {
			want = h.keys[i : i+1]
		}
		if !slices.ContainsFunc(want, func(p *regexp.Regexp) bool { return p.MatchString(key) }) {
			return fmt.Sprintf("%s: Go passes %s as KEYS[%d], the header has %s", h.file, key, i+1, want)
		}
	}
	if args < h.args || args > h.args && !h.more {
		return fmt.Sprintf("%s: Go passes %d arguments, the header has %d", h.file, args, h.args)
	}
	return ""
}

func init() {
	redis.CheckCall = func(digest string, keys []string, args int) {
		h := headers[digest]
		if fault := h.check(keys, args); fault != "" {
			panic(fault)
		}
	}
}

func TestACallThatDoesNotFitItsHeaderIsFound(t *testing.T) {
	script := headers[goredis.NewScript(scripts.Source("trim-outbox.lua")).Hash()]
	for _, test := range []struct {
		keys []string
		args int
		want string
	}{
		{[]string{"{q:1}:outbox", "{q:1}:stats"}, 3, ""},
		{[]string{"q:outbox", "q:stats"}, 3, ""},
		{[]string{"q:journal", "q:stats"}, 3, "passes q:journal as KEYS[1]"},
		{[]string{"q:outbox", "q:stats", "q:due"}, 3, "passes 3 keys"},
		{nil, 3, "passes 0 keys"},
		{[]string{"q:outbox", "q:stats"}, 2, "passes 2 arguments"},
		{[]string{"q:outbox", "q:stats"}, 4, "passes 4 arguments"},
	} {
		if found := script.check(test.keys, test.args); (found == "") != (test.want == "") || !strings.Contains(found, test.want) {
			t.Errorf("%q with %d arguments: expected %q, found %q", test.keys, test.args, test.want, found)
		}
	}
}

var (
	methodDoc      = regexp.MustCompile(`(?m)^// (\w+) is a (list|hash|zset|set|stream|string): .*\nfunc \(k \*Keys\) `)
	codePattern    = regexp.MustCompile(`(-?\d+) ([a-z]+)`)
	codeAnswered   = regexp.MustCompile(`\bcode = (-?\d+)`)
	numberReturned = regexp.MustCompile(`\breturn (-?\d+)\b`)
	numberNamed    = regexp.MustCompile(`(-?\d+):`)
)

// keyPatterns are all keys with names for what varies, by the name of their field or method.
var keyPatterns = allKeys(newKeys("<queue>"), func(method string) string {
	switch method {
	case "Claimed", "Taken":
		return "<owner>"
	case "Bulk", "Reply", "Error", "Label", "ParkedBy", "Limit", "Rate", "Recipients", "Notices", "Summary", "Told":
		return "<name>"
	case "Circuit":
		return "<key>"
	}
	return "<uid>"
})

// keyTypes are the types of keys by their patterns, as the tags of their fields and the comments of their methods say: "// Model is a hash: …".
func keyTypes(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("keys.go")
	must(t, err)
	all := newKeys("<queue>")
	types := all.Types()
	for _, found := range methodDoc.FindAllStringSubmatch(string(text), -1) {
		types[keyPatterns[found[1]]] = found[2]
	}
	types["<queue>:<index>"] = "zset"
	types["<queue>:circuit:<name>"] = types[keyPatterns["Circuit"]] // any, also the queue's
	return types
}

func TestHeadersNameTheKeysAndCodesThatGoHas(t *testing.T) {
	types, named := keyTypes(t), map[int]bool{}
	for file, script := range scripts.Sources() {
		head := scripts.ReadHeader(script)
		for _, key := range head.Keys() {
			failIf(t, types[key.Pattern] != key.Type, "%s: %s is a %s in the header and a %q in Go", file, key.Pattern, key.Type, types[key.Pattern])
		}
		answered, returned, codes := numbersIn(head.Body, codeAnswered), numbersIn(head.Body, numberReturned), map[int]string{}
		if strings.HasPrefix(head.Returns, "a code per ") {
			maps.Copy(answered, returned) // a check returns one
			maps.Copy(answered, codesOfChecks(t, file))
			returned = nil
			for _, found := range codePattern.FindAllStringSubmatch(head.Returns, -1) {
				code, _ := strconv.Atoi(found[1])
				codes[code], named[code] = found[2], true
			}
		}
		for code, name := range codes {
			failIf(t, Code(code).String() != name || !answered[code],
				"%s: the header names the code %d %s, Go has %q, the body answers it: %t", file, code, name, Code(code), answered[code])
		}
		for code := range answered {
			failIf(t, codes[code] == "", "%s: the body answers the code %d, which the header does not name", file, code)
		}
		for number := range returned {
			failIf(t, !numbersIn(head.Returns, numberNamed)[number], "%s: the body returns %d, which the header does not explain", file, number)
		}
	}
	for code := CodeApplied; code.String() != fmt.Sprintf("code %d", code); code++ {
		failIf(t, !named[int(code)], "the code %d %s is named in no header", code, code)
	}
}

// codesOfChecks are the codes of the checks that a script is given, and the code of an applied item.
func codesOfChecks(t *testing.T, file string) map[int]bool {
	if file != "txn.lua" {
		return nil
	}
	codes := map[int]bool{int(CodeApplied): true}
	for _, name := range []string{"commit.go", "steps.go", "flow_steps.go"} {
		text, err := os.ReadFile(name)
		must(t, err)
		for code := CodeApplied; code.String() != fmt.Sprintf("code %d", code); code++ {
			named := "int(Code" + strings.ToUpper(code.String()[:1]) + code.String()[1:] + ")"
			codes[int(code)] = codes[int(code)] || strings.Contains(string(text), named)
		}
	}
	return codes
}

func numbersIn(text string, pattern *regexp.Regexp) map[int]bool {
	numbers := map[int]bool{}
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		number, _ := strconv.Atoi(found[1])
		numbers[number] = true
	}
	return numbers
}

// TestNoUserWhoMayOnlyRunScriptsCanMakeOneEndless passes what no method of Store passes: one list for two, and numbers without measure. A
// script without end stops Redis, for everybody.
func TestNoUserWhoMayOnlyRunScriptsCanMakeOneEndless(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t, "--save", "") // private: it may have to be killed
	b := newBench(t, server)
	const endless = "1000000000000000"
	k := b.Keys
	for name, test := range map[string]struct {
		script *goredis.Script
		keys   []string
		args   []any
	}{
		"a list that is taken from itself":            {takeAttempts, []string{k.Taken("w"), k.Taken("w"), k.Workers}, []any{"1", "w", "1", endless, "7"}},
		"a list that is requeued into itself":         {moveEntries, []string{k.Workers, k.Taken("w"), k.Taken("w")}, []any{"1", "w", "", "", "", endless}},
		"a template that says how long its items are": {applyItems, []string{k.Due}, []any{1, 1, "zset", 1, "i0 0 0", 1, "m"}},
		"a template whose items are behind others":    {applyItems, []string{k.Due}, []any{1, 1, "zset", 1, "i-5 -1 0", 1, "m"}},
		"a template of many values":                   {applyItems, []string{k.Due}, []any{1, 1, "zset", 1, "i" + endless + " 0 0", 1, "m"}},
		"a step of less than no word":                 {applyItems, []string{k.Due}, []any{1, 1, "zset", endless, "d  ", "call", 1, "m"}},
		"an item that says how long it is":            {applyItems, []string{k.Due}, []any{1, 1, "zset", 0, "i0 0 0", "m", "i" + endless + " 0 0", "m"}},
		"an item with a step of less than no word":    {applyItems, []string{k.Due}, []any{1, 1, "zset", 0, "i9 0 0", "m", "d  ", "call"}},
		"lines without end":                           {applyItems, []string{k.Due}, []any{1, 1, "zset", endless, "s", "s", 1, "m"}},
	} {
		b.seed(keys{":taken:w": list{"a", "b"}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		must(t, b.Clients.LoadScripts(ctx, b.Keys.Due))
		err := b.redis.EvalSha(ctx, test.script.Hash(), test.keys, test.args...).Err()
		stopIf(t, err != nil && !redis.Answered(err), "%s: expected an answer, found %v", name, err)
		cancel()
		server.Flush(t)
	}
}

func TestNoScriptUnpacksWhatHasNoBound(t *testing.T) {
	t.Parallel()
	seen := 0
	for file, text := range scripts.Sources() {
		body := bodyOf(text)
		seen += strings.Count(body, "unpack(")
		for _, place := range unbound(body) {
			t.Errorf("%s: %s", file, place)
		}
	}
	failIf(t, seen < 10, "expected at least 10 places that unpack a list, found %d", seen)
}

// Each fault is planted in one place of a real script, and must be found.
func TestTheCheckOfUnpackFindsEachPlantedFault(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ file, old, fault, want string }{
		{"txn.lua", "unpack(list, first_of, last_of)", "unpack(list)", "unpack(list)"},
		{"txn.lua", "unpack(list, first_of, last_of)", "unpack(group, 1, last_of)", "unpack(group, 1, last_of)"},
		{"txn.lua", "unpack(list, first_of, last_of)", "unpack(list, 1, last_of)", "unpack(list, 1, last_of)"},
		{"txn.lua", "unpack(pushed, first_of, last_of)", "unpack(pushed, 1, #pushed)", "unpack(pushed, 1, #pushed)"},
		{"txn.lua", "in chunks(pushed) do", "in pairs(pushed) do", "unpack(pushed, first_of, last_of)"},
		{"txn.lua", "step.n = math.min(#args, 1000)", "step.n = #args", "unpack(step.args, 1, step.n)"},
		{"txn.lua", "step.n = math.min(#args, 1000)", "step.n = math.min(#args, 10000)", "unpack(step.args, 1, step.n)"},
		{"txn.lua", "step.n = math.min(#args, 1000)", "step.n = math.min(#args, 1000)\n  step.n = #args", "unpack(step.args, 1, step.n)"},
		{"txn.lua", "- 3120) % 1001", "- 3120) % 10001", "unpack(ARGV, at + 1 + before, at + words)"},
		{"txn.lua", "local args = {unpack", "words = 9 local args = {unpack", "unpack(ARGV, at + 1 + before, at + words)"},
		{"txn.lua", "local args = step.args", "local args = check.args", "unpack(args, 1, step.n)"},
		{"txn.lua", "local size = 1000", "local size = 8000", "chunks of 8000"},
		{"txn.lua", "local size = 1000", "local size = 999", "chunks of 999"},
		{"measure-circuit.lua", "'HDEL', stats, unpack(old, first, last)", "'HDEL', stats, unpack(old)", "unpack(old)"},
		{"measure-circuit.lua", "local event = {'event',", "local event = {redis.call('HKEYS', stats),", "unpack(event)"},
		{"measure-circuit.lua", "local event = {", "local event = all or {", "unpack(event)"},
		{"measure-circuit.lua", "if tonumber(most) > 0 then", "event[#event + 1] = since if tonumber(most) > 0 then", "unpack(event)"},
	} {
		text := scripts.Sources()[test.file]
		stopIf(t, !strings.Contains(text, test.old), "%s: expected %q, found none", test.file, test.old)
		if found := fmt.Sprint(unbound(bodyOf(strings.ReplaceAll(text, test.old, test.fault)))); !strings.Contains(found, test.want) {
			t.Errorf("%s with %q: expected %q, found %s", test.file, test.fault, test.want, found)
		}
	}
}

// bodyOf is a script without its comments.
func bodyOf(script string) string {
	return commentPattern.ReplaceAllString(scripts.ReadHeader(script).Body, "")
}

// mostUnpacked is how many values every Lua can unpack: Redis holds 7,999, the embedded one 5,113.
const mostUnpacked = 1000

var (
	unpackPattern = regexp.MustCompile(`\bunpack\(`)
	chunksLoop    = regexp.MustCompile(`\bfor (\w+), (\w+) in chunks\((\w+)(?:, [\w.]+)?\) do\s+(?:redis\.call\([^\n]*)?$`)
	chunkSize     = regexp.MustCompile(`\blocal size = (\d+)\n`)
	endPattern    = regexp.MustCompile(`^math\.min\(#(\w+), (\d+)\)$`)
)

// unbound are the places of a script that unpack a list without a bound. A list has one when it is
//   - a chunk: the line before is "for first, last in chunks(list) do";
//   - cut: unpack(list, 1, math.min(#list, 1000)), or unpack(list, 1, 7);
//   - cut when it was made: unpack(step.args, 1, step.n), where the only step.n = math.min(#args, 1000);
//   - read: unpack(ARGV, at + 1 + before, at + words), where words are what is left of a number divided by 1001;
//   - a table that is written down in one line, of values which are no calls, and to which nothing is added.
func unbound(body string) (places []string) {
	if size := chunkSize.FindStringSubmatch(body); size != nil {
		if n, _ := strconv.Atoi(size[1]); n > mostUnpacked || n%2 != 0 {
			places = append(places, fmt.Sprintf("chunks of %d, expected an even number up to %d", n, mostUnpacked))
		}
	}
	for _, at := range unpackPattern.FindAllStringIndex(body, -1) {
		args := splitArguments(body[at[1]:])
		if !chunked(args, body[:at[0]]) && !cut(args) && !cutBefore(args, body) && !read(args, body) && !writtenDown(args, body) {
			places = append(places, "unpack("+strings.Join(args, ", ")+") has no bound")
		}
	}
	return places
}

// chunked reports whether the text before opens a loop over the chunks of this list.
func chunked(args []string, before string) bool {
	loop := chunksLoop.FindStringSubmatch(before)
	return loop != nil && slices.Equal(args, []string{loop[3], loop[1], loop[2]})
}

func cut(args []string) bool {
	if len(args) != 3 || args[1] != "1" {
		return false
	}
	n, err := strconv.Atoi(args[2])
	if end := endPattern.FindStringSubmatch(args[2]); end != nil && end[1] == args[0] {
		n, err = strconv.Atoi(end[2])
	}
	return err == nil && n <= mostUnpacked
}

var (
	wordsRead = regexp.MustCompile(fmt.Sprintf(`\blocal words, \w+ = \([^\n()]*\) %% %d\b`, mostUnpacked+1))
	wordsSet  = regexp.MustCompile(`\bwords\b[^=~<>\n(]*= `)
)

func read(args []string, body string) bool {
	return slices.Equal(args, []string{"ARGV", "at + 1 + before", "at + words"}) &&
		len(wordsRead.FindAllString(body, -1)) == len(wordsSet.FindAllString(body, -1))
}

func cutBefore(args []string, body string) bool {
	if len(args) != 3 || args[1] != "1" {
		return false
	}
	of, is := strings.CutSuffix(args[2], ".n")
	taken := args[0] == of+".args" || args[0] == "args" && strings.Contains(body, "local args = "+of+".args\n")
	return is && taken && strings.Count(body, ".n = ") == 1 && strings.Contains(body, fmt.Sprintf("step.n = math.min(#args, %d)\n", mostUnpacked))
}

func writtenDown(args []string, body string) bool {
	if len(args) != 1 {
		return false
	}
	name := regexp.QuoteMeta(args[0])
	return regexp.MustCompile(`\blocal `+name+` = \{[^(){}\n]*\}\n`).MatchString(body) &&
		!regexp.MustCompile(`\b`+name+`(\[.*\])? = [^{]|\binsert\(`+name+`\b`).MatchString(body)
}

// splitArguments splits a list at the commas outside brackets and quotes, and ends at the bracket that closes it.
func splitArguments(text string) []string {
	var parts []string
	depth, from, quoted := 0, 0, false
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("([{", c):
			depth++
		case strings.ContainsRune(")]}", c):
			if depth--; depth < 0 {
				return append(parts, strings.TrimSpace(text[from:i]))
			}
		case c == ',' && depth == 0:
			parts, from = append(parts, strings.TrimSpace(text[from:i])), i+1
		}
	}
	return append(parts, strings.TrimSpace(text[from:]))
}
