package store

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

func aQueueCircuit() model.QueueCircuit {
	return model.QueueCircuit{On: true, Share: 0.5, Window: 5 * time.Minute, Min: 4}
}

func (b *bench) setQueueCircuit(circuit model.QueueCircuit) {
	b.t.Helper()
	must(b.t, b.Fleet().SetQueueCircuit(b.t.Context(), circuit, "ann"))
}

func (b *bench) queueCircuit() QueueCircuitStatus {
	b.t.Helper()
	status, err := b.Fleet().QueueCircuit(b.t.Context())
	must(b.t, err)
	return status
}

func (b *bench) measure() CircuitChange {
	b.t.Helper()
	change, err := b.MeasureCircuit(b.t.Context(), b.now)
	must(b.t, err)
	return change
}

// end starts one-shots of their own and ends them.
func (b *bench) end(success bool, uids ...string) {
	b.t.Helper()
	for _, uid := range uids {
		b.mustApply(b.put(uid, "{}"))
		b.mustApply(b.start(uid, "attempt-"+uid))
		record := b.load(uid)
		decision := record.Fail(policy.Failure{Reason: "HTTP 500", ErrorType: "Gone", Retryable: new(bool)}, b.now)
		if success {
			decision = record.Succeed(b.now, nil)
		}
		b.mustApply(record.Decide(decision, b.now))
	}
}

func TestTheCircuitOfAQueueIsOpenedByAShareOfFailuresAndClosedByHalfOfIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.setQueueCircuit(aQueueCircuit())
		b.end(true, "s1")
		b.end(false, "f1", "f2")
		expectEqual(t, "of three", CircuitUnchanged, b.measure())
		b.end(true, "s2")
		expectEqual(t, "half of four", CircuitOpened, b.measure())
		expectEqual(t, "again", CircuitUnchanged, b.measure())
		open := aQueueCircuit()
		open.Open = true
		expectEqual(t, "status", QueueCircuitStatus{open, "2026-11-21T06:00:00.000Z", 2, 2, 1}, b.queueCircuit())
		expectEqual(t, "journal", map[string]any{"event": "circuit_opened", "key": "queue", "at": "2026-11-21T06:00:00.000Z", "successes": "2", "failures": "2"}, b.newest(b.Keys.Journal))

		b.end(false, "f3") // held back
		expectEqual(t, "journal", any("1"), b.newest(b.Keys.Journal)["held"])
		if held := b.load("f3"); held.Disabled || held.RefreshAt.IsZero() {
			t.Errorf("want a failure held back, got %+v", held.State)
		}

		b.now = b.now.Add(6 * time.Minute) // all that was counted is too old
		expectEqual(t, "of none", CircuitUnchanged, b.measure())
		b.end(true, "s3")
		expectEqual(t, "of one success", CircuitClosed, b.measure())
		expectEqual(t, "status", QueueCircuitStatus{aQueueCircuit(), "", 1, 0, 1}, b.queueCircuit())
	})
}

// turn opens a circuit by hand, for a time, or closes it.
func (b *bench) turn(to CircuitChange, key string, probeAfter time.Duration) error {
	var err error
	if to == CircuitOpened {
		_, err = b.Fleet().OpenCircuit(b.t.Context(), key, "ann", "a new proxy", b.now.Add(probeAfter), b.now)
	} else {
		_, err = b.Fleet().CloseCircuit(b.t.Context(), key, "ann", b.now)
	}
	return err
}

func (b *bench) newest(stream string) map[string]any {
	b.t.Helper()
	entries, err := b.redis.XRevRangeN(b.t.Context(), stream, "+", "-", 1).Result()
	if err != nil || len(entries) == 0 {
		b.t.Fatalf("want an entry in %s, got none (%v)", stream, err)
	}
	return entries[0].Values
}

