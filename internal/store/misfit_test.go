package store

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/scripts"
)

// keysOfCalls notes the keys that are passed to scripts.
func keysOfCalls(keys *[]string) testkit.Hook {
	return func(_ context.Context, commands []redis.Cmder, next func() error) error {
		for _, command := range commands {
			if args := command.Args(); command.Name() == "evalsha" {
				count, _ := args[2].(int)
				for _, key := range args[3 : 3+count] {
					*keys = append(*keys, fmt.Sprint(key))
				}
			}
		}
		return next()
	}
}

// put something of a type into a key.
var ofType = map[string]func(c context.Context, r redis.UniversalClient, key string) error{
	"string": func(c context.Context, r redis.UniversalClient, key string) error { return r.Set(c, key, "x", 0).Err() },
	"list":   func(c context.Context, r redis.UniversalClient, key string) error { return r.RPush(c, key, "x").Err() },
	"hash": func(c context.Context, r redis.UniversalClient, key string) error {
		return r.HSet(c, key, "x", "y").Err()
	},
	"set": func(c context.Context, r redis.UniversalClient, key string) error { return r.SAdd(c, key, "x").Err() },
	"zset": func(c context.Context, r redis.UniversalClient, key string) error {
		return r.ZAdd(c, key, redis.Z{Score: 1, Member: "x"}).Err()
	},
	"stream": func(c context.Context, r redis.UniversalClient, key string) error {
		return r.XAdd(c, &redis.XAddArgs{Stream: key, ID: "1-1", Values: []string{"x", "y"}}).Err()
	},
}

// beside are what may differ from a queue where a key is of its type, beside that key: what it leads to is left out with it.
var beside = map[string]list{
	":gates":  {":wake"},
	":errors": {":past_errors", ":error:", ":outbox", ":journal"}, ":past_errors": {":errors", ":error:", ":outbox", ":journal"},
	":error:": {":errors", ":past_errors", ":error:", ":outbox", ":journal"}, ":circuit:": {":gates", ":outbox", ":journal", ":stats", ":wake"},
}

// lacking are keys without one, and without what may differ beside it.
func lacking(all keys, key string) keys {
	gone := list{key}
	for name, more := range beside {
		if name == key || strings.HasSuffix(name, ":") && strings.HasPrefix(key, name) {
			gone = append(gone, more...)
		}
	}
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(name string, _ any) bool {
		return slices.ContainsFunc(gone, func(prefix string) bool {
			return name == prefix || strings.HasSuffix(prefix, ":") && strings.HasPrefix(name, prefix)
		})
	})
	if fields, is := all[":model:m1"].(hash); is && key == ":stats" { // tickets are numbered there
		delete(all, ":journal")
		all[":model:m1"] = but(fields, "ticket", "")
	} else if is && strings.Contains(key, "error") { // its fingerprint may be one of too many
		all[":model:m1"] = but(fields, "error", "")
	}
	return all
}

// stoppers are the keys without which nothing is right.
var stoppers = list{":due", ":running"}

// batchOf seeds a case anew, and decides on its transition, and on a new model beside it.
func batchOf(b *bench, test *eventCase) Batch {
	b.server.Flush(b.t)
	b.seed(test.seed)
	items := []Item{answering(test.answers, test.act(b, b.load("m1"))), {Transition: b.put("other", "{}")}}
	if test.answers == "" {
		items[0].CommandID, items[0].Reply = "c1", Reply{"x", "{}"}
	}
	return Batch{Now: b.now, Owner: "p1", MaxQueued: roomy, Items: items}
}

// Each of three servers takes a seventh of all cases: so each event meets each of its keys in two or three wrong types.
func TestAKeyOfAnotherTypeKeepsAnItemThatNeedsItFromChangingAnythingAndNoOther(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		var calls []string
		turn, share := 0, max(0, slices.Index(list{"miniredis", "redis-server", "cluster"}, path.Base(t.Name())))
		b.redis.AddHook(keysOfCalls(&calls))
		types := keyTypes(t)
		for _, test := range eventCases {
			var ends [4]keys // where none, the first, the second or both items are applied
			for which := range ends {
				batch := batchOf(b, &test)
				items := batch.Items
				batch.Items = nil
				for i := range items {
					if which>>i&1 == 1 {
						batch.Items = append(batch.Items, items[i])
					}
				}
				calls = nil
				if codes, err := b.Commit(t.Context(), batch); err != nil || slices.ContainsFunc(codes, func(code Code) bool { return code != CodeApplied }) {
					t.Fatalf("%s: expected it applied, found %v, %v", test.name, codes, err)
				}
				ends[which] = dumped(b)
			}
			for _, key := range calls {
				for _, is := range slices.Sorted(maps.Keys(ofType)) {
					turn++
					if want := kindOf(types, key); is != want && turn%long.Or(37, 7) == share {
						t.Run(strings.Join(list{test.name, strings.TrimPrefix(key, benchQueue), is}, "/"), func(t *testing.T) {
							b := *b
							b.t = t
							m := misfit{&b, key, is, want}
							m.commit(&test, ends)
						})
					}
				}
			}
		}
	})
}

