package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/document"
)

func TestEachKeyIsWrittenAsDocumented(t *testing.T) {
	want := map[string]string{
		"Input": "q-input", "Output": "q-output", "Control": "q-control",
		"Model": "q:model:u", "Payload": "q:payload:u", "History": "q:history:u",
		"Due": "q:due", "Urgent": "q:urgent", "Disabled": "q:disabled", "Errors": "q:errors", "Error": "q:error:u", "PastErrors": "q:past_errors", "Limit": "q:limit:u", "Rate": "q:rate:u", "Circuit": "q:circuit:u", "Limits": "q:limits", "Logs": "q:logs", "Calendars": "q:calendars", "Failing": "q:failing", "StaleAt": "q:stale_at", "Late": "q:late", "Stale": "q:stale", "Blockers": "q:gates", "Holds": "q:holds", "Label": "q:label:u", "Parked": "q:parked", "ParkedBy": "q:parked:u",
		"Dispatchers": "q:dispatchers", "Running": "q:running", "Policies": "q:policies", "PolicyUses": "q:policy_uses", "Claimed": "q:claimed:u", "Pollers": "q:pollers",
		"ClaimedCommands": "q:claimed:control", "Leader": "q:holder",
		"Taken": "q:taken:u", "Workers": "q:workers", "Orders": "q:orders",
		"Journal": "q:journal", "Deeds": "q:deeds", "Outbox": "q:outbox", "Rejected": "q:rejected", "Stats": "q:stats", "Zones": "q:zones", "Hours": "q:hours", "Wake": "q:wake", "QueueCircuit": "q:circuit:queue", "Front": "q:front", "Heard": "q:heard",
		"Settings": "{q}:settings", "Forwarded": "q:forwarded", "Commands": "q:commands", "Reply": "q:reply:u", "Bulk": "q:bulk:u", "Bulks": "q:bulks", "BulksEnded": "q:bulks_ended",
		"Recipients": "q:recipients:u", "Notices": "q:notices:u", "Summary": "q:summary:u", "Deliveries": "q:deliveries", "Undelivered": "q:undelivered", "Told": "q:told:u",
	}
	keys, err := NewKeys("q")
	must(t, err)
	expectEqual(t, "keys", want, allKeys(keys, func(string) string { return "u" }))
}

// allKeys builds a key of each kind, by the name of its field or method; suffix makes the uid or owner of those that have one.
func allKeys(keys Keys, suffix func(method string) string) map[string]string {
	all := map[string]string{}
	for field, value := range reflect.ValueOf(keys).Fields() {
		if field.Name != "Queue" {
			all[field.Name] = value.String()
		}
	}
	for method, value := range reflect.ValueOf(&keys).Methods() {
		if build, is := value.Interface().(func(string) string); is {
			all[method.Name] = build(suffix(method.Name))
		}
	}
	return all
}

func TestOnlyNamesThatCannotBeMistakenAreQueues(t *testing.T) {
	long := strings.Repeat("q", 64)
	good := []string{"bigtables", "q", "Q-1_2.3", long, "{bigtables}", "{bigtables:3}", "{" + long + "}", "-input", "..", "{:}"}
	bad := []string{
		"", " ", "a b", "a:b", "a{b}", "{a}b", "{a", "a}", "{}", "{{a}}", "{a b}", long + "q", "{" + long + "q}",
		"a\n", "a\x00", "ä", "*", "a?", "[a]", "a/b", `"`, "{a\n}", "{a}\n",
	}
	for _, name := range good {
		if keys, err := NewKeys(name); err != nil || keys.Queue != name || keys.Tagged() != (name[0] == '{') {
			t.Errorf("queue %q: %v, tagged %v", name, err, keys.Tagged())
		}
	}
	for _, name := range bad {
		if _, err := NewKeys(name); err == nil {
			t.Errorf("queue %q was accepted", name)
		}
	}
}