// Several daemons count and one measures: what is counted while it measures lies ahead of the clock that it has read.
func TestWhatIsCountedWhileTheCircuitOfAQueueIsMeasuredCounts(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.setQueueCircuit(aQueueCircuit())
		b.end(false, "f1", "f2", "f3", "f4")
		b.now = b.now.Add(-aQueueCircuit().Window / 2)
		expectEqual(t, "four failures", CircuitOpened, b.measure())
		b.now = b.now.Add(aQueueCircuit().Window / 2)
		expectEqual(t, "failures", int64(4), b.queueCircuit().Failures)
	})
}

func TestACounterOfTheCircuitOfAQueueThatIsNoNumberCountsForNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		at := strconv.FormatInt(b.now.UnixMilli()-1, 10)
		b.seed(keys{":stats": hash{model.QueueCircuitFailed + at: "many"}})
		b.setQueueCircuit(aQueueCircuit())
		b.end(false, "f1", "f2", "f3")
		expectEqual(t, "three failures", CircuitUnchanged, b.measure())
		b.end(false, "f4")
		expectEqual(t, "four failures", CircuitOpened, b.measure())
	})
}

func TestACircuitOfAQueueThatIsOffCountsNothingAndDoesNotOpen(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		expectEqual(t, "of an empty queue", QueueCircuitStatus{QueueCircuit: model.DefaultQueueCircuit()}, b.queueCircuit())
		off := aQueueCircuit()
		off.On = false
		b.setQueueCircuit(off)
		b.end(false, "f1", "f2", "f3", "f4")
		expectEqual(t, "measured", CircuitUnchanged, b.measure())
		expectEqual(t, "status", QueueCircuitStatus{QueueCircuit: off}, b.queueCircuit())
	})
}

func TestACircuitOfAQueueThatIsClosedByHandForgetsWhatOpenedIt(t *testing.T) {
	off := aQueueCircuit()
	off.On = false
	everywhere(t, func(t *testing.T, b *bench) {
		for name, closes := range map[string]func() error{
			"closed": func() error { return b.turn(CircuitClosed, "queue", 0) },
			"switched off": func() error {
				return errors.Join(b.Fleet().SetQueueCircuit(t.Context(), off, "ann"), b.Fleet().SetQueueCircuit(t.Context(), aQueueCircuit(), "ann"))
			},
		} {
			b.server.Flush(t)
			b.setQueueCircuit(aQueueCircuit())
			b.end(false, "f1", "f2", "f3", "f4")
			expectEqual(t, name+": before", CircuitOpened, b.measure())
			must(t, closes())
			expectEqual(t, name+": measured", CircuitUnchanged, b.measure())
			expectEqual(t, name, QueueCircuitStatus{QueueCircuit: aQueueCircuit(), Opened: 1}, b.queueCircuit())
			expectEqual(t, name+": told", map[string]any{"event": "circuit_closed", "key": "queue", "at": "2026-11-21T06:00:00.000Z", "by": "ann"}, b.newest(b.Keys.Outbox))
			if stats, err := b.Report().Stats(t.Context()); err != nil || stats.Counters["failure"] != 4 {
				t.Errorf("%s: want the counters for people kept, got %v, %v", name, stats.Counters, err)
			}
		}
	})
}

func TestACircuitOfAQueueOutOfRangeIsRefusedAndOneThatCannotBeReadIsTheDefault(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	bad := aQueueCircuit()
	bad.Share = 2
	if err := b.Fleet().SetQueueCircuit(t.Context(), bad, "ann"); !errors.As(err, new(*document.Error)) {
		t.Errorf("want a refusal, got %v", err)
	}
	b.expect(keys{})
	b.seed(keys{":circuit:queue": hash{"on": "1", "opened_at": "x", "share": "half", "window_ms": "300000", "min": "20"}})
	want := model.DefaultQueueCircuit()
	want.On, want.Open = true, true
	expectEqual(t, "circuit", want, b.queueCircuit().QueueCircuit)
}