// misfit is a key of another type than it should be.
type misfit struct {
	*bench
	key, is, want string
}

func (m *misfit) commit(test *eventCase, ends [4]keys) {
	batch := batchOf(m.bench, test)
	must(m.t, m.redis.Del(m.t.Context(), m.key).Err())
	must(m.t, ofType[m.is](m.t.Context(), m.redis, m.key))
	name, told := strings.TrimPrefix(m.key, benchQueue), fmt.Sprintf("%s holds a %s, expected a %s", m.key, m.is, m.want)
	before := m.server.Dump(m.t)
	codes, err := m.Commit(m.t.Context(), batch)
	if stops := slices.Contains(stoppers, name); stops || err != nil {
		if !stops || err == nil || !strings.Contains(err.Error(), told) {
			m.t.Errorf("expected an error: %t, %q; found %v", stops, told, err)
		}
		if diff := cmp.Diff(before, m.server.Dump(m.t)); diff != "" {
			m.t.Errorf("expected nothing changed:\n%s", diff)
		}
		return
	}
	which := 0
	for i, code := range codes {
		switch {
		case code == CodeApplied:
			which += 1 << i
		case code == CodeGone && (name == ":holder" || name == ":claimed:control"): // nobody knows that the command is this poller's
		case code != CodeBroken && code != CodeBlocked || !strings.Contains(batch.Items[i].WrongType, told):
			m.t.Errorf("item %d: expected it refused with %q, found %v %q", i, told, code, batch.Items[i].WrongType)
		}
	}
	mayBeUnused := name == ":heard" || strings.HasPrefix(name, ":payload:") || strings.HasPrefix(name, ":history:") || name == ":error:" // of no failure before
	if which == 3 && !strings.Contains(batch.Items[1].WrongType, told) && !mayBeUnused {
		m.t.Errorf("expected to be told %q, found %q", told, batch.Items[1].WrongType)
	}
	if diff := cmp.Diff(lacking(ends[which], name), lacking(dumped(m.bench), name)); diff != "" {
		m.t.Errorf("%v (-want +got):\n%s", codes, diff)
	}
	m.goesOn(batch, codes)
}

// dumped is the state, whatever expires.
func dumped(b *bench) keys {
	all := keys{}
	for name, value := range b.server.Dump(b.t) {
		data := value.Data
		if stream, ok := data.(testkit.Stream); ok {
			data = withoutIDs(stream.Entries)
		}
		all[strings.TrimPrefix(name, benchQueue)] = data
	}
	return all
}

// goesOn expects that what was refused is no longer, when the key is gone.
func (m *misfit) goesOn(batch Batch, codes []Code) {
	m.redis.Del(context.Background(), m.key)
	var refused []Item
	for i, code := range codes {
		if code != CodeApplied {
			refused = append(refused, batch.Items[i])
		}
	}
	batch.Items = refused
	codes, err := m.Commit(m.t.Context(), batch)
	if err != nil || slices.Contains(codes, CodeBroken) || slices.Contains(codes, CodeBlocked) {
		m.t.Errorf("expected that work goes on, found %v, %v", codes, err)
	}
}

// kindOf is the type that a key should be of.
func kindOf(types map[string]string, key string) string {
	name, longest, is := strings.TrimPrefix(key, benchQueue), "", ""
	for pattern, kind := range types {
		fixed, _, varies := strings.Cut(strings.TrimPrefix(pattern, "<queue>"), "<")
		if (name == fixed || varies && strings.HasPrefix(name, fixed)) && len(fixed) > len(longest) {
			longest, is = fixed, kind
		}
	}
	return is
}

var (
	commentPattern = regexp.MustCompile(`\s*--[^\n]*`)
	// readOnly are commands that change nothing. Any other is taken to write.
	readOnly = regexp.MustCompile(`^(TIME|TYPE|EXISTS|H?GET|HMGET|HGETALL|ZSCORE|ZCARD|ZCOUNT|ZRANGE|ZRANGEBYSCORE|LLEN|LRANGE|LINDEX|LPOS|XLEN|XRANGE|XINFO|XPENDING)$`)
)

func TestEveryScriptLooksAtTheTypesOfItsKeysBeforeItsFirstWrite(t *testing.T) {
	call := regexp.MustCompile(`\bredis\.p?call\('([A-Z]+)'`)
	looks := regexp.MustCompile(`= .*\b(wrong_type|misfit)\(`)
	for file, whole := range scripts.Sources() {
		if len(scripts.ReadHeader(whole).Keys()) < 2 {
			continue
		}
		body := bodyOf(whole)
		look, write := len(body), -1
		if found := looks.FindStringIndex(body); found != nil {
			look = found[0]
		}
		for _, found := range call.FindAllStringSubmatchIndex(body, -1) {
			if !readOnly.MatchString(body[found[2]:found[3]]) {
				write = found[0]
				break
			}
		}
		failIf(t, write >= 0 && look > write,
			"%s: expected that it looks at its keys before it writes, found the first write at %d, the look at %d", file, write, look)
	}
}
