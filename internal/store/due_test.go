package store

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"
)

func (b *bench) readDue(limit int) Due {
	b.t.Helper()
	due, err := b.ReadDue(context.Background(), DueRequest{Limit: limit})
	must(b.t, err)
	return due
}

func TestReadDueTellsWhatIsPastAndWhatIsNext(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
	tests := []struct {
		name string
		seed keys
		want Due
	}{
		{"nothing", nil, Due{}},
		{
			"oldest first, and exactly now is past", keys{":due": scores{"new": six, "old": six - 2, "mid": six - 1, "next": six + 1}},
			Due{Due: list{"old", "mid", "new"}, Next: at(six + 1)},
		},
		{
			"deadlines likewise", keys{":running": scores{"new": six, "old": six - 2, "next": six + 5}, "-input": list{"x", "y"}},
			Due{Queued: 2, Expired: list{"old", "new"}, Next: at(six + 5)},
		},
		{"the earlier of both is next", keys{":due": scores{"a": six + 9}, ":running": scores{"b": six + 8}}, Due{Next: at(six + 8)}},
		{"and the other way round", keys{":due": scores{"a": six + 8}, ":running": scores{"b": six + 9}}, Due{Next: at(six + 8)}},
		{
			"at most three of each kind", keys{":due": scores{"a": 1, "b": 2, "c": 3, "d": 4}, ":running": scores{"e": 1, "f": 2, "g": 3, "h": 4}},
			Due{Due: list{"a", "b", "c"}, Expired: list{"e", "f", "g"}},
		},
		{
			"what is urgent likewise, apart", keys{":urgent": scores{"b": six, "a": six - 1, "next": six + 2}, ":due": scores{"c": six - 5}},
			Due{Urgent: list{"a", "b"}, Due: list{"c"}, Next: at(six + 2)},
		},
		{
			"whose freshness changes likewise, with the next change",
			keys{":stale_at": scores{"d": six + 3, "c": six, "b": six - 1, "a": six - 2, "e": six - 3}, ":due": scores{"x": six + 9}},
			Due{Ages: list{"e", "a", "b"}, Next: at(six + 3)},
		},
		{
			"scores that a person wrote stop nobody",
			keys{":due": scores{"half": six + 0.5, "old": six - 0.5}, ":running": scores{"never": math.Inf(1), "always": math.Inf(-1)}},
			Due{Due: list{"old"}, Expired: list{"always"}, Next: at(six)},
		},
		{"for ever is no next time", keys{":due": scores{"never": math.Inf(1)}}, Due{}},
	}
	onBoth(t, func(t *testing.T, b *bench) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				b := b.fresh(t)
				b.seed(test.seed)
				want := test.want
				want.Now, want.Sharers = b.now, 1
				for _, uids := range []*list{&want.Urgent, &want.Due, &want.Expired, &want.Ages} {
					*uids = append(list{}, *uids...) // none is an empty list
				}
				b.unchanged(func() { expectEqual(t, "due", want, b.readDue(3)) })
			})
		}
	})
}

// asks is what a dispatcher sees at a time after six.
func (b *bench) asks(owner string, after time.Duration) (due, expired []string, next time.Duration) {
	b.t.Helper()
	b.now = time.UnixMilli(six).UTC().Add(after)
	seen, err := b.ReadDue(b.t.Context(), DueRequest{Limit: 2, Owner: owner, Lease: time.Second, Pause: 25 * time.Millisecond})
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

func TestDispatchersReadAPageEachWhenThereIsMoreThanOne(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(both(scores{"a": six - 5, "b": six - 4, "c": six - 3, "d": six - 2, "e": six - 1}))
		for _, owner := range []string{"d3", "d4", "d2", "d1"} {
			b.asks(owner, 0)
		}
		b.expectShare("d1", 0, []string{"a", "b"}, 0)
		b.expectShare("d2", 0, []string{"c", "d"}, 0)
		b.expectShare("d3", 0, []string{"e"}, 0)
		b.expectShare("d4", 0, nil, 75*time.Millisecond) // its page may come soon
	})
}

func TestADispatcherLeavesASinglePageToThoseBeforeItForAWhile(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(both(scores{"a": six, "b": six + 10}))
		for _, owner := range []string{"d1", "d2", "d3"} {
			b.asks(owner, -time.Millisecond)
		}
		b.expectShare("d1", 0, []string{"a"}, 10*time.Millisecond)
		b.expectShare("d2", 0, nil, 25*time.Millisecond)
		b.expectShare("d2", 25*time.Millisecond, []string{"a"}, 10*time.Millisecond)
		b.expectShare("d3", 49*time.Millisecond, nil, time.Millisecond)
		b.expectShare("d3", 60*time.Millisecond, []string{"a", "b"}, 0)
	})
}

func TestADeadOrRetiredDispatcherHasNoShare(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(both(scores{"a": six}), keys{":dispatchers": scores{"d0": six + 60_000}})) // the clock has been set back since
		b.asks("d1", 0)
		b.expectShare("d2", 0, nil, 25*time.Millisecond)
		b.expectShare("d2", 999*time.Millisecond, []string{"a"}, 0)
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
		b.expectShare("", 0, []string{"a", "b"}, 0)
		expectEqual(t, "dispatchers", any(scores{"d0": six}), b.state()[":dispatchers"])
	})
}
