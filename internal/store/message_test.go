package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

const testLease = 10 * time.Second

func (b *bench) claim(owner string, limit int) []string {
	b.t.Helper()
	claim, err := b.Claim(context.Background(), owner, Holding{}, limit, testLease)
	stopIf(b.t, err != nil || !claim.Now.Equal(b.now), "claim: now %v, %v; want %v", claim.Now, err, b.now)
	var entries []string
	for _, message := range claim.Messages {
		entries = append(entries, message.Entry)
	}
	return entries
}

func (b *bench) settle(owner string, settlements ...Item) []Code {
	b.t.Helper()
	codes, err := b.Commit(context.Background(), Batch{Now: b.now, Owner: owner, Items: settlements})
	must(b.t, err)
	return codes
}

// refusing are items that reject claimed messages.
func refusing(entries ...string) (items []Item) {
	for _, entry := range entries {
		items = append(items, Item{Message: Claimed{entry}, Counter: "malformed", Reason: "bad"})
	}
	return items
}

func (b *bench) adopt(expired, owner string, lease time.Duration, limit int) int {
	b.t.Helper()
	moved, err := b.Adopt(context.Background(), expired, owner, lease, limit)
	must(b.t, err)
	return moved
}

func (b *bench) expired(now time.Time, lease time.Duration) list {
	b.t.Helper()
	owners, err := b.ExpiredPollers(context.Background(), now, lease)
	must(b.t, err)
	return owners
}

// numbered makes n messages: "r0", "r1" and so on.
func numbered(name string, n int) list {
	var all list
	for i := range n {
		all = append(all, fmt.Sprint(name, i))
	}
	return all
}

// firstNumber is the number of the first command that is claimed at six.
const firstNumber = "1795240800000001"

// sixMillis is that instant in Unix ms, as pollers note it.
const sixMillis = "1795240800000"

// Results come first, for a command may take away the fence that a result needs.
func TestClaimMovesTheOldestMessagesResultsFirstAndGivesASignOfLife(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-output": list{"r1", "r2", "r3"}, "-control": list{"k1"}, ":pollers": scores{"p2": 5}})
		expectEqual(t, "claimed", list{"or1", "or2", "n" + firstNumber + " k1"}, b.claim("p1", 3))
		b.expect(keys{
			"-output":     list{"r3"},
			":claimed:p1": list{"or1", "or2"}, ":claimed:control": list{"n" + firstNumber + " k1"}, ":holder": "p1", ":forwarded": hash{"numbered": firstNumber},
			":pollers": scores{"p1": six, "p2": 5}, ":heard": hash{"claimed": "0", "mark": sixMillis + " 1", "poller p1": "0 0"},
		})
	})
}

func TestClaimOfNothingIsStillASignOfLife(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		expectEqual(t, "claimed", nil, b.claim("p1", 3))
		b.expect(keys{":holder": "p1", ":pollers": scores{"p1": six}})
	})
}

func TestAClaimRepeatedAfterALostReplyReturnsTheSameMessages(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-output": numbered("r", 5), "-control": numbered("k", 5)})
		first := b.claim("p1", 4)
		b.unchanged(func() { expectEqual(t, "claimed again", first, b.claim("p1", 4)) })
	})
}

func TestAClaimBehindWhatIsInHandReturnsOnlyWhatStandsThere(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:p1": list{"o1", "o2", "oadopted"}, "-output": list{"r1", "r2", "r3"}})
		for range 2 { // also when it is repeated
			claim, err := b.Claim(t.Context(), "p1", Holding{InHand: 2}, 3, testLease)
			must(t, err)
			expectEqual(t, "claimed", []Claimed{{"oadopted"}, {"or1"}, {"or2"}}, claim.Messages)
		}
		expectEqual(t, "all that stands", list{"o1", "o2", "oadopted", "or1", "or2"}, b.claim("p1", 3))
	})
}

