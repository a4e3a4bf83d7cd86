package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func inputEntry(i int) string {
	return fmt.Sprintf(`{"big_table_uid":"m%d","refresh_attempt_uid":"a%d"}`, i, i)
}

func inputEntries(n int) list {
	var entries list
	for i := range n {
		entries = append(entries, inputEntry(i))
	}
	return entries
}

// inFlight are the models of inputEntry(0) to inputEntry(n-1), each running its attempt until ten past six.
func inFlight(n int) keys {
	all := keys{}
	for i := range n {
		all[fmt.Sprint(":model:m", i)] = hash{"attempt_uid": fmt.Sprint("a", i), "deadline_at": "2026-11-21T06:10:00.000Z"}
	}
	return all
}

func (b *bench) take(asked TakeRequest) Taken {
	b.t.Helper()
	taken, err := b.Pool().Take(context.Background(), asked)
	stopIf(b.t, err != nil || !taken.Now.Equal(b.now), "take: now %v, %v; want %v", taken.Now, err, b.now)
	return taken
}

func (b *bench) answer(owner string, answers ...Answer) (pushed []bool) {
	b.t.Helper()
	pushed, err := b.Pool().Answer(context.Background(), owner, answers)
	must(b.t, err)
	return pushed
}

func (b *bench) requeues(owner string, lastHeartbeat int64) int {
	b.t.Helper()
	taken, err := b.Pool().readTaken(context.Background(), owner, time.Time{})
	must(b.t, err)
	count, err := b.Pool().requeue(context.Background(), owner, "", lastHeartbeat, taken)
	must(b.t, err)
	return count
}

// beats gives a heartbeat and reports whether the pool is known.
func beats(b *bench) any {
	taken, err := b.Pool().Heartbeat(b.t.Context(), "w1")
	must(b.t, err)
	return !taken.Forgotten && taken.Now.Equal(b.now)
}

