package store

import (
	"context"
	flags "flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// bench is a store on a server of its own, with a clock that only a test moves.
type bench struct {
	*Store
	t      testing.TB
	server *testkit.Server
	redis  goredis.UniversalClient
	now    time.Time
}

var (
	failIf = check.FailIf
	stopIf = check.StopIf
)

const benchQueue = "{bigtables}"

// sixOClock is the first time of the clock of a bench.
var sixOClock = time.UnixMilli(six).UTC()

func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// only is the error of a call that returns something else too.
func only[T any](_ T, err error) error { return err }

// newBench opens a store; tune may change its configuration.
func newBench(t testing.TB, server *testkit.Server, tune ...func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, server: server, redis: server.Client(t), now: sixOClock}
	config := Config{Queue: benchQueue, Clock: func() time.Time { return b.now }}
	for _, change := range tune {
		change(&config)
	}
	store, err := New(&redis.Clients{Read: b.redis, Write: b.redis, Block: b.redis, Clustered: server.IsCluster()}, config)
	must(t, err)
	b.Store = store
	return b
}

func (b *bench) fresh(t testing.TB) *bench {
	t.Helper()
	b.server.Flush(t)
	return newBench(t, b.server)
}

// everywhere runs test on a real server, and in the long run on a fake one too, and on a cluster, which alone refuses undeclared keys: until then the
// check of the headers looks for these, and the tables of all transitions and calls are for both.
func everywhere(t *testing.T, test func(t *testing.T, b *bench), tune ...func(*Config)) {
	t.Helper()
	testkit.BothIfLong(t, func(t *testing.T, s *testkit.Server) { test(t, newBench(t, s, tune...)) })
	t.Run("cluster", func(t *testing.T) {
		long.Only(t)
		test(t, newBench(t, testkit.Cluster(t), tune...))
	})
}

// onBoth runs test on a fake server too in any case.
func onBoth(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	if !long.Enabled() {
		t.Run("miniredis", func(t *testing.T) { test(t, newBench(t, testkit.Miniredis(t))) })
	}
	everywhere(t, test)
}

// keys is what a queue holds, by key without the queue's name: text, list, hash, scores and events.
type keys map[string]any

type (
	list   = []string
	hash   = map[string]string
	scores = map[string]float64
	set    = map[string]bool
	events []map[string]any // of a stream, without their ids, which Redis makes
)

// seed writes keys as they are to be found by a test.
func (b *bench) seed(all keys) {
	b.t.Helper()
	for name, value := range all {
		err := b.write(benchQueue+name, value)
		stopIf(b.t, err != nil, "seed %s: %v", name, err)
	}
}

func (b *bench) write(key string, value any) error {
	ctx := context.Background()
	switch value := value.(type) {
	case string:
		return b.redis.Set(ctx, key, value, 0).Err()
	case list:
		if len(value) == 0 {
			return nil
		}
		return b.redis.RPush(ctx, key, value).Err()
	case hash:
		return b.redis.HSet(ctx, key, value).Err()
	case scores:
		var members []goredis.Z
		for name, score := range value {
			members = append(members, goredis.Z{Score: score, Member: name})
		}
		return b.redis.ZAdd(ctx, key, members...).Err()
	case set:
		return b.redis.SAdd(ctx, key, slices.Collect(maps.Keys(value))).Err()
	default:
		panic("a seed of a type that no test needs")
	}
}

func (b *bench) state() keys {
	b.t.Helper()
	all := keys{}
	past := b.redis.ZRange(context.Background(), b.Keys.PastErrors, 0, -1).Val()
	for name, value := range b.server.Dump(b.t) {
		fingerprint, is := strings.CutPrefix(name, b.Keys.Error(""))
		failIf(b.t, value.Expires != (strings.HasPrefix(name, b.Keys.Reply("")) || name == b.Keys.PastErrors || is && slices.Contains(past, fingerprint)),
			"key %s expires: %t; nothing of a queue may but replies and fingerprints that are past", name, value.Expires)
		data := value.Data
		if stream, ok := data.(testkit.Stream); ok {
			data = withoutIDs(stream.Entries)
		}
		all[strings.TrimPrefix(name, benchQueue)] = data
	}
	return all
}

func withoutIDs(entries []goredis.XMessage) events {
	var all events
	for _, entry := range entries {
		all = append(all, EntryFields(entry.Values))
	}
	return all
}

var roundedNumber = regexp.MustCompile(`\d(\.\d+)?e\+\d`)

