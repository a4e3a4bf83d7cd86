package store

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// A poller that does not lead gets its results, and none of the commands.
func TestCommandsAreClaimedByTheHolderOfTheLaneOnly(t *testing.T) {
	fresh := list{"or1", "n" + firstNumber + " k1", "n1795240800000002 k2"}
	alive, silent := scores{"p2": six - 9999}, scores{"p2": six - 10000}
	tests := []struct {
		name    string
		seed    keys
		holds   bool
		claimed list
	}{
		{"nobody holds it", keys{}, true, fresh},
		{"the poller itself holds it", keys{":holder": "p1"}, true, fresh},
		{"another holds it and is alive", keys{":holder": "p2", ":pollers": alive}, false, list{"or1"}},
		{"another holds it and has resigned", keys{":holder": "p2"}, true, fresh},
		{"another holds it and its lease has expired", keys{":holder": "p2", ":pollers": silent}, true, fresh},
		{"another holds it and its heartbeat lies ahead", keys{":holder": "p2", ":pollers": scores{"p2": six + 1}}, true, fresh},
		{"another has left commands in it", keys{":holder": "p2", ":claimed:control": list{"n1 old"}}, true, list{"or1", "n1 old"}},
		{"the poller itself has left commands in it", keys{":holder": "p1", ":claimed:control": list{"n1 old"}}, true, list{"or1", "n1 old"}},
		{"another has commands in it and is alive", keys{":holder": "p2", ":pollers": alive, ":claimed:control": list{"n1 old"}}, false, list{"or1"}},
	}
	everywhere(t, func(t *testing.T, b *bench) {
		for _, test := range tests {
			b.server.Flush(t)
			b.seed(and(keys{"-output": list{"r1"}, "-control": list{"k1", "k2"}}, test.seed))
			claim, err := b.Claim(t.Context(), "p1", Holding{}, 10, testLease)
			must(t, err)
			var claimed list
			for _, message := range claim.Messages {
				claimed = append(claimed, message.Entry)
			}
			expectEqual(t, test.name+": claimed", test.claimed, claimed)
			leads := b.state()[":holder"] == "p1"
			failIf(t, leads != test.holds || claim.Leads != test.holds, "%s: p1 leads: %v, and believes: %v", test.name, leads, claim.Leads)
		}
	})
}

// An update finds the queued attempt in its place, or leaves the list alone; an attempt that loses its fence takes its entry with it.
func TestAnEntryIsFoundByItsValueWhateverHasHappenedToItsModel(t *testing.T) {
	type act = func(b *bench) *Transition
	update := func(b *bench) *Transition { return b.put("m1", `{"n":2}`) }
	updateTaken := func(b *bench) *Transition { return b.putTaken("m1", `{"n":2}`) }
	begin := func(b *bench) *Transition {
		record := b.load("m1")
		decision, _ := record.Begin(b.now, "w1")
		return record.Decide(decision, b.now)
	}
	everywhere(t, func(t *testing.T, b *bench) {
		for name, test := range map[string]struct {
			meanwhile []act
			queued    bool
		}{
			"nothing":                                 {nil, true},
			"it was saved anew":                       {[]act{update}, true},
			"it was begun and requeued":               {[]act{begin}, true},
			"it was begun, requeued and saved anew":   {[]act{begin, update}, true},
			"it was saved anew and begun":             {[]act{update, begin}, true},
			"a worker has taken it":                   {nil, false},
			"a worker has taken it, it is saved anew": {[]act{updateTaken}, false},
		} {
			b.server.Flush(t)
			b.mustApply(b.put("m1", `{"n":1}`))
			b.mustApply(b.start("m1", "a1"))
			if !test.queued {
				b.redis.LPop(t.Context(), b.Keys.Input)
			}
			b.seed(keys{"-input": list{"behind"}})
			for _, act := range test.meanwhile {
				b.now = b.now.Add(time.Minute)
				b.mustApply(act(b))
			}
			entries := b.state()["-input"].(list)
			failIf(t, test.queued && entries[0] != b.load("m1").Entry(), "%s: the list has %q, the model %q", name, entries, b.load("m1").Entry())
			b.mustApply(b.load("m1").Remove())
			expectEqual(t, name+": the list at the end", any(list{"behind"}), b.state()["-input"])
		}
	})
}

// Commands wait for nobody who reads the input list: the script takes an entry out by its value.
func TestNoCommandReadsTheInputList(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	b.mustApply(b.put("m1", "{}"))
	b.mustApply(b.start("m1", "a1"))
	b.answerTo("LRANGE", b.Keys.Input, loading)
	for _, command := range []*model.Command{
		{Type: model.CommandRun, UID: "m1", Force: true}, {Type: model.CommandDisable, UID: "m1"}, {Type: model.CommandRemove, UID: "m1"},
	} {
		_, err := b.Read(t.Context(), list{"m1"}, []*model.Command{command})
		failIf(t, err != nil, "%s: %v", command.Type, err)
	}
}