func TestEachCallOfAPoolChangesExactlyWhatItShould(t *testing.T) {
	requeue := func(b *bench) any { return b.requeues("w1", 7) }
	cases := []callCase{
		{
			name: "a take moves the oldest entries and is a heartbeat",
			seed: keys{"-input": list{"a", "b", "c"}, ":workers": scores{"w2": 5}},
			call: func(b *bench) any { return b.take(TakeRequest{Owner: "w1", New: true, Most: 2}) },
			says: Taken{Entries: list{"a", "b"}, Now: sixOClock},
			want: keys{"-input": list{"c"}, ":taken:w1": list{"a", "b"}, ":workers": scores{"w1": six, "w2": 5}},
		},
		{
			name: "a take of an empty list is a heartbeat and no error",
			seed: keys{":workers": scores{"w1": 5}},
			call: func(b *bench) any { return len(b.take(TakeRequest{Owner: "w1", Most: 2}).Entries) },
			says: 0,
			want: keys{":workers": scores{"w1": six}},
		},
		{
			name: "a take repeated after a lost reply returns the same entries",
			seed: keys{"-input": list{"c", "d"}, ":taken:w1": list{"a", "b"}, ":workers": scores{"w1": six}},
			call: func(b *bench) any {
				again := []Taken{b.take(TakeRequest{Owner: "w1", New: true, Most: 2})}
				return append(again, b.take(TakeRequest{Owner: "w1", Most: 2, Known: -1}), b.take(TakeRequest{Owner: "w1", Most: 1, Known: 1}))
			},
			says: slices.Repeat([]Taken{{Entries: list{"a", "b"}, Whole: true, Now: sixOClock}}, 3),
		},
		{
			name: "the next take brings only what is new, also to one that believes to know of more",
			seed: keys{"-input": list{"c", "d"}, ":taken:w1": list{"a", "b"}, ":workers": scores{"w1": 5}},
			call: func(b *bench) any {
				return []Taken{b.take(TakeRequest{Owner: "w1", Most: 1, Known: 2}), b.take(TakeRequest{Owner: "w1", Most: 1, Known: 3})}
			},
			says: []Taken{{Entries: list{"c"}, Now: sixOClock}, {Entries: list{"d"}, Now: sixOClock}},
			want: keys{":taken:w1": list{"a", "b", "c", "d"}, ":workers": scores{"w1": six}},
		},
		{
			name: "a forgotten pool takes nothing, as it would never learn what it has lost",
			seed: keys{"-input": list{"a"}, ":workers": scores{"w2": 5}},
			call: func(b *bench) any { return b.take(TakeRequest{Owner: "w1", Most: 2}).Forgotten },
			says: true,
		},
		{
			name: "a take from what is no list is an error",
			seed: keys{"-input": "text"},
			call: func(b *bench) any {
				return only(b.Pool().Take(b.t.Context(), TakeRequest{Owner: "w1", New: true, Most: 1})) != nil
			},
			says: true,
		},
		{
			name: "an answer and its entry change places in one step",
			seed: keys{":taken:w1": list{"a", "b", "c", ""}, ":taken:w2": list{"a"}, "-output": list{"before"}},
			call: func(b *bench) any {
				return b.answer("w1", Answer{Message: "started a"}, Answer{Message: "success of a", Ends: true, Entry: "a"},
					Answer{Ends: true, Entry: "b"}, Answer{Ends: true}) // no message, and an entry that was empty
			},
			says: []bool{true, true, true, true},
			want: keys{":taken:w1": list{"c"}, ":taken:w2": list{"a"}, "-output": list{"before", "started a", "success of a"}},
		},
		{
			name: "an answer sent twice is pushed once",
			seed: keys{":taken:w1": list{"a", "b", "b"}},
			call: func(b *bench) any {
				batch := []Answer{{Message: "success of a", Ends: true, Entry: "a"}, {Ends: true, Entry: "b"}} // one of two that are equal
				return [][]bool{b.answer("w1", batch...), b.answer("w1", batch[0])}
			},
			says: [][]bool{{true, true}, {false}},
			want: keys{":taken:w1": list{"b"}, "-output": list{"success of a"}},
		},
		{
			name: "an attempt that was requeued, or that another has, is not answered by its old pool",
			seed: keys{"-input": list{"a"}, ":taken:w2": list{"b"}},
			call: func(b *bench) any {
				return b.answer("w1", Answer{Message: "success of a", Ends: true, Entry: "a"}, Answer{Message: "success of b", Ends: true, Entry: "b"})
			},
			says: []bool{false, false},
		},
		{
			name: "a heartbeat is the clock", call: beats, says: true,
			seed: keys{":workers": scores{"w1": 5, "w2": 6}},
			want: keys{":workers": scores{"w1": six, "w2": 6}},
		},
		{name: "a forgotten pool is not revived by a heartbeat", call: beats, says: false},
		{
			name: "pools without a heartbeat for a lease are expired, and those from the future",
			seed: and(inFlight(2), keys{
				":workers":   scores{"old": six - 5001, "edge": six - 5000, "alive": six - 4999, "ahead": six + 1250, "future": six + 1251},
				":taken:old": list{inputEntry(0)}, ":taken:alive": list{inputEntry(1)},
			}),
			call: func(b *bench) any {
				expired, err := b.RequeueExpired(b.t.Context(), b.now, b.now, 5*time.Second)
				must(b.t, err)
				return expired
			},
			says: []ExpiredWorker{
				{"old", time.UnixMilli(six - 5001).UTC(), 1, nil}, {"edge", time.UnixMilli(six - 5000).UTC(), 0, nil}, {"future", time.UnixMilli(six + 1251).UTC(), 0, nil},
			},
			want: and(inFlight(2), keys{":workers": scores{"alive": six - 4999, "ahead": six + 1250}, ":taken:alive": list{inputEntry(1)}, "-input": list{inputEntry(0)}}),
		},
		{
			name: "a pool is judged by the clock of the moment, not by that of a caller who was stopped since",
			seed: and(inFlight(1), keys{":workers": scores{"w1": six - 1}, ":taken:w1": inputEntries(1)}),
			call: func(b *bench) any {
				expired, err := b.RequeueExpired(b.t.Context(), b.now.Add(-time.Minute), b.now, 5*time.Second)
				must(b.t, err)
				return expired
			},
			says: []ExpiredWorker{{"w1", time.UnixMilli(six - 1).UTC(), 0, nil}},
		},
		{
			name: "entries are requeued at the head in their order, once",
			seed: and(inFlight(3), keys{
				":taken:w1": inputEntries(3), ":taken:w2": list{"other"}, "-input": list{"waiting"}, ":workers": scores{"w1": 7, "w2": 7},
			}),
			call: func(b *bench) any { return []int{b.requeues("w1", 7), b.requeues("w1", 7)} },
			says: []int{3, 0},
			want: and(inFlight(3), keys{"-input": append(inputEntries(3), "waiting"), ":taken:w2": list{"other"}, ":workers": scores{"w2": 7}}),
		},
		{
			name: "what cannot be read is dropped only if it names no attempt", call: requeue, says: 1,
			seed: keys{
				":taken:w1": list{"", "garbage", `{"big_table_uid":"m0"}`, inputEntry(0), `{"refresh_attempt_uid":"a1"}`},
				":model:m0": "no hash", ":workers": scores{"w1": 7},
			},
			want: keys{"-input": list{inputEntry(0)}, ":model:m0": "no hash"},
		},
		{
			name: "an expired pool with nothing is forgotten", call: requeue, says: 0,
			seed: keys{":workers": scores{"w1": 7, "w2": six}},
			want: keys{":workers": scores{"w2": six}},
		},
	}
	for name, workers := range map[string]scores{"later": {"w1": 8}, "earlier, as the clock was set back": {"w1": 6}, "forgotten": {"w2": 7}} {
		cases = append(cases, callCase{
			name: "a pool with another heartbeat than that by which it was judged keeps its entries: " + name, call: requeue, says: 0,
			seed: and(inFlight(1), keys{":taken:w1": inputEntries(1), ":workers": workers}),
		})
	}
	for name, m0 := range map[string]any{
		"superseded": hash{"attempt_uid": "newer"}, "ended": hash{"rev": "9"}, "removed": list{},
		"at its deadline": hash{"attempt_uid": "a0", "deadline_at": "2026-11-21T06:00:00.000Z"},
	} {
		models := and(inFlight(2), keys{":model:m0": m0})
		left := and(models, keys{"-input": list{inputEntry(1)}})
		if name == "removed" {
			delete(left, ":model:m0")
		}
		cases = append(cases, callCase{
			name: "an attempt that is over is not requeued: " + name, call: requeue, says: 1, want: left,
			seed: and(models, keys{":taken:w1": inputEntries(2), ":workers": scores{"w1": 7}}),
		})
	}
	for name, workers := range map[string]keys{"alive": {":workers": scores{"w1": six}}, "already forgotten": {}} {
		cases = append(cases, callCase{
			name: "a pool that leaves requeues whatever its last heartbeat was: " + name,
			seed: and(inFlight(2), workers, keys{":taken:w1": inputEntries(2)}),
			call: leave, says: 2,
			want: and(inFlight(2), keys{"-input": inputEntries(2)}),
		})
	}
	for name, test := range map[string]struct {
		deadline string
		heard    hash
		says     int
	}{
		"an even clock":                   {"2026-11-21T06:00:00.000Z", hash{"beat": "1"}, 1},
		"the grace of an outage":          {"2026-11-21T05:59:00.000Z", gap(-60_000, -14_999), 2},
		"the end of that grace":           {"2026-11-21T06:00:00.000Z", gap(-60_000, -15_000), 1},
		"a deadline long before it":       {"2026-11-21T05:58:45.000Z", gap(-60_000, -14_999), 1},
		"a gap that lies ahead":           {"2026-11-21T06:00:00.000Z", gap(-1, 1), 1},
		"a gap that somebody has written": {"2026-11-21T06:00:00.000Z", hash{"gap": "soon"}, 1},
	} {
		models := and(inFlight(2), keys{":model:m0": hash{"attempt_uid": "a0", "deadline_at": test.deadline}, ":heard": test.heard})
		cases = append(cases, callCase{
			name: "a pool leaves an attempt at its deadline to a dispatcher, as far as deadlines are judged: " + name,
			seed: and(models, keys{":taken:w1": inputEntries(2), ":workers": scores{"w1": six}}),
			call: func(b *bench) any { b.Config.Grace = 15 * time.Second; return leave(b) },
			says: test.says, want: and(models, keys{"-input": inputEntries(2)[2-test.says:]}),
		})
	}
	eachCall(t, cases)
}