// expect compares all that the server holds, and looks for numbers that Lua has rounded.
func (b *bench) expect(want keys) {
	b.t.Helper()
	got := b.state()
	diff := cmp.Diff(want, got)
	failIf(b.t, diff != "", "state (-want +got):\n%s", diff)
	maps.DeleteFunc(got, func(_ string, value any) bool { _, isScores := value.(scores); return isScores }) // which the client turns into floats
	found := roundedNumber.FindString(fmt.Sprint(got))
	failIf(b.t, found != "", "found the number %s…, want all digits", found)
}

// unchanged runs act and expects a dump, down to the ids of stream entries, as it was before.
func (b *bench) unchanged(act func()) {
	b.t.Helper()
	before := b.server.Dump(b.t)
	act()
	diff := cmp.Diff(before, b.server.Dump(b.t))
	failIf(b.t, diff != "", "state (-before +after):\n%s", diff)
}

func (b *bench) load(uid string) *Record {
	b.t.Helper()
	records, err := b.Load(context.Background(), []string{uid})
	must(b.t, err)
	return records[uid]
}

// roomy is a high-water mark that no test reaches by accident.
const roomy = 1_000_000

func (b *bench) apply(transitions ...*Transition) []Code {
	b.t.Helper()
	items := make([]Item, len(transitions))
	for i, t := range transitions {
		items[i].Transition = t
	}
	return b.commit(items...)
}

func (b *bench) commit(items ...Item) []Code {
	b.t.Helper()
	return b.commitUpTo(roomy, items...)
}

func (b *bench) commitUpTo(maxQueued int, items ...Item) []Code {
	b.t.Helper()
	codes, err := b.Commit(context.Background(), Batch{Now: b.now, Items: items, Owner: "p1", MaxQueued: maxQueued})
	must(b.t, err)
	return codes
}

func (b *bench) mustApply(transitions ...*Transition) {
	b.t.Helper()
	for i, code := range b.apply(transitions...) {
		stopIf(b.t, code != CodeApplied, "transition %d: %v, want applied", i, code)
	}
}

// put makes the transition that saves a one-shot with this payload, due at once.
func (b *bench) put(uid, payload string) *Transition {
	b.t.Helper()
	return b.save(b.load(uid), payload)
}

// putTaken makes the same of a model whose attempt a worker has.
func (b *bench) putTaken(uid, payload string) *Transition {
	b.t.Helper()
	record := b.load(uid)
	record.Taken = true
	return b.save(record, payload)
}

func (b *bench) save(record *Record, payload string) *Transition {
	b.t.Helper()
	definition := model.Definition{UID: record.UID, Payload: payload}
	decision, outcome, err := record.Put(definition, policy.Default(), record.Exists, b.now)
	stopIf(b.t, err != nil || outcome != model.Applied, "put %s: %q, %v", record.UID, outcome, err)
	return record.Decide(decision, b.now)
}

// start makes the transition that hands out an attempt.
func (b *bench) start(uid, attemptUID string) *Transition {
	b.t.Helper()
	record := b.load(uid)
	return record.Decide(record.Start(b.now, attemptUID), b.now)
}

func expectCodes(t testing.TB, got []Code, want ...Code) {
	t.Helper()
	diff := cmp.Diff(want, got)
	failIf(t, diff != "", "codes (-want +got):\n%s", diff)
}

func expectEqual[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	diff := cmp.Diff(want, got)
	failIf(t, diff != "", "%s (-want +got):\n%s", what, diff)
}

func TestMain(m *testing.M) {
	redis.LogTo(nil)
	_ = flags.Set("rapid.checks", long.Or("10", "100")) // unless the command line says how many
	testkit.Main(m)
}

// callCase is one call of a daemon or a person, with everything that Redis holds before and after.
type callCase struct {
	name string
	seed keys
	call func(b *bench) any
	says any  // what the call returns
	want keys // nil: as before, down to the ids of stream entries
}

func eachCall(t *testing.T, cases []callCase) {
	onBoth(t, func(t *testing.T, b *bench) {
		for _, test := range cases {
			t.Run(test.name, func(t *testing.T) {
				b := b.fresh(t)
				b.seed(test.seed)
				act := func() { expectEqual(t, "answer", test.says, test.call(b)) }
				if test.want == nil {
					b.unchanged(act)
					return
				}
				act()
				b.expect(test.want)
			})
		}
	})
}

// go-redis sends the text of a script that Redis does not know. A user who may only run loaded scripts is refused that.
func TestNoCallSendsTheTextOfAScript(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	stopIf(t, err != nil || len(files) == 0, "%v, %v", files, err)
	sends := regexp.MustCompile(`\.(Run|RunRO|Eval|EvalRO)\(ctx`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		found := sends.FindString(string(text))
		failIf(t, found != "" && !strings.HasSuffix(file, "_test.go"), "%s: expected scripts to be run by their digests, found %s", file, found)
	}
}