func TestEachCallOfAPollerChangesExactlyWhatItShould(t *testing.T) {
	adoptTwo := func(b *bench) any { return b.adopt("p1", "p2", time.Second, 2) }
	large := strings.Repeat("l", 4<<10+1)
	beginning := "4097/4096 " + strings.Repeat("l", 1000)
	cases := []callCase{
		{
			name: "a claim fills up what is left from before, and brings what is more than its limit",
			seed: keys{":claimed:p1": list{"oold"}, "-output": list{"r1", "r2"}, "-control": list{"k1"}},
			call: func(b *bench) any { return []list{b.claim("p1", 2), b.claim("p1", 1)} },
			says: []list{{"oold", "or1"}, {"oold", "or1"}},
			want: keys{":claimed:p1": list{"oold", "or1"}, "-output": list{"r2"}, "-control": list{"k1"}, ":holder": "p1", ":pollers": scores{"p1": six},
				":heard": hash{"claimed": "0", "mark": sixMillis + " 1", "poller p1": "0 0"}},
		},
		{
			name: "of a message that is too large only its size and its beginning are claimed",
			seed: keys{"-output": list{large[1:], large, "r"}, "-control": list{large}},
			call: func(b *bench) any {
				b.Config.MessageCap = 4 << 10
				return []list{b.claim("p1", 10), b.claim("p1", 10)}
			},
			says: []list{{"o" + large[1:], "O" + beginning, "or", "C" + beginning}, {"o" + large[1:], "O" + beginning, "or", "C" + beginning}},
			want: keys{
				":claimed:p1": list{"o" + large[1:], "O" + beginning, "or"}, ":claimed:control": list{"C" + beginning},
				":holder": "p1", ":pollers": scores{"p1": six}, ":forwarded": hash{"numbered": firstNumber},
				":heard": hash{"claimed": sixMillis, "mark": "", "poller p1": "0 0"},
			},
		},
		{
			name: "one message of each kind is settled, and counted",
			seed: keys{":claimed:p1": list{"osame", "osame", "oafter"}, ":claimed:control": list{"n1 bad", "n1 after"}, ":holder": "p1"},
			call: func(b *bench) any {
				return b.settle("p1", Item{Message: Claimed{"osame"}, Counter: "stale"}, refusing("n1 bad")[0], refusing("onone")[0])
			},
			says: []Code{CodeApplied, CodeApplied, CodeGone},
			want: keys{
				":claimed:p1": list{"osame", "oafter"}, ":claimed:control": list{"n1 after"}, ":holder": "p1", ":stats": hash{"stale": "1", "malformed": "1"},
				":rejected": list{`{"at":"2026-11-21T06:00:00.000Z","source":"control","reason":"bad","raw":"bad"}`},
			},
		},
		{
			name: "a message that is not claimed is left to whoever has it",
			seed: keys{":claimed:p2": list{"omine"}, ":rejected": list{"old"}},
			call: func(b *bench) any { return b.settle("p1", refusing("omine")...) },
			says: []Code{CodeGone},
		},
		{
			name: "a settlement that is sent twice counts once, and the newest rejected messages are kept",
			seed: keys{":claimed:p1": list{"o1", "o2", "o3", "oa"}},
			call: func(b *bench) any {
				b.Config.RejectedCap = 2
				batch := append(refusing("o1", "o2", "o3"), Item{Message: Claimed{"oa"}, Counter: "stale"})
				return [][]Code{b.settle("p1", batch...), b.settle("p1", batch...)}
			},
			says: [][]Code{{CodeApplied, CodeApplied, CodeApplied, CodeApplied}, {CodeGone, CodeGone, CodeGone, CodeGone}},
			want: keys{":stats": hash{"malformed": "3", "stale": "1"}, ":rejected": list{
				`{"at":"2026-11-21T06:00:00.000Z","source":"output","reason":"bad","raw":"2"}`,
				`{"at":"2026-11-21T06:00:00.000Z","source":"output","reason":"bad","raw":"3"}`,
			}},
		},
		{
			name: "commands in the claimed list of a poller are its own",
			seed: keys{":claimed:p1": list{"n1 k1", "n1 k2"}, ":claimed:control": list{"n1 k3"}, ":holder": "p2"},
			call: func(b *bench) any {
				return b.commit(Item{Message: Claimed{"n1 k1"}, UID: "m1", Counter: "unchanged"}, Item{Message: Claimed{"n1 k3"}, UID: "m3", Counter: "unchanged"})
			},
			says: []Code{CodeApplied, CodeGone},
			want: keys{":claimed:p1": list{"n1 k2"}, ":claimed:control": list{"n1 k3"}, ":holder": "p2", ":stats": hash{"unchanged": "1"}},
		},
		{
			name: "adoption in parts keeps the order", call: adoptTwo, says: 2,
			seed: keys{":claimed:p1": list{"o1", "o2", "o3"}, ":claimed:p2": list{"o0"}, ":pollers": scores{"p1": 1, "p2": six}},
			want: keys{":claimed:p1": list{"o3"}, ":claimed:p2": list{"o0", "o1", "o2"}, ":pollers": scores{"p1": 1, "p2": six}, ":heard": hash{"poller p2": "0 0"}},
		},
		{
			name: "adoption in parts forgets the owner last, when its heir has come back", says: []any{1, 0},
			seed: keys{":claimed:p1": list{"o3"}, ":claimed:p2": list{"o0"}, ":pollers": scores{"p1": 1, "p2": six}},
			call: func(b *bench) any { return []any{adoptTwo(b), adoptTwo(b)} },
			want: keys{":claimed:p2": list{"o0", "o3"}, ":pollers": scores{"p2": six}, ":heard": hash{"poller p2": "0 0"}},
		},
		{
			name: "an expired poller with nothing is forgotten", call: adoptTwo, says: 0,
			seed: keys{":pollers": scores{"p1": 1, "p2": six}},
			want: keys{":pollers": scores{"p2": six}},
		},
		{
			// A poller that slept through its own lease may have been forgotten when it wakes up and goes on where it was.
			name: "a message that was adopted by a forgotten poller can still be adopted",
			seed: keys{":claimed:p1": list{"o1"}, ":pollers": scores{"p1": 1}},
			call: func(b *bench) any {
				return []any{b.adopt("p1", "p2", time.Second, 2), b.expired(b.now, time.Second), b.adopt("p2", "p3", time.Second, 2)}
			},
			says: []any{1, list{"p1", "p2"}, 1},
			want: keys{":claimed:p3": list{"o1"}, ":pollers": scores{"p1": 1, "p2": six - 1000, "p3": six - 1000}, ":heard": hash{"poller p2": "0 0", "poller p3": "0 0"}},
		},
		{
			name: "pollers without a heartbeat within the lease are expired",
			seed: keys{":pollers": scores{"old": six - 1001, "edge": six - 1000, "alive": six - 999, "new": six, "ahead": six + 1}},
			call: func(b *bench) any { return b.expired(b.now, time.Second) },
			says: list{"old", "edge", "ahead"},
		},
		{
			// A poller lists the others some time after its round has read the clock; by then each may have given a heartbeat.
			name: "a poller that gave a heartbeat since the clock was read keeps its messages",
			seed: keys{":claimed:p1": list{"o1"}, ":pollers": scores{"p1": six}},
			call: func(b *bench) any {
				return []any{b.expired(time.UnixMilli(six-1), time.Second), b.adopt("p1", "p2", time.Second, 2)}
			},
			says: []any{list{"p1"}, 0},
		},
		{
			name: "a poller resigns only when it holds nothing",
			seed: keys{":pollers": scores{"p1": six, "p2": six}, ":claimed:p1": list{"o1"}},
			call: func(b *bench) any { return []error{b.Resign(b.t.Context(), "p1"), b.Resign(b.t.Context(), "p2")} },
			says: []error{nil, nil},
			want: keys{":pollers": scores{"p1": six}, ":claimed:p1": list{"o1"}},
		},
		{
			name: "a poller that has resigned leaves the command queue to the next, and is missed when a claim of it is still under way",
			seed: keys{":pollers": scores{"p1": six}, ":holder": "p1", "-control": list{"k1"}},
			call: func(b *bench) any {
				must(b.t, b.Resign(b.t.Context(), "p1"))
				next := b.claim("p2", 1)
				b.seed(keys{"-output": list{"late"}})
				return []list{next, b.claim("p1", 1), b.expired(b.now, 0)}
			},
			says: []list{{"n" + firstNumber + " k1"}, {"olate"}, {"p1", "p2"}},
			want: keys{
				":claimed:p1": list{"olate"}, ":claimed:control": list{"n" + firstNumber + " k1"}, ":holder": "p2",
				":pollers": scores{"p1": six, "p2": six}, ":forwarded": hash{"numbered": firstNumber},
				":heard": hash{"claimed": sixMillis, "mark": "", "poller p1": "0 0"},
			},
		},
	}
	for name, test := range map[string]struct {
		seen scores
		want int
	}{
		"its lease has just ended": {scores{"p1": six - 1000}, 2}, "its lease ended long ago": {scores{"p1": 1}, 2},
		"alive": {scores{"p1": six - 999}, 0}, "alive just now": {scores{"p1": six}, 0}, "already forgotten": {scores{"p3": six - 1000}, 0},
		"a heartbeat from the future": {scores{"p1": six + 1}, 2}, "one from the next hour": {scores{"p1": six + 3_600_000}, 2},
	} {
		row := callCase{name: "only an expired poller loses its messages: " + name, call: adoptTwo, says: test.want}
		row.seed = keys{":claimed:p1": list{"o1", "o2"}, ":pollers": test.seen}
		if test.want > 0 {
			row.want = keys{":claimed:p2": list{"o1", "o2"}, ":pollers": scores{"p1": test.seen["p1"], "p2": six - 1000}, ":heard": hash{"poller p2": "0 0"}}
		}
		cases = append(cases, row)
	}
	eachCall(t, cases)
}