func aQueue(t *rapid.T, name string) Keys {
	pattern := rapid.SampledFrom([]string{
		`[A-Za-z0-9_.-]{1,8}`, `\{[A-Za-z0-9_.:-]{1,8}\}`, `(a|b)(-input|-output|-control)?`, `\{(a|b)(:model:|:due|-input)?\}`,
	}).Draw(t, name+" pattern")
	keys, err := NewKeys(rapid.StringMatching(pattern).Draw(t, name))
	must(t, err)
	return keys
}

// An owner or uid may be anything without braces, even the rest of another key.
func aSuffix() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_.:@/+=~-]{0,8}`),
		rapid.SampledFrom([]string{"", "due", ":due", "model:m1", "-input", "m1:payload:m1", "claimed:p1"}))
}

func TestNoTwoKindsOfKeysNorTwoQueuesCanCollideAndAllOfATaggedQueueShareItsTag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owner, queues := map[string]string{}, map[string]Keys{}
		for _, name := range []string{"first", "second"} {
			keys := aQueue(t, name)
			queues[keys.Queue] = keys
		}
		for _, keys := range queues {
			for method, key := range allKeys(keys, func(method string) string { return aSuffix().Draw(t, method) }) {
				name := keys.Queue + " " + method
				if other, taken := owner[key]; taken && method != "Settings" { // of one queue, with braces and without
					t.Fatalf("key %q is built by %q and by %q", key, other, name)
				}
				owner[key] = name
				if keys.Tagged() && !strings.HasPrefix(key, keys.Queue) {
					t.Errorf("%s builds %q, want it to begin with %q", method, key, keys.Queue)
				}
			}
		}
	})
}

func TestAStoreRefusesAConfigurationThatCannotWork(t *testing.T) {
	tests := []struct {
		config    Config
		clustered bool
		want      string
	}{
		{Config{Queue: "a b"}, false, "queue: expected"},
		{Config{JournalCap: -2}, false, "journal cap: expected at least 1, or none, found -2"},
		{Config{MessageCap: 1000}, false, "message cap: expected 4096 to 67108864 bytes, found 1000"},
		{Config{MessageCap: 64<<20 + 1}, false, "message cap: expected 4096 to 67108864 bytes, found 67108865"},
		{Config{HistoryCap: -2}, false, "history cap: expected at least 1, or none, found -2"},
		{Config{RejectedCap: -1}, false, "rejected cap: expected at least 1, found -1"},
		{Config{}, true, `queue: expected braces on Redis Cluster as in "{bigtables}", found "bigtables"`},
	}
	for _, test := range tests {
		_, err := New(&redis.Clients{Clustered: test.clustered}, test.config)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("New(%+v) = %v, want %q", test.config, err, test.want)
		}
	}
}

// FuzzKeysOfAModel checks that an accepted uid is found again in its keys and its log lines, and that it changes neither the slot of
// a key nor the pattern that lists keys.
func FuzzKeysOfAModel(f *testing.F) {
	for _, uid := range []string{"t", "tbl_1", "a:b", "model:a", ":due", "a.b:c@d/e+f=g~h-i", strings.Repeat("x", 200), "{a}", "a*", "a?", "a\n", `a"`, "é"} {
		f.Add(uid)
	}
	keys := []Keys{newKeys("bigtables"), newKeys("{bigtables:3}")}
	f.Fuzz(func(t *testing.T, uid string) {
		if document.ValidateUID(uid) != nil {
			return
		}
		for _, k := range keys {
			for key, prefix := range map[string]string{k.Model(uid): k.Model(""), k.Payload(uid): k.Payload(""), k.History(uid): k.History("")} {
				if found, cut := strings.CutPrefix(key, prefix); !cut || found != uid {
					t.Fatalf("%q is found in %q as %q", uid, key, found)
				}
				if strings.ContainsAny(strings.TrimPrefix(key, k.Queue), "{}") || redis.EscapeGlob(key) != key {
					t.Fatalf("%q means more than itself in %q", uid, key)
				}
			}
		}
		var line bytes.Buffer
		log := zerolog.New(&line)
		log.Info().Str("uid", uid).Send()
		var told struct{ UID string }
		if err := json.Unmarshal(line.Bytes(), &told); err != nil || told.UID != uid || !strings.Contains(line.String(), `"uid":"`+uid+`"`) {
			t.Fatalf("%q is logged as %s", uid, line.String())
		}
	})
}

