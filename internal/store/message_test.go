package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testLease is the lease of pollers in tests.
const testLease = 10 * time.Second

func (b *bench) claim(owner string, limit int) []string {
	b.t.Helper()
	claim, err := b.Claim(context.Background(), owner, limit, testLease)
	if err != nil || !claim.Now.Equal(b.now) {
		b.t.Fatalf("claim: now %v, %v; want %v", claim.Now, err, b.now)
	}
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

func (b *bench) adopt(expired, owner string, lease time.Duration, limit int) int {
	b.t.Helper()
	moved, err := b.Adopt(context.Background(), expired, owner, lease, limit)
	must(b.t, err)
	return moved
}

// numbered makes n messages: "r0", "r1" and so on.
func numbered(name string, n int) list {
	var all list
	for i := range n {
		all = append(all, fmt.Sprint(name, i))
	}
	return all
}

// Results come first, for a command may take away the fence that a result needs.
func TestClaimMovesTheOldestMessagesResultsFirstAndGivesASignOfLife(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		const number = "1795240800000001" // of the first command of this millisecond
		b.seed(keys{"-output": list{"r1", "r2", "r3"}, "-control": list{"k1"}, ":pollers": scores{"p2": 5}})
		expectEqual(t, "claimed", list{"or1", "or2", "n" + number + " k1"}, b.claim("p1", 3))
		b.expect(keys{
			"-output":     list{"r3"},
			":claimed:p1": list{"or1", "or2"}, ":claimed:control": list{"n" + number + " k1"}, ":holder": "p1", ":forwarded": hash{"numbered": number},
			":pollers": scores{"p1": six, "p2": 5},
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

func TestAClaimFillsUpWhatIsLeftFromBefore(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:p1": list{"oold"}, "-output": list{"r1", "r2"}, "-control": list{"k1"}})
		expectEqual(t, "claimed", list{"oold", "or1"}, b.claim("p1", 2))
		expectEqual(t, "more than the limit", list{"oold", "or1"}, b.claim("p1", 1))
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
		claim, err := b.Claim(t.Context(), "p1", 10, testLease)
		must(t, err)
		want := []struct {
			control bool
			raw     string
		}{{false, binary}, {false, ""}, {true, binary}}
		for i, message := range claim.Messages {
			if message.FromControl() != want[i].control || message.Raw() != want[i].raw {
				t.Errorf("message %d: control %v, raw %q; want %v, %q", i, message.FromControl(), message.Raw(), want[i].control, want[i].raw)
			}
		}
	})
	if none := (Claimed{}); none.FromControl() || none.Raw() != "" {
		t.Error("an empty entry has a source or bytes")
	}
}

func TestClaimReadsTheClockOfRedisWhenNobodyReplacesIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		before := b.redis.Time(t.Context()).Val()
		claim, err := b.Claim(t.Context(), "p1", 1, testLease)
		must(t, err)
		after := b.redis.Time(t.Context()).Val()
		if now := claim.Now; now.Before(before.Truncate(time.Millisecond)) || now.After(after) {
			t.Errorf("now %v, want between %v and %v", now, before, after)
		}
		expectEqual(t, "heartbeat", any(scores{"p1": float64(claim.Now.UnixMilli())}), b.state()[":pollers"])
	}, func(c *Config) { c.Clock = nil })
}

func TestSettlingRemovesOneMessageOfEachKindAndCountsIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:p1": list{"osame", "osame", "oafter"}, ":claimed:control": list{"cbad", "cafter"}, ":holder": "p1"})
		codes := b.settle("p1",
			Item{Message: Claimed{"osame"}, Counter: "stale"},
			Item{Message: Claimed{"cbad"}, Counter: "malformed", Reason: "expected a JSON object"},
			Item{Message: Claimed{"onone"}, Counter: "stale", Reason: "nobody has it"},
		)
		expectCodes(t, codes, CodeApplied, CodeApplied, CodeGone)
		b.expect(keys{
			":claimed:p1": list{"osame", "oafter"}, ":claimed:control": list{"cafter"}, ":holder": "p1",
			":stats": hash{"stale": "1", "malformed": "1"},
			":rejected": list{
				`{"at":"2026-11-21T06:00:00.000Z","source":"control","reason":"expected a JSON object","raw":"bad"}`,
			},
		})
	})
}

func TestAMessageThatIsNotClaimedIsLeftToWhoeverHasIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:p2": list{"omine"}, ":rejected": list{"old"}})
		b.unchanged(func() {
			codes := b.settle("p1", Item{Message: Claimed{"omine"}, Counter: "malformed", Reason: "bad"})
			expectCodes(t, codes, CodeGone)
		})
	})
}

func TestASettlementSentTwiceCountsOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:p1": list{"oa", "ob"}})
		batch := []Item{{Message: Claimed{"oa"}, Counter: "stale"}, {Message: Claimed{"ob"}, Counter: "malformed", Reason: "bad"}}
		b.settle("p1", batch...)
		b.unchanged(func() { expectCodes(t, b.settle("p1", batch...), CodeGone, CodeGone) })
	})
}

func TestRejectedKeepsTheNewestMessages(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:p1": list{"o1", "o2", "o3"}})
		for _, entry := range []string{"o1", "o2", "o3"} {
			b.settle("p1", Item{Message: Claimed{entry}, Counter: "malformed", Reason: "bad"})
		}
		left := b.state()[":rejected"].(list)
		if len(left) != 2 || !strings.Contains(left[0], `"raw":"2"`) || !strings.Contains(left[1], `"raw":"3"`) {
			t.Errorf("rejected %q, want 2 and 3", left)
		}
	}, func(c *Config) { c.RejectedCap = 2 })
}

