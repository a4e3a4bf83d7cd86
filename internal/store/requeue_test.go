package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/long"
)

func (b *bench) requeues(owner string, lastHeartbeat int64) int {
	b.t.Helper()
	count, err := b.Pool().Requeue(context.Background(), ExpiredWorker{owner, time.UnixMilli(lastHeartbeat)})
	must(b.t, err)
	return count
}

// inFlight are the models of inputEntry(0) to inputEntry(n-1), each running its attempt until ten past six.
func inFlight(n int) keys {
	all := keys{}
	for i := range n {
		all[fmt.Sprint(":model:m", i)] = hash{"attempt_uid": fmt.Sprint("a", i), "deadline_at": "2026-11-21T06:10:00.000Z"}
	}
	return all
}

func TestAHeartbeatIsTheClock(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":workers": scores{"w1": 5, "w2": 6}})
		if now, known, err := b.Pool().Heartbeat(t.Context(), "w1"); err != nil || !known || !now.Equal(b.now) {
			t.Errorf("heartbeat: %v, %v, %v; want %v, true, nil", now, known, err, b.now)
		}
		b.expect(keys{":workers": scores{"w1": six, "w2": 6}})
	})
}

func TestAForgottenWorkerIsNotRevivedByAHeartbeat(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.unchanged(func() {
			if _, known, err := b.Pool().Heartbeat(t.Context(), "w1"); err != nil || known {
				t.Errorf("heartbeat: known %v, %v; want false, nil", known, err)
			}
		})
	})
}

func TestExpiredWorkersAreThoseWithoutAHeartbeatForALeaseAndThoseFromTheFuture(t *testing.T) {
	const lease = 5 * time.Second
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":workers": scores{
			"old": six - 5001, "edge": six - 5000, "alive": six - 4999, "ahead": six + 1250, "future": six + 1251,
		}})
		expired, err := b.Pool().ExpiredWorkers(t.Context(), b.now, lease)
		must(t, err)
		want := []ExpiredWorker{
			{"old", b.now.Add(-lease - time.Millisecond)}, {"edge", b.now.Add(-lease)}, {"future", b.now.Add(lease/4 + time.Millisecond)},
		}
		expectEqual(t, "expired", want, expired)
	})
}

func TestEntriesAreRequeuedAtTheHeadInTheirOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		models := inFlight(3)
		b.seed(and(models, keys{
			":taken:w1": inputEntries(3), ":taken:w2": list{"other"}, "-input": list{"waiting"}, ":workers": scores{"w1": 7, "w2": 7},
		}))
		expectEqual(t, "requeued", 3, b.requeues("w1", 7))
		after := and(models, keys{"-input": append(inputEntries(3), "waiting"), ":taken:w2": list{"other"}, ":workers": scores{"w2": 7}})
		b.expect(after)
		b.unchanged(func() { expectEqual(t, "requeued again", 0, b.requeues("w1", 7)) })
	})
}

func TestAWorkerThatGaveASignSinceItWasJudgedKeepsItsEntries(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for name, workers := range map[string]scores{"later": {"w1": 8}, "earlier, as the clock was set back": {"w1": 6}, "forgotten": {"w2": 7}} {
			b.server.Flush(t)
			b.seed(and(inFlight(1), keys{":taken:w1": inputEntries(1), ":workers": workers}))
			b.unchanged(func() { expectEqual(t, name, 0, b.requeues("w1", 7)) })
		}
	})
}

func TestAnAttemptThatIsOverIsNotRequeued(t *testing.T) {
	over := map[string]keys{
		"superseded":      {":model:m0": hash{"attempt_uid": "newer"}},
		"ended":           {":model:m0": hash{"rev": "9"}},
		"removed":         {},
		"at its deadline": {":model:m0": hash{"attempt_uid": "a0", "deadline_at": "2026-11-21T06:00:00.000Z"}},
	}
	everywhere(t, func(t *testing.T, b *bench) {
		for name, model := range over {
			b.server.Flush(t)
			b.seed(and(inFlight(2), keys{":taken:w1": inputEntries(2), ":workers": scores{"w1": 7}}))
			b.redis.Del(t.Context(), benchQueue+":model:m0")
			b.seed(model)
			expectEqual(t, name, 1, b.requeues("w1", 7))
			expectEqual(t, name, any(list{inputEntry(1)}), b.state()["-input"])
			expectEqual(t, name, nil, b.state()[":taken:w1"])
		}
	})
}

func TestWhatCannotBeReadIsDroppedOnlyIfItNamesNoAttempt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{
			":taken:w1": list{"", "garbage", `{"big_table_uid":"m0"}`, inputEntry(0), `{"refresh_attempt_uid":"a1"}`},
			":model:m0": "no hash", ":workers": scores{"w1": 7},
		})
		expectEqual(t, "requeued", 1, b.requeues("w1", 7))
		b.expect(keys{"-input": list{inputEntry(0)}, ":model:m0": "no hash"})
	})
}

func TestAnExpiredWorkerWithNothingIsForgotten(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":workers": scores{"w1": 7, "w2": six}})
		expectEqual(t, "requeued", 0, b.requeues("w1", 7))
		b.expect(keys{":workers": scores{"w2": six}})
	})
}

func TestAWorkerThatLeavesRequeuesWhateverItsLastHeartbeatWas(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for name, workers := range map[string]keys{"alive": {":workers": scores{"w1": six}}, "already forgotten": {}} {
			b.server.Flush(t)
			b.seed(and(inFlight(2), workers, keys{":taken:w1": inputEntries(2)}))
			count, err := b.Pool().Leave(t.Context(), "w1")
			if err != nil || count != 2 {
				t.Errorf("%s: left with %d, %v; want 2", name, count, err)
			}
			b.expect(and(inFlight(2), keys{"-input": inputEntries(2)}))
		}
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
		first := b.redis.LRange(t.Context(), benchQueue+"-input", 0, 1).Val()
		expectEqual(t, "head", list{inputEntry(0), inputEntry(2)}, first)
	})
}