// A former leader may not have noticed: what it decided is refused, also of a command that is there again, word for word.
func TestCommandsOfAPollerThatHasLostTheLaneAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:control": list{"n1 k1", "n1 k2"}, ":claimed:p1": list{"or1"}, ":holder": "p2"})
		put := Item{Transition: b.put("m1", "{}"), Message: Claimed{"n1 k1"}}
		settled := Item{Message: Claimed{"n1 k2"}, UID: "m2", Counter: "unchanged"}
		b.unchanged(func() { expectCodes(t, b.commit(put, settled), CodeGone, CodeGone) })
		expectCodes(t, b.commit(put, settled, Item{Message: Claimed{"or1"}, UID: "m3", Counter: "stale"}), CodeGone, CodeGone, CodeApplied)
		b.seed(keys{":holder": "p1"})
		expectCodes(t, b.commit(put, settled), CodeApplied, CodeApplied)
	})
}

// What changes nothing was decided about its model too: when it is refused it comes again, and a later command of the model must not come before it.
func TestARefusedCommandThatChangesNothingRefusesTheNextOfItsModel(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:control": list{"n1 k1", "n1 k2"}, ":holder": "p1", ":commands": scores{"c1": six - 1000}})
		repeated := Item{Message: Claimed{"n1 k1"}, UID: "m1", CommandID: "c1", Counter: "unchanged"}
		put := Item{Transition: b.put("m1", "{}"), Message: Claimed{"n1 k2"}}
		b.unchanged(func() { expectCodes(t, b.commit(repeated, put), CodeDuplicate, CodeConflict) })
		gone := Item{Message: Claimed{"n1 k3"}, UID: "m1", Counter: "unchanged"}
		expectCodes(t, b.commit(gone, put), CodeGone, CodeApplied)
	})
}

