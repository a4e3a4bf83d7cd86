package store

import (
	"context"
	"testing"
	"time"
)

func (b *bench) take(taking TakeRequest) Taken {
	b.t.Helper()
	taken, err := b.Pool().Take(context.Background(), taking)
	if err != nil || !taken.Now.Equal(b.now) {
		b.t.Fatalf("take: now %v, %v; want %v", taken.Now, err, b.now)
	}
	return taken
}

func (b *bench) answer(owner string, answers ...Answer) []Code {
	b.t.Helper()
	codes, err := b.Pool().Answer(context.Background(), owner, answers)
	must(b.t, err)
	return codes
}

func TestTakeMovesTheOldestEntriesAndGivesASignOfLife(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-input": list{"a", "b", "c"}, ":workers": scores{"w2": 5}})
		taken := b.take(TakeRequest{Owner: "w1", New: true, Most: 2})
		expectEqual(t, "taken", Taken{Entries: list{"a", "b"}, Now: b.now}, taken)
		b.expect(keys{"-input": list{"c"}, ":taken:w1": list{"a", "b"}, ":workers": scores{"w1": six, "w2": 5}})
	})
}

func TestTakeOfAnEmptyListIsASignOfLifeAndNoError(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":workers": scores{"w1": 5}})
		expectEqual(t, "entries", 0, len(b.take(TakeRequest{Owner: "w1", Most: 2}).Entries))
		b.expect(keys{":workers": scores{"w1": six}})
	})
}

func TestATakeRepeatedAfterALostReplyReturnsTheSameEntries(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-input": list{"a", "b", "c", "d"}})
		first := b.take(TakeRequest{Owner: "w1", New: true, Most: 2})
		for name, taking := range map[string]TakeRequest{
			"the first one":      {Owner: "w1", New: true, Most: 2},
			"one that is unsure": {Owner: "w1", Most: 2, Known: -1},
			"one that knows one": {Owner: "w1", Most: 1, Known: 1},
		} {
			b.unchanged(func() {
				again := b.take(taking)
				expectEqual(t, name, first.Entries, again.Entries)
				expectEqual(t, name+": whole", true, again.Whole)
			})
		}
	})
}

func TestTheNextTakeBringsOnlyWhatIsNew(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-input": list{"c", "d"}, ":taken:w1": list{"a", "b"}, ":workers": scores{"w1": 5}})
		for _, known := range []int{2, 3} { // to know of more than there are is harmless
			taken := b.take(TakeRequest{Owner: "w1", Most: 1, Known: known})
			if taken.Whole || len(taken.Entries) != 1 {
				t.Errorf("known %d: taken %+v, want one new entry", known, taken)
			}
		}
		b.expect(keys{":taken:w1": list{"a", "b", "c", "d"}, ":workers": scores{"w1": six}})
	})
}

// A forgotten pool that took under its old name would never learn that it has lost what it had.
func TestAForgottenOwnerTakesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-input": list{"a"}, ":workers": scores{"w2": 5}})
		b.unchanged(func() {
			expectEqual(t, "taken", true, b.take(TakeRequest{Owner: "w1", Most: 2}).Forgotten)
		})
	})
}

func TestTakeReportsAListThatIsNone(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-input": "text"})
		if _, err := b.Pool().Take(t.Context(), TakeRequest{Owner: "w1", New: true, Most: 1}); err == nil {
			t.Error("expected an error, got nil")
		}
	})
}

func TestAnAnswerAndItsEntryChangePlacesInOneStep(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":taken:w1": list{"a", "b", "c", ""}, ":taken:w2": list{"a"}, "-output": list{"before"}})
		codes := b.answer("w1",
			Answer{Message: "started a"},
			Answer{Message: "success of a", Ends: true, Entry: "a"},
			Answer{Ends: true, Entry: "b"}, // nothing to tell
			Answer{Ends: true},             // an entry that was empty
		)
		expectCodes(t, codes, CodeApplied, CodeApplied, CodeApplied, CodeApplied)
		b.expect(keys{":taken:w1": list{"c"}, ":taken:w2": list{"a"}, "-output": list{"before", "started a", "success of a"}})
	})
}

func TestAnAnswerSentTwiceIsPushedOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":taken:w1": list{"a", "b"}})
		batch := []Answer{{Message: "success of a", Ends: true, Entry: "a"}, {Ends: true, Entry: "b"}}
		b.answer("w1", batch...)
		b.unchanged(func() { expectCodes(t, b.answer("w1", batch...), CodeGone, CodeGone) })
	})
}

func TestAnAttemptThatWasRequeuedIsNotAnsweredByItsOldWorker(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-input": list{"a"}, ":taken:w2": list{"b"}})
		b.unchanged(func() {
			codes := b.answer("w1", Answer{Message: "success of a", Ends: true, Entry: "a"}, Answer{Message: "success of b", Ends: true, Entry: "b"})
			expectCodes(t, codes, CodeGone, CodeGone)
		})
	})
}

func TestOfTwoEqualEntriesAnAnswerEndsOne(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":taken:w1": list{"a", "a"}})
		b.answer("w1", Answer{Message: "success", Ends: true, Entry: "a"})
		b.expect(keys{":taken:w1": list{"a"}, "-output": list{"success"}})
	})
}

func TestTakeReadsTheClockOfRedisWhenNobodyReplacesIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		before := b.redis.Time(t.Context()).Val()
		taken, err := b.Pool().Take(t.Context(), TakeRequest{Owner: "w1", New: true, Most: 1})
		now, known, errBeat := b.Pool().Heartbeat(t.Context(), "w1")
		if err != nil || errBeat != nil || !known {
			t.Fatalf("take: %v, beat: %v, known %v", err, errBeat, known)
		}
		after := b.redis.Time(t.Context()).Val()
		if taken.Now.Before(before.Truncate(time.Millisecond)) || now.Before(taken.Now) || now.After(after) {
			t.Errorf("taken at %v, beat at %v, want both between %v and %v", taken.Now, now, before, after)
		}
		expectEqual(t, "heartbeat", any(scores{"w1": float64(now.UnixMilli())}), b.state()[":workers"])
	}, func(c *Config) { c.Clock = nil })
}
