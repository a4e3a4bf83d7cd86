package store

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	miniredis "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// answerTo makes the fake server answer every command of this name, about this key, in another way. An empty key means each.
func (b *bench) answerTo(command, key string, reply func(peer *miniredis.Peer)) {
	b.server.Mini.Server().SetPreHook(func(peer *miniredis.Peer, name string, args ...string) bool {
		if name != command || key != "" && !slices.Contains(args, key) {
			return false
		}
		reply(peer)
		return true
	})
}

func loading(peer *miniredis.Peer) { peer.WriteError("LOADING Redis is loading the dataset in memory") }

// Between any two commands of a call Redis may go away.
func TestACallThatIsCutOffSaysWhatItWanted(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	b.seed(keys{
		":model:m1": but(dueModel, "policy", "asking"), ":policies": hash{"asking": `{"retries":{"expr":"queue_depth"}}`},
		":taken:w1": list{inputEntry(0)}, ":pollers": scores{"p1": six},
	})
	live := newBench(t, b.server, func(c *Config) { c.Clock = nil })
	ctx, k := t.Context(), b.Keys
	force := &model.Command{Type: model.CommandRun, UID: "m1", Force: true}
	put := &model.Command{Type: model.CommandPut, UID: "m1", Definition: model.Definition{UID: "m1", PolicyName: "p"}}
	load := func() error { _, err := b.Load(ctx, list{"m1"}); return err }
	stats := func() error { _, err := b.Report().Stats(ctx); return err }
	open := func(command *model.Command) func() error {
		return func() error { _, err := b.Read(ctx, list{"m1"}, []*model.Command{command}); return err }
	}
	requeue := func() error { _, err := b.Pool().Leave(ctx, "w1"); return err }
	for _, test := range []struct {
		command, key, want string
		call               func() error
	}{
		{"HMGET", k.Policies, "read models: ", load},
		{"LLEN", k.Input, "read the length of the input list: ", load},
		{"HGETALL", k.Model("m1"), "read models: ", open(force)},
		{"LRANGE", k.Input, "read queued attempts: ", func() error { _, err := b.Queued(ctx); return err }},
		{"HMGET", k.Policies, "read models: ", open(put)},
		{"HKEYS", k.Policies, "list policies: ", open(put)},
		{"ZCARD", k.Running, "read stats: ", stats},
		{"TIME", "", "read the clock of redis: ", func() error { _, err := live.Report().Stats(ctx); return err }},
		{"LRANGE", k.Taken("w1"), "read taken entries: ", requeue},
		{"TIME", "", "read the clock of redis: ", func() error { _, err := live.Pool().Leave(ctx, "w1"); return err }},
		{"EVALSHA", "", "requeue entries: ", requeue},
		{"EVALSHA", "", "give a heartbeat: ", func() error { _, _, err := b.Pool().Heartbeat(ctx, "w1"); return err }},
		{"ZRANGEBYSCORE", "", "read workers: ", func() error { _, err := b.Pool().ExpiredWorkers(ctx, b.now, time.Second); return err }},
		{"EVALSHA", "", "push messages to the output list: ", func() error { _, err := b.Pool().Answer(ctx, "w1", []Answer{{}}); return err }},
		{"EVALSHA", "", "take entries of the input list: ", func() error { _, err := b.Pool().Take(ctx, TakeRequest{Owner: "w1"}); return err }},
		{"LRANGE", "", "read history: ", func() error { _, err := b.Report().History(ctx, "m1"); return err }},
		{"XREAD", "", "read the journal: ", func() error { _, _, err := b.Report().Tail(ctx, TailStart); return err }},
		{"XRANGE", "", "read the outbox: ", func() error { _, _, err := b.Report().TailOutbox(ctx, TailStart); return err }},
		{"SCAN", "", "walk over the models: ", func() error { return b.Report().EachSelected(ctx, model.Selector{}, nil) }},
		{"HKEYS", "", "list policies: ", func() error { _, err := b.Report().PolicyNames(ctx); return err }},
		{"HSCAN", k.PolicyUses, "walk over the uses of policies: ", func() error { _, err := b.Fleet().PolicyUses(ctx); return err }},
		{"EVALSHA", "", "forget a policy: ", func() error { _, err := b.Fleet().ForgetPolicy(ctx, PolicyUse{Name: "p"}); return err }},
		{"EVALSHA", "", "measure the circuit of the queue: ", func() error { _, err := b.MeasureCircuit(ctx, b.now); return err }},
		{"HGETALL", k.QueueCircuit, "read the circuit of the queue: ", func() error { _, err := b.Fleet().QueueCircuit(ctx); return err }},
		{"HGETALL", k.Stats, "read the circuit of the queue: ", func() error { _, err := b.Fleet().QueueCircuit(ctx); return err }},
		{"HGETALL", k.Stats, "set the circuit of the queue: read the circuit of the queue: ", func() error { return b.Fleet().SetQueueCircuit(ctx, aQueueCircuit(), "ann") }},
		{"EVALSHA", "", "set the circuit of the queue: ", func() error { return b.Fleet().SetQueueCircuit(ctx, aQueueCircuit(), "ann") }},
		{"EVALSHA", "", "turn a circuit: ", func() error { return b.turn(CircuitClosed, "queue", 0) }},
	} {
		b.answerTo(test.command, test.key, loading)
		if err := test.call(); err == nil || !strings.HasPrefix(err.Error(), test.want) || !redis.HasErrorPrefix(err, "LOADING") {
			t.Errorf("%s %s: error %v, want %q and the words of Redis", test.command, test.key, err, test.want)
		}
	}
}