// gap is a time without dispatchers, in ms from six.
func gap(from, to int) hash { return hash{"gap": fmt.Sprint(six+from, " ", six+to)} }

func leave(b *bench) any {
	count, err := b.Pool().Leave(b.t.Context(), "w1")
	must(b.t, err)
	return count
}

func TestADeadWorkerWhoseListIsOfAnotherTypeKeepsNoOtherWaiting(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":taken:w1": "x", ":taken:w2": inputEntries(1), ":workers": scores{"w1": 7, "w2": 8}})
		b.redis.HSet(t.Context(), benchQueue+":model:m0", "attempt_uid", "a0")
		expired, err := b.RequeueExpired(t.Context(), b.now, b.now, 5*time.Second)
		failIf(t, err == nil || len(expired) != 1 || expired[0].Owner != "w2", "expected w2 alone and an error, found %v, %v", expired, err)
		expectEqual(t, "in line", list{inputEntry(0)}, b.redis.LRange(t.Context(), benchQueue+"-input", 0, -1).Val())
	})
}

func TestALongListIsRequeuedAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		n := long.Or(1_000, 4_000)
		b.seed(keys{":taken:w1": inputEntries(n), ":workers": scores{"w1": 7}})
		for i := range n / 2 { // the other half is over
			b.redis.HSet(t.Context(), fmt.Sprint(benchQueue, ":model:m", 2*i), "attempt_uid", fmt.Sprint("a", 2*i))
		}
		expectEqual(t, "requeued", n/2, b.requeues("w1", 7))
		expectEqual(t, "head", list{inputEntry(0), inputEntry(2)}, b.redis.LRange(t.Context(), benchQueue+"-input", 0, 1).Val())
	})
}