func TestCountersOfAWindowThatWasChangedGrowOldLikeAllOthers(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, windows := range [][2]time.Duration{{5 * time.Minute, time.Hour}, {time.Hour, 5 * time.Minute}} {
			b.server.Flush(t)
			circuit := aQueueCircuit()
			circuit.Window = windows[0]
			b.setQueueCircuit(circuit)
			b.end(false, "f1", "f2")
			circuit.Window = windows[1]
			b.setQueueCircuit(circuit)
			expectEqual(t, "measured", CircuitUnchanged, b.measure())
			expectEqual(t, windows[0].String()+": status at once", QueueCircuitStatus{circuit, "", 0, 2, 0}, b.queueCircuit())
			b.now = b.now.Add(windows[1])
			expectEqual(t, "measured", CircuitUnchanged, b.measure())
			expectEqual(t, windows[0].String()+": status after the window", QueueCircuitStatus{circuit, "", 0, 0, 0}, b.queueCircuit())
		}
	})
}

func TestAnyNumberOfExpiredCountersIsForgotten(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		stats := hash{"failure": "9"}
		for i := range 10_000 {
			stats[model.QueueCircuitFailed+strconv.Itoa(i)] = "1"
		}
		b.seed(keys{":stats": stats})
		b.setQueueCircuit(aQueueCircuit())
		expectEqual(t, "measured", CircuitUnchanged, b.measure())
		expectEqual(t, "counters", any(hash{"failure": "9"}), b.state()[":stats"])
	})
}

func TestTheCircuitOfAQueueIsMeasuredWithoutAJournalToo(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.setQueueCircuit(aQueueCircuit())
		b.end(false, "f1", "f2", "f3", "f4")
		expectEqual(t, "of four", CircuitOpened, b.measure())
		if journal := b.state()[":journal"]; journal != nil {
			t.Errorf("want no journal, got %v", journal)
		}
		expectEqual(t, "outbox", any("circuit_opened"), b.newest(b.Keys.Outbox)["event"])
	}, func(c *Config) { c.JournalCap = None })
}

func TestWhatSomebodyHasOpenedIsNotClosedBeforeItMayBeTriedAndThenByAttemptsSinceThen(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.setQueueCircuit(aQueueCircuit())
		b.end(true, "s1") // before it opens, which says nothing of what comes
		must(t, b.turn(CircuitOpened, "queue", time.Minute))
		b.now = b.now.Add(59 * time.Second)
		b.end(true, "s2")
		expectEqual(t, "a success, too soon", CircuitUnchanged, b.measure())
		b.end(false, "f1", "f2")
		b.now = b.now.Add(time.Second)
		expectEqual(t, "one of three", CircuitUnchanged, b.measure())
		if held := b.load("f1"); held.Disabled {
			t.Errorf("want failures held back, got %+v", held.State)
		}
		for i := range 6 {
			b.end(true, "s"+strconv.Itoa(3+i))
		}
		expectEqual(t, "seven of nine", CircuitClosed, b.measure())
		expectEqual(t, "what is left", any(hash{"on": "1", "share": "0.5", "window_ms": "300000", "min": "4", "opened": "1"}), b.state()[":circuit:queue"])
	})
}

func TestAnOpenCircuitOfAQueueThatIsOffIsClosedByHandOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		must(t, b.turn(CircuitOpened, "queue", time.Minute))
		b.end(false, "f1")
		b.now = b.now.Add(time.Hour)
		b.end(true, "s1")
		expectEqual(t, "measured", CircuitUnchanged, b.measure())
		if held := b.load("f1"); held.Disabled || !b.queueCircuit().Open {
			t.Errorf("want it open, and failures held back, got %+v and %+v", b.queueCircuit(), held.State)
		}
		must(t, b.turn(CircuitClosed, "queue", 0))
		b.now = b.now.Add(time.Minute)
		b.end(false, "f2")
		if final := b.load("f2"); !final.Disabled || b.queueCircuit().Open {
			t.Errorf("want it closed, and a final failure, got %+v and %+v", b.queueCircuit(), final.State)
		}
	})
}

