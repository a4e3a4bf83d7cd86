package store

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	miniredis "github.com/alicebob/miniredis/v2/server"
	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
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
	load := func() error { return only(b.Load(ctx, list{"m1"})) }
	open := func(command *model.Command) func() error {
		return func() error { return only(b.Read(ctx, list{"m1"}, []*model.Command{command})) }
	}
	requeue := func() error { return only(b.Pool().Leave(ctx, "w1")) }
	for _, test := range []struct {
		command, key, want string
		call               func() error
	}{
		{"HMGET", k.Policies, "read models: ", load},
		{"LLEN", k.Input, "read the length of the input list: ", load},
		{"HGETALL", k.Model("m1"), "read models: ", open(force)},
		{"LRANGE", k.Input, "read queued attempts: ", func() error { return only(b.Queued(ctx)) }},
		{"HMGET", k.Policies, "read models: ", open(put)},
		{"HKEYS", k.Policies, "list policies: ", open(put)},
		{"TIME", "", "read the clock of redis: ", func() error { return only(live.Now(ctx)) }},
		{"EVALSHA", "", "read due models: ", func() error { return only(b.ReadDue(ctx, DueRequest{Limit: 1})) }},
		{"WATCH", "", `forget "m1": `, func() error { return b.Forget(ctx, "m1", "") }},
		{"HMGET", k.Policies, "read policies: ", func() error { return only(b.Policies(ctx, list{"p"})) }},
		{"EVALSHA", "", "claim messages: ", func() error { return only(b.Claim(ctx, "p1", Holding{}, 1, testLease)) }},
		{"EVALSHA", "", "adopt messages: ", func() error { return only(b.Adopt(ctx, "p1", "p2", time.Second, 1)) }},
		{"ZRANGEBYSCORE", k.Pollers, "read pollers: ", func() error { return only(b.ExpiredPollers(ctx, b.now, time.Second)) }},
		{"EVALSHA", "", "resign poller: ", func() error { return b.Resign(ctx, "p1") }},
		{"EVALSHA", "", "commit a batch: ", func() error {
			return only(b.Commit(ctx, Batch{Now: b.now, Owner: "p1", MaxQueued: 1, Items: []Item{{Transition: &Transition{uid: "m1"}}}}))
		}},
		{"BLMOVE", "", "wait for messages: ", func() error { return only(b.WaitControl(ctx)) }},
		{"BLPOP", "", "wait for a wake call: ", func() error { return only(b.WaitWake(ctx)) }},
		{"HGET", k.Policies, "read policy: ", func() error { _, _, err := b.Report().PolicyText(ctx, "default"); return err }},
		{"HGET", "", "store policy: ", func() error { return b.Fleet().PutPolicy(ctx, named(t, `{"name":"nightly"}`)) }},
		{"HGET", "", "remove policy: ", func() error { return only(b.Fleet().RemovePolicy(ctx, "nightly")) }},
		{"LRANGE", k.Taken("w1"), "read taken entries: ", requeue},
		{"TIME", "", "read the clock of redis: ", func() error { return only(live.Pool().Leave(ctx, "w1")) }},
		{"EVALSHA", "", "requeue entries: ", requeue},
		{"EVALSHA", "", "give a heartbeat: ", func() error { _, err := b.Pool().Heartbeat(ctx, "w1"); return err }},
		{"ZRANGEBYSCORE", "", "look for dead workers: ", func() error { return only(b.RequeueExpired(ctx, b.now, b.now, time.Second)) }},
		{"EVALSHA", "", "push messages to the output list: ", func() error { return only(b.Pool().Answer(ctx, "w1", []Answer{{}})) }},
		{"EVALSHA", "", "take entries of the input list: ", func() error { return only(b.Pool().Take(ctx, TakeRequest{Owner: "w1"})) }},
		{"SCAN", "", "walk over the models: ", func() error { return b.Report().EachSelected(ctx, model.Selector{}, nil) }},
		{"HKEYS", "", "list policies: ", func() error { return only(b.Report().PolicyNames(ctx)) }},
		{"HSCAN", k.PolicyUses, "walk over the uses of policies: ", func() error { return only(b.Fleet().PolicyUses(ctx)) }},
		{"WATCH", "", "forget a policy: ", func() error { return only(b.Fleet().ForgetPolicy(ctx, PolicyUse{Name: "p"})) }},
	} {
		b.answerTo(test.command, test.key, loading)
		if err := test.call(); err == nil || !strings.HasPrefix(err.Error(), test.want) || !goredis.HasErrorPrefix(err, "LOADING") {
			t.Errorf("%s %s: error %v, want %q and the words of Redis", test.command, test.key, err, test.want)
		}
	}
}

func TestAClusterThatIsGoneHasNoModelsToList(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	gone := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{b.server.Addr}})
	b.Clients = &redis.Clients{Read: gone, Clustered: true}
	must(t, gone.Close())
	err := b.Report().EachSelected(t.Context(), model.Selector{}, nil)
	failIf(t, err == nil || !strings.HasPrefix(err.Error(), "find the node of the queue: "), "error %v, want that no models can be listed", err)
}

// A proxy, or another program that took the name of a script, may say anything.
func TestAReplyThatNoScriptGivesIsAnError(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	ctx := t.Context()
	calls := map[string]func() error{
		"read due models: ":                func() error { return only(b.ReadDue(ctx, DueRequest{Limit: 1})) },
		"claim messages: ":                 func() error { return only(b.Claim(ctx, "p1", Holding{}, 1, testLease)) },
		"give a heartbeat: ":               func() error { _, err := b.Pool().Heartbeat(ctx, "w1"); return err },
		"take entries of the input list: ": func() error { return only(b.Pool().Take(ctx, TakeRequest{Owner: "w1"})) },
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
	err := b.Fleet().PutPolicy(t.Context(), p)
	failIf(t, err == nil || !strings.HasPrefix(err.Error(), "encode policy: "), "error %v, want one of the encoding", err)
	b.expect(keys{})
}
