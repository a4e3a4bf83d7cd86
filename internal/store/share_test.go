package store

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// asks is what a dispatcher sees at a time after six.
func (b *bench) asks(owner string, after time.Duration) (due, expired []string, next time.Duration) {
	b.t.Helper()
	b.now = time.UnixMilli(six).UTC().Add(after)
	seen, err := b.ReadDue(b.t.Context(), DueRequest{Limit: 4, Owner: owner, Lease: time.Second, Pause: 25 * time.Millisecond})
	must(b.t, err)
	if !seen.Next.IsZero() {
		next = seen.Next.Sub(b.now)
	}
	return seen.Due, seen.Expired, next
}

func (b *bench) expectShare(owner string, after time.Duration, want []string, wantNext time.Duration) {
	b.t.Helper()
	due, expired, next := b.asks(owner, after)
	failIf(b.t, !slices.Equal(due, want) || !slices.Equal(expired, want) || next != wantNext,
		"%s at %s: want %v, next %s; got %v and %v, next %s", owner, after, want, wantNext, due, expired, next)
}

// both seeds the due and the running set alike.
func both(all scores) keys { return keys{":due": all, ":running": all} }

// shares are what three dispatchers see at a time after six, and fails if two of them see the same.
func (b *bench) shares(after time.Duration) map[string][]string {
	b.t.Helper()
	shares, seen := map[string][]string{}, map[string]string{}
	for _, owner := range []string{"d1", "d2", "d3"} {
		due, expired, _ := b.asks(owner, after)
		expectEqual(b.t, "expired", due, expired)
		for _, uid := range due {
			failIf(b.t, seen[uid] != "", "%s is read by %s and by %s", uid, seen[uid], owner)
			seen[uid] = owner
		}
		shares[owner] = due
	}
	return shares
}

func union(shares map[string][]string) (all []string) {
	for _, uids := range shares {
		all = append(all, uids...)
	}
	slices.Sort(all)
	return all
}

// crowd seeds so many uids that are due and have expired, and returns them, oldest first.
func (b *bench) crowd(n int) (uids []string) {
	all := scores{}
	for i := range n {
		uids = append(uids, fmt.Sprint("m", i))
		all[uids[i]] = six - float64(n-i)
	}
	b.seed(both(all))
	return uids
}

func TestDispatchersReadAShareEachOfWhatIsMoreThanAPage(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.shares(-time.Second / 2)
		uids := b.crowd(20)[:3*4] // a page for each
		expectEqual(t, "what is read", slices.Sorted(slices.Values(uids)), union(b.shares(0)))
		_, _, next := b.asks("d1", 0)
		failIf(t, next != 25*time.Millisecond, "want a look at what the others have left after 25ms, got %s", next)
	})
}

// A dispatcher that gives heartbeats and does nothing keeps no share for longer than a lease.
func TestEachShareIsThatOfAnotherDispatcherAfterALease(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		uids, read := b.crowd(12), map[string][]string{}
		for lease := range 3 {
			now := time.Duration(lease) * time.Second
			for _, owner := range []string{"d1", "d2", "d3"} {
				b.asks(owner, now)
			}
			for owner, uids := range b.shares(now) {
				read[owner] = append(read[owner], uids...)
			}
		}
		for owner, all := range read {
			expectEqual(t, owner, slices.Sorted(slices.Values(uids)), slices.Sorted(slices.Values(all)))
		}
	})
}

func TestADispatcherLeavesASinglePageToThoseBeforeItForAWhile(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(both(scores{"a": six, "b": six + 10}))
		for _, owner := range []string{"d1", "d2", "d3"} {
			b.asks(owner, -time.Millisecond)
		}
		b.expectShare("d2", 0, nil, 25*time.Millisecond)
		b.expectShare("d2", 25*time.Millisecond, []string{"a"}, 10*time.Millisecond)
		b.expectShare("d3", 49*time.Millisecond, nil, time.Millisecond)
		b.expectShare("d3", 60*time.Millisecond, nil, 0) // the second has both in hand
		b.expectShare("d1", 60*time.Millisecond, []string{"a", "b"}, 0)
	})
}

// What one of those before it has seen, it has in hand: a dispatcher leaves it to that one for a lease, and then they share it.
func TestADispatcherTakesWhatOthersHaveInHandWhenTheyHaveLeftItForALease(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(both(scores{"a": six, "b": six + 10}))
		for _, owner := range []string{"d1", "d2", "d3"} {
			b.asks(owner, 0)
		}
		b.expectShare("d2", 100*time.Millisecond, []string{"b"}, 0)
		for _, owner := range []string{"d1", "d2", "d3"} {
			b.asks(owner, 999*time.Millisecond)
		}
		b.expectShare("d2", 999*time.Millisecond, nil, 0)
		expectEqual(t, "what is read", []string{"a", "b"}, union(b.shares(1000*time.Millisecond)))
	})
}

func TestADeadOrRetiredDispatcherHasNoShare(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(both(scores{"a": six}), keys{":dispatchers": scores{"d0": six + 60_000}})) // the clock has been set back since
		b.asks("d1", 0)
		b.expectShare("d2", 0, nil, 25*time.Millisecond)
		b.expectShare("d2", 999*time.Millisecond, nil, 0)
		b.seed(both(scores{"b": six + 1000}))
		b.expectShare("d2", 1000*time.Millisecond, []string{"a", "b"}, 0) // d1 is dead

		b.asks("d1", 1000*time.Millisecond)
		b.seed(both(scores{"a": six + 2000, "b": six + 2000}))
		b.expectShare("d2", 2000*time.Millisecond-time.Millisecond, nil, 26*time.Millisecond)
		must(t, b.Retire(t.Context(), "d1"))
		b.expectShare("d2", 2000*time.Millisecond, []string{"a", "b"}, 0)
	})
}

func TestADispatcherWithoutANameSharesWithNobodyAndIsNotNoted(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(both(scores{"a": six - 2, "b": six - 1, "c": six}))
		b.asks("d0", 0)
		b.expectShare("", 0, []string{"a", "b", "c"}, 0)
		expectEqual(t, "dispatchers", any(scores{"d0": six}), b.state()[":dispatchers"])
	})
}
