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

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/scripts"
)

// header is that of a script, ready to be compared with calls.
type header struct {
	file  string
	keys  []*regexp.Regexp // of each fixed place
	items []*regexp.Regexp // of the keys that items bring
	args  int              // fixed ones
	more  bool             // any number may follow
}

// headers are those of all scripts, by their digests.
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
		all[redis.NewScript(script).Hash()] = h
	}
	return all
}

// pattern matches all keys that an entry names.
func pattern(entry scripts.Entry) *regexp.Regexp {
	var names []string
	for _, key := range entry.Keys() {
		text := regexp.QuoteMeta(key.Pattern)
		text = strings.NewReplacer("<queue>", `[^:]+(:\d+})?`, "<uid>", ".*", "<name>", ".*", "<key>", ".*", "<owner>", ".*").Replace(text)
		names = append(names, text)
	}
	return regexp.MustCompile("^(" + strings.Join(names, "|") + ")$")
}

// check returns what is wrong with a call; empty: nothing.
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
	checkCall = func(digest string, keys []string, args int) {
		h := headers[digest]
		if fault := h.check(keys, args); fault != "" {
			panic(fault)
		}
	}
}

func TestACallThatDoesNotFitItsHeaderIsFound(t *testing.T) {
	script := headers[redis.NewScript(scripts.Source("trim-outbox.lua")).Hash()]
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
	fieldDoc       = regexp.MustCompile(`(?m)^\t(\w+) +string // (list|hash|zset|set|stream|string): `)
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
	case "Bulk", "Reply", "Error", "Label", "ParkedBy", "Limit", "Rate", "Recipients", "Notices", "Told":
		return "<name>"
	case "Circuit":
		return "<key>"
	}
	return "<uid>"
})

// keyTypes are the types of keys by their patterns, as the comments say of their fields and methods: "// zset: …", "// Model is a hash: …".
func keyTypes(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("keys.go")
	must(t, err)
	types := map[string]string{}
	for _, found := range append(fieldDoc.FindAllStringSubmatch(string(text), -1), methodDoc.FindAllStringSubmatch(string(text), -1)...) {
		types[keyPatterns[found[1]]] = found[2]
	}
	types["<queue>:circuit:<name>"] = types[keyPatterns["Circuit"]] // any, also that of the queue
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

func numbersIn(text string, pattern *regexp.Regexp) map[int]bool {
	numbers := map[int]bool{}
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		number, _ := strconv.Atoi(found[1])
		numbers[number] = true
	}
	return numbers
}