func TestAClusterThatIsGoneHasNoModelsToList(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	gone := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{b.server.Addr}})
	b.Clients = &Clients{Read: gone, Clustered: true}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Report().EachSelected(t.Context(), model.Selector{}, nil); err == nil || !strings.HasPrefix(err.Error(), "find the node of the queue: ") {
		t.Errorf("error %v, want that no models can be listed", err)
	}
}

// A proxy, or another program that took the name of a script, may say anything.
func TestAReplyThatNoScriptGivesIsAnError(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	ctx := t.Context()
	calls := map[string]func() error{
		"read due models: ":                  func() error { _, err := b.ReadDue(ctx, DueRequest{Limit: 1}); return err },
		"claim messages: ":                   func() error { _, err := b.Claim(ctx, "p1", 1, testLease); return err },
		"give a heartbeat: ":                 func() error { _, _, err := b.Pool().Heartbeat(ctx, "w1"); return err },
		"take entries of the input list: ":   func() error { _, err := b.Pool().Take(ctx, TakeRequest{Owner: "w1"}); return err },
		"measure the circuit of the queue: ": func() error { _, err := b.MeasureCircuit(ctx, b.now); return err },
		"commit a batch: ": func() error {
			_, err := b.Commit(ctx, Batch{Now: b.now, Owner: "p1", MaxQueued: 1, Items: []Item{{Transition: &Transition{uid: "m1"}}}})
			return err
		},
	}
	tests := map[string]func(peer *miniredis.Peer){
		"nothing":    func(peer *miniredis.Peer) { peer.WriteLen(0) },
		"no instant": func(peer *miniredis.Peer) { peer.WriteStrings(list{"noon", "1", "2"}) },
		"no clock":   func(peer *miniredis.Peer) { peer.WriteStrings(list{"", "1", "2"}) },
		"no pair":    func(peer *miniredis.Peer) { peer.WriteStrings(list{"noon", "1"}) },
		"too short":  func(peer *miniredis.Peer) { peer.WriteStrings(list{"1", "0"}) },
		"no time":    func(peer *miniredis.Peer) { peer.WriteStrings(list{"now", "0", "", "", "", ""}) },
		"no score":   func(peer *miniredis.Peer) { peer.WriteStrings(list{"1", "0", "soon", "", "", ""}) },
	}
	wants := map[string]list{
		"no pair":    {"claim messages: ", "give a heartbeat: "},
		"no instant": {"take entries of the input list: "},
		"no clock":   {"take entries of the input list: "},
		"too short":  {"read due models: "},
		"no time":    {"read due models: "},
		"no score":   {"read due models: "},
	}
	for reply, write := range tests {
		b.answerTo("EVALSHA", "", write)
		for prefix, call := range calls {
			if wanted := wants[reply]; wanted != nil && !slices.Contains(wanted, prefix) {
				continue
			}
			if err := call(); err == nil || !strings.HasPrefix(err.Error(), prefix) || !strings.Contains(err.Error(), ": expected ") {
				t.Errorf("%s: error %v, want %q and what was expected", reply, err, prefix)
			}
		}
	}
}

func TestAPolicyThatJSONCannotHoldIsNotStored(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	p := policy.Default()
	p.Name, p.Jitter = "p", math.NaN()
	if err := b.Fleet().PutPolicy(t.Context(), p); err == nil || !strings.HasPrefix(err.Error(), "encode policy: ") {
		t.Errorf("error %v, want one of the encoding", err)
	}
	b.expect(keys{})
}