func TestControlMessagesAndResultsShareARoomFairly(t *testing.T) {
	tests := []struct{ results, commands, limit, wantResults, wantCommands int }{
		{results: 100, commands: 100, limit: 10, wantResults: 5, wantCommands: 5},
		{results: 100, commands: 100, limit: 11, wantResults: 6, wantCommands: 5},
		{results: 100, commands: 2, limit: 10, wantResults: 8, wantCommands: 2},
		{results: 2, commands: 100, limit: 10, wantResults: 2, wantCommands: 8},
		{results: 0, commands: 100, limit: 10, wantResults: 0, wantCommands: 10},
		{results: 100, commands: 0, limit: 10, wantResults: 10, wantCommands: 0},
		{results: 3, commands: 4, limit: 10, wantResults: 3, wantCommands: 4},
	}
	everywhere(t, func(t *testing.T, b *bench) {
		for _, test := range tests {
			b.server.Flush(t)
			b.seed(keys{"-output": numbered("r", test.results), "-control": numbered("k", test.commands)})
			claimed := b.claim("p1", test.limit)
			results := slices.IndexFunc(append(claimed, "n"), func(entry string) bool { return entry[0] == 'n' })
			if commands := len(claimed) - results; results != test.wantResults || commands != test.wantCommands {
				t.Errorf("%+v: claimed %d results and %d commands", test, results, commands)
			}
		}
	})
}