func TestARejectedMessageOfUpTo16KiBKeepsEveryByte(t *testing.T) {
	raws := list{"plain", `{"broken":`, "<&>\u2028\x00\r\n%d", "\xff\x00\xfe", strings.Repeat("\x80x", maxRaw/2), "\xef\xbf\xbd"}
	everywhere(t, func(t *testing.T, b *bench) {
		var batch []Item
		for _, raw := range raws {
			b.seed(keys{":claimed:p1": list{"o" + raw}})
			batch = append(batch, Item{Message: Claimed{"o" + raw}, Counter: "malformed", Reason: "bad"})
		}
		b.settle("p1", batch...)
		var got list
		for _, text := range b.state()[":rejected"].(list) {
			got = append(got, rawOf(t, text))
		}
		if !cmp.Equal(raws, got) {
			t.Errorf("rejected bytes differ:\n%.300q\n%.300q", raws, got)
		}
	})
}

// rawOf restores the bytes from an entry of rejected: encoding/json decodes base64 into bytes.
func rawOf(t *testing.T, text string) string {
	t.Helper()
	var entry struct {
		Raw       string
		RawBase64 []byte `json:"raw_base64"`
	}
	must(t, json.Unmarshal([]byte(text), &entry))
	return entry.Raw + string(entry.RawBase64)
}

func TestOnlyAnExpiredPollerLosesItsMessages(t *testing.T) {
	tests := []struct {
		name string
		seen scores
		want int
	}{
		{"its lease has just ended", scores{"p1": six - 1000}, 2},
		{"its lease ended long ago", scores{"p1": 1}, 2},
		{"alive", scores{"p1": six - 999}, 0},
		{"alive just now", scores{"p1": six}, 0},
		{"a heartbeat from the future", scores{"p1": six + 1}, 2},
		{"one from the next hour", scores{"p1": six + 3_600_000}, 2},
		{"already forgotten", scores{"p3": six - 1000}, 0},
	}
	everywhere(t, func(t *testing.T, b *bench) {
		for _, test := range tests {
			b.server.Flush(t)
			b.seed(keys{":claimed:p1": list{"o1", "o2"}, ":pollers": test.seen})
			act := func() { expectEqual(t, test.name, test.want, b.adopt("p1", "p2", time.Second, 10)) }
			if test.want == 0 {
				b.unchanged(act)
				continue
			}
			act()
			expectEqual(t, test.name, any(list{"o1", "o2"}), b.state()[":claimed:p2"])
		}
	})
}

func TestAdoptionInPartsKeepsTheOrderAndForgetsTheOwnerLast(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:p1": list{"o1", "o2", "o3"}, ":claimed:p2": list{"o0"}, ":pollers": scores{"p1": 1, "p2": six}})
		expectEqual(t, "first part", 2, b.adopt("p1", "p2", time.Second, 2))
		b.expect(keys{":claimed:p1": list{"o3"}, ":claimed:p2": list{"o0", "o1", "o2"}, ":pollers": scores{"p1": 1, "p2": six}})
		expectEqual(t, "second part", 1, b.adopt("p1", "p2", time.Second, 2))
		b.expect(keys{":claimed:p2": list{"o0", "o1", "o2", "o3"}, ":pollers": scores{"p2": six}})
		b.unchanged(func() { expectEqual(t, "third part", 0, b.adopt("p1", "p2", time.Second, 2)) })
	})
}

func TestAnExpiredPollerWithNothingIsForgotten(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":pollers": scores{"p1": 1, "p2": six}})
		expectEqual(t, "moved", 0, b.adopt("p1", "p2", time.Second, 2))
		b.expect(keys{":pollers": scores{"p2": six}})
	})
}

// A poller that slept through its own lease may have been forgotten when it wakes up and goes on where it was.
func TestAMessageAdoptedByAForgottenPollerCanStillBeAdopted(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:p1": list{"o1"}, ":pollers": scores{"p1": 1}})
		expectEqual(t, "adopted by one whom nobody knows", 1, b.adopt("p1", "p2", time.Second, 2))
		expectEqual(t, "expired pollers", list{"p2"}, b.expired(time.Second))
		expectEqual(t, "adopted from it", 1, b.adopt("p2", "p3", time.Second, 2))
	})
}

func (b *bench) expired(lease time.Duration) list {
	b.t.Helper()
	owners, err := b.ExpiredPollers(context.Background(), b.now, lease)
	must(b.t, err)
	return owners
}

func TestExpiredPollersAreThoseWithoutAHeartbeatWithinTheLease(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":pollers": scores{"old": six - 1001, "edge": six - 1000, "alive": six - 999, "new": six, "ahead": six + 1}})
		expectEqual(t, "expired", list{"old", "edge", "ahead"}, b.expired(time.Second))
	})
}

// A poller lists the others some time after its round has read the clock; by then each may have given a heartbeat.
func TestAPollerThatGaveAHeartbeatSinceTheClockWasReadKeepsItsMessages(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:p1": list{"o1"}, ":pollers": scores{"p1": six}})
		owners, err := b.ExpiredPollers(t.Context(), time.UnixMilli(six-1), time.Second)
		must(t, err)
		expectEqual(t, "candidates", list{"p1"}, owners)
		b.unchanged(func() { expectEqual(t, "adopted", 0, b.adopt("p1", "p2", time.Second, 2)) })
	})
}

func TestAPollerResignsOnlyWhenItHoldsNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":pollers": scores{"p1": six, "p2": six}, ":claimed:p1": list{"o1"}})
		for _, owner := range []string{"p1", "p2"} {
			must(t, b.Resign(t.Context(), owner))
		}
		b.expect(keys{":pollers": scores{"p1": six}, ":claimed:p1": list{"o1"}})
	})
}
