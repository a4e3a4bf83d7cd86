package store

import (
	"testing"
	"time"
)

// asks asks pools for something.
func asks(verb string, pools ...string) func(*bench) any {
	return func(b *bench) any {
		must(b.t, (&Queue{Parts: []*Store{b.Store}}).Fleet().OrderPools(b.t.Context(), pools, PoolOrder{Verb: verb, By: "ann"}))
		return nil
	}
}

func journaled(event, owner string) map[string]any {
	return map[string]any{"event": event, "key": owner, "at": "2026-11-21T06:00:00.000Z", "by": "ann"}
}

func TestAPoolWithAnOrderTakesNothingNewAndHearsOfItWithEachHeartbeat(t *testing.T) {
	quiet := PoolOrder{Verb: PoolQuiet, By: "ann"}
	ordered := keys{":workers": scores{"w1": six}, ":orders": hash{"w1": "quiet ann"}, "-input": list{"a", "b"}}
	requeues := func(b *bench) any { return b.requeues("w1", 7) }
	eachCall(t, []callCase{
		{
			name: "a pool is asked once, and the journal tells who asks", call: func(b *bench) any { asks(PoolQuiet, "w1", "w2")(b); return asks(PoolQuiet, "w1")(b) },
			seed: keys{":workers": scores{"w1": 5, "w2": 5}},
			want: keys{
				":workers": scores{"w1": 5, "w2": 5}, ":orders": hash{"w1": "quiet ann", "w2": "quiet ann"}, ":forwarded": hash{"changes": "1"},
				":journal": events{journaled("worker_quiet", "w1"), journaled("worker_quiet", "w2")},
			},
		},
		{
			name: "a later order replaces the former one, and none ends it",
			seed: keys{":workers": scores{"w1": 5}, ":orders": hash{"w1": "quiet ann"}},
			call: func(b *bench) any { asks(PoolStop, "w1")(b); return asks("", "w1")(b) },
			want: keys{":workers": scores{"w1": 5}, ":forwarded": hash{"changes": "2"}, ":journal": events{journaled("worker_stop", "w1"), journaled("worker_resume", "w1")}},
		},
		{
			name: "what pools that are gone were asked for goes with the next order, whatever a part calls those that live", call: asks("", "w2"),
			seed: keys{":workers": scores{"web1:4711-abcdefgh~aaaaaaaa": 5}, ":orders": hash{"w1": "stop", "w2": "quiet", "web1:4711-abcdefgh": "quiet"}},
			want: keys{
				":workers": scores{"web1:4711-abcdefgh~aaaaaaaa": 5}, ":orders": hash{"web1:4711-abcdefgh": "quiet"}, ":forwarded": hash{"changes": "1"},
				":journal": events{journaled("worker_resume", "w2")},
			},
		},
		{
			name: "a quiet pool takes nothing", seed: ordered,
			call: func(b *bench) any { return b.take(TakeRequest{Owner: "w1", Most: 2}) },
			says: Taken{Entries: list{}, Order: quiet, Now: sixOClock},
		},
		{
			name: "a heartbeat brings the order", seed: ordered,
			call: func(b *bench) any {
				taken, err := b.Pool().Heartbeat(b.t.Context(), "w1")
				must(b.t, err)
				return taken
			},
			says: Taken{Entries: list{}, Order: quiet, Now: sixOClock},
		},
		{
			name: "a quiet pool still learns what a lost reply had brought", seed: and(ordered, keys{":taken:w1": list{"x", "y"}}),
			call: func(b *bench) any { return b.take(TakeRequest{Owner: "w1", Most: 2, Known: -1}) },
			says: Taken{Entries: list{"x", "y"}, Whole: true, Order: quiet, Now: sixOClock},
		},
		{
			name: "an order reaches its pool alone", seed: ordered,
			call: func(b *bench) any { return b.take(TakeRequest{Owner: "w2", New: true, Most: 1}) },
			says: Taken{Entries: list{"a"}, Now: sixOClock},
			want: keys{":workers": scores{"w1": six, "w2": six}, ":orders": hash{"w1": "quiet ann"}, "-input": list{"b"}, ":taken:w2": list{"a"}},
		},
		{
			name: "a pool that was forgotten stays quiet under its next name", seed: keys{"-input": list{"a"}, ":orders": hash{"web1:4711-abcdefgh": "quiet ann"}},
			call: func(b *bench) any {
				return b.take(TakeRequest{Owner: "web1:4711-abcdefgh~aaaaaaaa", New: true, Most: 1})
			},
			says: Taken{Entries: list{}, Order: quiet, Now: sixOClock},
			want: keys{"-input": list{"a"}, ":workers": scores{"web1:4711-abcdefgh~aaaaaaaa": six}, ":orders": hash{"web1:4711-abcdefgh": "quiet ann"}},
		},
		{
			name: "orders that are no hash keep nobody from working", seed: keys{"-input": list{"a"}, ":orders": "text"},
			call: func(b *bench) any { return b.take(TakeRequest{Owner: "w1", New: true, Most: 1}) },
			says: Taken{Entries: list{"a"}, Now: sixOClock},
			want: keys{":workers": scores{"w1": six}, ":taken:w1": list{"a"}, ":orders": "text"},
		},
		{
			name: "the order of a pool that is silent and had not heard of it stays", call: requeues, says: 1,
			seed: and(inFlight(1), keys{":taken:w1": inputEntries(1), ":workers": scores{"w1": 7}, ":orders": hash{"w1": "quiet ann"}}),
			want: and(inFlight(1), keys{"-input": inputEntries(1), ":orders": hash{"w1": "quiet ann"}}),
		},
		{
			name: "a state tells the order, how much is in hand, and the first of it", seed: and(ordered, keys{":taken:w1": inputEntries(3)}),
			call: func(b *bench) any {
				states, err := b.Report().PoolStates(b.t.Context(), []string{"w1", "w2"}, 2)
				must(b.t, err)
				return []any{states[0].Order, states[0].Taken, len(states[0].Entries), states[0].Entries[1].UID, states[1].Taken}
			},
			says: []any{quiet, int64(3), 2, "m1", int64(0)},
		},
	})
}

func TestTheNameOfADaemonTellsHostProcessAndSinceWhen(t *testing.T) {
	named := ReadOwner(NewOwner(func() time.Time { return sixOClock }))
	failIf(t, named.Host == "" || named.PID == "" || !named.Since.Equal(sixOClock), "found %+v", named)
	for name, want := range map[string]Owner{
		"web-1.example:4711-20261121T060000Z-abcdefgh": {"web-1.example", "4711", sixOClock},
		"web1:4711-abcdefgh":                           {Host: "web1", PID: "4711"}, // without a clock
		"web1:4711-20261121T060000Z-abcdefgh~ijklmnop": {"web1", "4711", sixOClock}, // named anew
		"p1": {}, "web1:x-abcdefgh": {}, "": {},
	} {
		expectEqual(t, name, want, ReadOwner(name))
	}
}