func TestAClaimedMessageKnowsItsSourceAndItsBytes(t *testing.T) {
	binary := "\x00\xff%s\r\n"
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-output": list{binary, ""}, "-control": list{binary}})
		claim, err := b.Claim(t.Context(), "p1", Holding{}, 10, testLease)
		must(t, err)
		want := []struct {
			control bool
			raw     string
		}{{false, binary}, {false, ""}, {true, binary}}
		for i, message := range claim.Messages {
			failIf(t, message.FromControl() != want[i].control || message.Raw() != want[i].raw,
				"message %d: control %v, raw %q; want %v, %q", i, message.FromControl(), message.Raw(), want[i].control, want[i].raw)
		}
	})
	for entry, raw := range map[string]string{"": "", "O": "", "C": "", "O12": "", "C1/2": "", "o1/2 x": "1/2 x", "n7 x y": "x y"} {
		Claimed{entry}.Large()
		got := (Claimed{entry}).Raw()
		failIf(t, got != raw || entry == "" && (Claimed{entry}).FromControl(), "%q: got %q", entry, got)
	}
	c := Claimed{"C4097/4096 {\"type\": \"put\""}
	if size, most, large := c.Large(); !large || size != "4097" || most != "4096" || !c.FromControl() || c.Raw() != `{"type": "put"` {
		t.Errorf("got %q of %q, %t, control %t, %q", size, most, large, c.FromControl(), c.Raw())
	}
}

func bytesOf(entries []string) (sum int) {
	for _, entry := range entries {
		sum += len(entry)
	}
	return sum
}

func TestAClaimIsBoundedByBytesAndNeitherListStarvesTheOther(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		many := long.Or(9, 30)
		b.seed(keys{"-output": slices.Repeat(list{strings.Repeat("r", 1<<20)}, many), "-control": slices.Repeat(list{strings.Repeat("k", 1<<20)}, many)})
		claimed := b.claim("p1", 1000)
		if n := len(claimed); n != 16 || claimed[7][0] != 'o' || claimed[8][0] != 'n' {
			t.Errorf("want 8 results and 8 commands of 1 MiB, got %d entries of %d bytes", n, bytesOf(claimed))
		}
		again := b.claim("p1", 1000)
		failIf(t, len(again) != 16, "want nothing more while these are held, got %d", len(again))

		b.server.Flush(t)
		// Their sizes are unknown before they are popped, after a small one 8 at once.
		b.seed(keys{"-output": append(list{"r"}, slices.Repeat(list{strings.Repeat("r", 3<<19)}, many+20)...)})
		claimed = b.claim("p2", 1000)
		failIf(t, len(claimed) != 9, "want 9 results, got %d entries of %d bytes", len(claimed), bytesOf(claimed))
	})
}

// Of 10 MB, unless the long tests run: the script copies what it pops once, however large that is.
func TestOneMessageOf100MBIsClaimedAtOnceWithoutItsBytes(t *testing.T) {
	b := newBench(t, testkit.Redis(t))
	huge, many := strings.Repeat("x", long.Or(10_000_000, 100_000_000)), long.Or(1, 3)
	for range many {
		must(t, b.Clients.Write.RPush(t.Context(), b.Keys.Output, huge).Err())
	}
	must(t, b.Clients.Write.RPush(t.Context(), b.Keys.Output, "r").Err())
	for i := range many {
		claimed := b.claim("p1", 1000)
		stopIf(t, len(claimed) != i+1 || bytesOf(claimed) > 4000, "claim %d: got %d entries of %d bytes", i, len(claimed), bytesOf(claimed))
	}
	claimed := b.claim("p1", 1000)
	failIf(t, claimed[many] != "or", "want the message behind them, got %q", claimed[many])
}