func TestQueuedFindsEveryAttemptByItsUIDAndLeavesOutWhatIsNotOurs(t *testing.T) {
	queued := func(b *bench) any {
		queued, err := b.Queued(b.t.Context())
		must(b.t, err)
		return queued
	}
	eachCall(t, []callCase{
		{name: "none is queued", call: queued, says: map[string]string{}},
		{
			name: "queued", call: queued, says: map[string]string{"a0": inputEntry(0), "a1": inputEntry(1)},
			seed: keys{"-input": list{"garbage", inputEntry(0), `{"refresh_attempt_uid":""}`, "\xff", inputEntry(1), `[]`}},
		},
	})
}

func TestAFenceTellsWhatItsModelIsRunningAndOneThatCannotBeReadSpoilsNoOther(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{
			":model:running": hash{"attempt_uid": "a1", "deadline_at": "2026-11-21T07:00:00.250Z", "processing_at": "2026-11-21T06:50:00.250Z"},
			":model:idle":    hash{"attempt_no": "0"}, ":model:odd": hash{"attempt_uid": "a2", "deadline_at": "tomorrow"}, ":model:text": "not a hash",
		})
		fences, now, err := b.Pool().Fences(t.Context(), []string{"text", "running", "gone", "idle", "odd"})
		stopIf(t, err != nil || !now.Equal(b.now) || fences[0].Err == nil, "fences: now %v, %v, and of what is no hash %v", now, err, fences[0].Err)
		at := time.Date(2026, 11, 21, 7, 0, 0, 250e6, time.UTC)
		expectEqual(t, "fences", []Fence{{AttemptUID: "a1", DeadlineAt: at, Begun: true}, {}, {}, {AttemptUID: "a2"}}, fences[1:])
	})
}

func TestFencesOfAnUnreachableRedisAreAnErrorAndNoLostFences(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	b.Config.Clock = nil
	b.server.Mini.Close()
	fences, _, err := b.Pool().Fences(t.Context(), []string{"m"})
	failIf(t, err == nil || fences != nil, "fences %v, err %v; want none and an error", fences, err)
}

func TestTheClockIsThatOfRedisUnlessItIsReplaced(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		now, err := b.Now(ctx)
		expectEqual(t, "replaced clock", b.now, now)
		b.Config.Clock = nil
		last := b.redis.Time(ctx).Val().UTC().Truncate(time.Millisecond)
		ahead := last.Add(time.Hour)
		b.seed(keys{":due": scores{"past": float64(last.UnixMilli()), "ahead": float64(ahead.UnixMilli())}})
		now, errNow := b.Now(ctx)
		taken, errTake := b.Pool().Take(ctx, TakeRequest{Owner: "w1", New: true, Most: 1})
		beat, errBeat := b.Pool().Heartbeat(ctx, "w1")
		claim, errClaim := b.Claim(ctx, "p1", Holding{}, 1, testLease)
		due, errDue := b.ReadDue(ctx, DueRequest{Limit: 3})
		if err := errors.Join(err, errNow, errTake, errBeat, errClaim, errDue); err != nil || beat.Forgotten {
			t.Fatal(err, beat)
		}
		for i, read := range []time.Time{now, taken.Now, beat.Now, claim.Now, due.Now, b.redis.Time(ctx).Val().UTC()} {
			failIf(t, read.Before(last) || read.Location() != time.UTC || i < 5 && read.Nanosecond()%1e6 != 0,
				"clock %d: %v; want whole milliseconds of UTC from %v on", i, read, last)
			last = read
		}
		state := b.state()
		expectEqual(t, "heartbeat of a pool", any(scores{"w1": float64(beat.Now.UnixMilli())}), state[":workers"])
		expectEqual(t, "heartbeat of a poller", any(scores{"p1": float64(claim.Now.UnixMilli())}), state[":pollers"])
		expectEqual(t, "due", list{"past"}, due.Due)
		expectEqual(t, "next", ahead, due.Next)
	})
}