func TestACircuitThatIsTurnedByHandIsToldOnceWithWhoDidItAndWhy(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, key := range []string{"queue", "host=h"} {
			b.server.Flush(t)
			told := func(want ...string) {
				t.Helper()
				for _, stream := range []string{b.Keys.Journal, b.Keys.Outbox} {
					var got []string
					for _, entry := range b.redis.XRange(t.Context(), stream, "-", "+").Val() {
						got = append(got, fmt.Sprint(entry.Values["event"], " ", entry.Values["key"], " ", entry.Values["by"], " ", entry.Values["reason"], " ", entry.Values["at"]))
					}
					expectEqual(t, stream, want, got)
				}
			}
			opened, closed := "circuit_opened "+key+" ann a new proxy "+model.FormatTime(b.now), "circuit_closed "+key+" ann <nil> "+model.FormatTime(b.now)
			must(t, b.turn(CircuitClosed, key, 0))
			told()
			must(t, b.turn(CircuitOpened, key, time.Minute))
			must(t, b.turn(CircuitOpened, key, time.Hour))
			told(opened)
			expectEqual(t, "probe_at", model.FormatTime(b.now.Add(time.Hour)), b.redis.HGet(t.Context(), b.Keys.Circuit(key), "probe_at").Val())
			expectEqual(t, "reason", "a new proxy", b.redis.HGet(t.Context(), b.Keys.Circuit(key), "reason").Val())
			must(t, only(b.Fleet().OpenCircuit(t.Context(), key, "bob", "", b.now.Add(time.Hour), b.now)))
			if fields := b.redis.HGetAll(t.Context(), b.Keys.Circuit(key)).Val(); fields["by"] != "bob" || fields["reason"] != "" {
				t.Errorf("want the reason to be that of the last, got %v", fields)
			}
			must(t, b.turn(CircuitOpened, key, time.Hour))
			must(t, b.turn(CircuitClosed, key, 0))
			must(t, b.turn(CircuitClosed, key, 0))
			told(opened, closed)
			if fields := b.redis.HGetAll(t.Context(), b.Keys.Circuit(key)).Val(); fields["by"] != "" || fields["reason"] != "" {
				t.Errorf("want neither name nor reason of a closed one, got %v", fields)
			}
			stats, err := b.Report().Stats(t.Context())
			expectEqual(t, "counters", map[string]int64{"circuit_opened": 1, "circuit_closed": 1}, stats.Counters)
			if ttl := b.redis.TTL(t.Context(), b.Keys.Circuit(key)).Val(); err != nil || (ttl < 0) != (key == "queue") {
				t.Errorf("%s: kept for %s, %v", key, ttl, err)
			}
		}
	})
}

func TestWhatTheReleaseBeforeHasStoredOfTheCircuitOfAQueueIsKept(t *testing.T) {
	former := hash{"on": "1", "share": "0.8", "window_ms": "60000", "min": "5", "engaged_at": "2026-11-21T05:59:00.000Z", "engaged": "3", "released": "2"}
	moved := hash{"on": "1", "share": "0.8", "window_ms": "60000", "min": "5", "opened_at": "2026-11-21T05:59:00.000Z", "opened": "3"}
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":brake": former})
		want := model.QueueCircuit{On: true, Share: 0.8, Window: time.Minute, Min: 5}
		expectEqual(t, "read before", want, b.queueCircuit().QueueCircuit)
		for range 2 {
			expectEqual(t, "measured", CircuitUnchanged, b.measure())
			b.expect(keys{":circuit:queue": moved})
		}
		want.Open = true
		expectEqual(t, "read behind", want, b.queueCircuit().QueueCircuit)

		b.server.Flush(t)
		b.seed(keys{":brake": former})
		set := aQueueCircuit()
		b.setQueueCircuit(set)
		b.measure()
		expectEqual(t, "set behind", set, b.queueCircuit().QueueCircuit)

		b.server.Flush(t)
		b.seed(keys{":brake": former})
		must(t, b.turn(CircuitOpened, "queue", time.Minute))
		b.measure()
		want.Open = true
		expectEqual(t, "opened by hand", want, b.queueCircuit().QueueCircuit)
		expectEqual(t, "since", model.FormatTime(b.now), b.queueCircuit().OpenedAt)
	})
}