// migration moves the slot of a queue from one master of a cluster to another, by hand.
type migration struct {
	t              *testing.T
	slot           int
	source, target *goredis.Client
}

func newMigration(t *testing.T, s *testkit.Server) *migration {
	t.Helper()
	var nodes []*goredis.Client
	for _, addr := range s.Addrs {
		node := goredis.NewClient((&testkit.Server{Addrs: []string{addr}}).Options().Simple())
		t.Cleanup(func() { _ = node.Close() })
		nodes = append(nodes, node)
	}
	m := &migration{t: t, slot: int(nodes[0].ClusterKeySlot(t.Context(), benchQueue).Val())}
	owner := slices.IndexFunc(nodes, func(node *goredis.Client) bool { return len(m.keys(node)) > 0 })
	m.source, m.target = nodes[owner], nodes[(owner+1)%len(nodes)]
	return m
}

func (m *migration) keys(node *goredis.Client) []string {
	return node.ClusterGetKeysInSlot(m.t.Context(), m.slot, 100).Val()
}

func (m *migration) set(node *goredis.Client, state string, other *goredis.Client) {
	m.t.Helper()
	id := other.Do(m.t.Context(), "CLUSTER", "MYID").Val()
	must(m.t, node.Do(m.t.Context(), "CLUSTER", "SETSLOT", m.slot, state, id).Err())
}

func (m *migration) move(keys ...string) {
	m.t.Helper()
	host, port, err := net.SplitHostPort(m.target.Options().Addr)
	must(m.t, err)
	for _, key := range keys {
		must(m.t, m.source.Do(m.t.Context(), "MIGRATE", host, port, key, 0, check.Limit.Milliseconds()).Err())
	}
}

func TestAQueueWhoseSlotMovesStandsStillUnharmedAndGoesOnWhereItIsThen(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Cluster(t)
	b := newBench(t, s)
	b.seed(keys{":due": scores{"m": 1}, ":running": scores{"n": 1}, "-output": list{"o"}})
	before := b.state()
	store, err := New(connect(t, "redis-cluster://"+s.Addr, redis.ConnectOptions{}), Config{Queue: benchQueue})
	must(t, err)
	claim := func(ctx context.Context) error {
		_, err := store.Claim(ctx, "p", Holding{}, 1, time.Second)
		return err
	}
	read := func(ctx context.Context) error { _, err := store.ReadDue(ctx, DueRequest{Limit: 1}); return err }

	m := newMigration(t, s)
	m.set(m.target, "IMPORTING", m.source)
	m.set(m.source, "MIGRATING", m.target)
	m.move(b.Keys.Due)
	for name, call := range map[string]func(context.Context) error{"claim": claim, "read": read} {
		err := call(t.Context())
		failIf(t, !goredis.IsTryAgainError(errors.Unwrap(err)), "%s in a slot of two nodes: expected TRYAGAIN, found %v", name, err)
	}
	m.move(m.keys(m.source)...)
	m.set(m.target, "NODE", m.target)
	m.set(m.source, "NODE", m.target)
	expectEqual(t, "the queue", before, newBench(t, s).state())

	ctx, cancel := context.WithTimeout(t.Context(), check.Limit)
	defer cancel()
	for _, call := range []func(context.Context) error{read, claim} {
		for err := call(ctx); err != nil; err = call(ctx) {
			stopIf(t, ctx.Err() != nil, "expected the queue to go on, found %v", err)
		}
	}
}
