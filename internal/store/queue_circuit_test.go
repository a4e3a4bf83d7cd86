package store

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

func aQueueCircuit() model.QueueCircuit {
	return model.QueueCircuit{On: true, Share: 0.5, Window: 5 * time.Minute, Min: 4}
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

func TestTheCircuitOfAQueueIsOpenedByAShareOfFailuresAndHoldsWhatFailsThen(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		expectEqual(t, "of an empty queue", QueueCircuitStatus{QueueCircuit: model.DefaultQueueCircuit()}, b.queueCircuit())
		set := aQueueCircuit()
		for _, on := range []bool{false, true} {
			set.On = on
			must(t, b.Fleet().SetQueueCircuit(t.Context(), set, "ann"))
			b.end(true, fmt.Sprint("s1-", on), fmt.Sprint("s2-", on))
			b.end(false, fmt.Sprint("f1-", on), fmt.Sprint("f2-", on))
		}
		expectEqual(t, "half of four", CircuitOpened, b.measure())
		set.Open = true
		expectEqual(t, "status", QueueCircuitStatus{set, "2026-11-21T06:00:00.000Z", 2, 2, 1}, b.queueCircuit())
		b.end(false, "f3")
		expectEqual(t, "journal", any("1"), b.newest(b.Keys.Journal)["held"])
		if held := b.load("f3"); held.Disabled || held.RefreshAt.IsZero() {
			t.Errorf("want a failure held back, got %+v", held.State)
		}
	})
}

func merged(hashes ...hash) hash {
	all := hash{}
	for _, fields := range hashes {
		maps.Copy(all, fields)
	}
	return all
}

// counted are ends of attempts that were counted some ms before six.
func counted(ok, failed string, ago int) hash {
	began := strconv.Itoa(six - ago)
	return hash{model.QueueCircuitSucceeded + began: ok, model.QueueCircuitFailed + began: failed}
}

func TestEachMeasurementOfTheCircuitOfAQueueChangesExactlyWhatItShould(t *testing.T) {
	set := hash{"on": "1", "share": "0.5", "window_ms": "300000", "min": "4"}
	opened := but(set, "opened_at", "2026-11-21T06:00:00.000Z", "opened", "1")
	measure := func(b *bench) any { return b.measure() }
	told := func(event, ok, failed string) events {
		return events{{"event": event, "key": "queue", "at": "2026-11-21T06:00:00.000Z", "successes": ok, "failures": failed}}
	}
	eachCall(t, []callCase{
		{
			name: "three attempts are too few to open it", call: measure, says: CircuitUnchanged,
			seed: keys{":circuit:queue": set, ":stats": counted("1", "2", 1)},
		},
		{
			name: "half of four open it", call: measure, says: CircuitOpened,
			seed: keys{":circuit:queue": set, ":stats": counted("2", "2", 1)},
			want: keys{
				":circuit:queue": opened, ":stats": but(counted("2", "2", 1), "circuit_opened", "1"),
				":journal": told("circuit_opened", "2", "2"), ":outbox": told("circuit_opened", "2", "2"),
			},
		},
		{
			name: "without a journal the operators are told all the same", says: CircuitOpened,
			call: func(b *bench) any { b.Config.JournalCap = None; return b.measure() },
			seed: keys{":circuit:queue": set, ":stats": counted("0", "4", 1)},
			want: keys{":circuit:queue": opened, ":stats": but(counted("0", "4", 1), "circuit_opened", "1"), ":outbox": told("circuit_opened", "0", "4")},
		},
		{
			name: "an open one is not opened again", call: measure, says: CircuitUnchanged,
			seed: keys{":circuit:queue": opened, ":stats": counted("0", "9", 1)},
		},
		{
			name: "what is too old, or no number, counts for nothing", call: measure, says: CircuitUnchanged,
			seed: keys{":circuit:queue": set, ":stats": merged(counted("0", "9", 300_000), counted("", "many", 1), counted("0", "3", 2), counted("0", "9", -300_001))},
			want: keys{":circuit:queue": set, ":stats": merged(counted("", "many", 1), counted("0", "3", 2))},
		},
		{
			name: "what stands beside what is no number counts", call: measure, says: CircuitOpened,
			seed: keys{":circuit:queue": set, ":stats": merged(counted("", "many", 1), counted("0", "4", 2))},
			want: keys{
				":circuit:queue": opened, ":stats": merged(counted("", "many", 1), counted("0", "4", 2), hash{"circuit_opened": "1"}),
				":journal": told("circuit_opened", "0", "4"), ":outbox": told("circuit_opened", "0", "4"),
			},
		},
		{ // Several daemons count and one measures: what is counted while it measures lies ahead of the clock that it has read.
			name: "what is counted meanwhile counts", call: measure, says: CircuitOpened,
			seed: keys{":circuit:queue": set, ":stats": counted("0", "4", -300_000)},
			want: keys{
				":circuit:queue": opened, ":stats": but(counted("0", "4", -300_000), "circuit_opened", "1"),
				":journal": told("circuit_opened", "0", "4"), ":outbox": told("circuit_opened", "0", "4"),
			},
		},
		{
			name: "one success is enough to close it", call: measure, says: CircuitClosed,
			seed: keys{":circuit:queue": opened, ":stats": counted("1", "0", 1)},
			want: keys{
				":circuit:queue": but(set, "opened", "1"), ":stats": but(counted("1", "0", 1), "circuit_closed", "1"),
				":journal": told("circuit_closed", "1", "0"), ":outbox": told("circuit_closed", "1", "0"),
			},
		},
		{
			name: "less than half of its share of failures closes it", call: measure, says: CircuitClosed,
			seed: keys{":circuit:queue": but(opened, "probe_at", "2026-11-21T06:00:00.000Z", "by", "ann", "reason", "why"), ":stats": counted("4", "1", 1)},
			want: keys{
				":circuit:queue": but(set, "opened", "1"), ":stats": but(counted("4", "1", 1), "circuit_closed", "1"),
				":journal": told("circuit_closed", "4", "1"), ":outbox": told("circuit_closed", "4", "1"),
			},
		},
		{
			name: "half of it does not, nor does nothing", call: func(b *bench) any {
				first := b.measure()
				b.now = b.now.Add(10 * time.Minute)
				return []CircuitChange{first, b.measure()}
			},
			says: []CircuitChange{CircuitUnchanged, CircuitUnchanged},
			seed: keys{":circuit:queue": opened, ":stats": counted("3", "1", 1)},
			want: keys{":circuit:queue": opened},
		},
		{
			name: "what somebody has opened is not closed before it may be tried", call: measure, says: CircuitUnchanged,
			seed: keys{":circuit:queue": but(opened, "probe_at", "2026-11-21T06:00:00.001Z"), ":stats": counted("9", "0", 1)},
		},
		{
			name: "one that is off stays as it is", call: measure, says: CircuitUnchanged,
			seed: keys{":circuit:queue": but(opened, "on", ""), ":stats": counted("9", "0", 1)},
		},
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
	stopIf(b.t, err != nil || len(entries) == 0, "want an entry in %s, got none (%v)", stream, err)
	return Told(entries[0].Values)
}

func TestACircuitOfAQueueThatIsClosedByHandForgetsWhatOpenedIt(t *testing.T) {
	off := aQueueCircuit()
	off.On = false
	everywhere(t, func(t *testing.T, b *bench) {
		for name, closes := range map[string]func(b *bench) error{
			"closed": func(b *bench) error { return b.turn(CircuitClosed, "queue", 0) },
			"switched off": func(b *bench) error {
				return errors.Join(b.Fleet().SetQueueCircuit(t.Context(), off, "ann"), b.Fleet().SetQueueCircuit(t.Context(), aQueueCircuit(), "ann"))
			},
		} {
			b := b.fresh(t)
			must(t, b.Fleet().SetQueueCircuit(t.Context(), aQueueCircuit(), "ann"))
			b.end(false, "f1", "f2", "f3", "f4")
			expectEqual(t, name+": before", CircuitOpened, b.measure())
			must(t, closes(b))
			expectEqual(t, name+": measured", CircuitUnchanged, b.measure())
			expectEqual(t, name, QueueCircuitStatus{QueueCircuit: aQueueCircuit(), Opened: 1}, b.queueCircuit())
			expectEqual(t, name+": told", map[string]any{"event": "circuit_closed", "key": "queue", "at": "2026-11-21T06:00:00.000Z", "by": "ann"}, b.newest(b.Keys.Outbox))
			stats, err := b.Report().Stats(t.Context())
			failIf(t, err != nil || stats.Counters["failure"] != 4, "%s: want the counters for people kept, got %v, %v", name, stats.Counters, err)
		}
	})
}

func TestACircuitOfAQueueOutOfRangeIsRefusedAndOneThatCannotBeReadIsTheDefault(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	bad := aQueueCircuit()
	bad.Share = 2
	err := b.Fleet().SetQueueCircuit(t.Context(), bad, "ann")
	failIf(t, !errors.As(err, new(*document.Error)), "want a refusal, got %v", err)
	b.expect(keys{})
	b.seed(keys{":circuit:queue": hash{"on": "1", "opened_at": "x", "share": "half", "window_ms": "300000", "min": "20"}})
	want := model.DefaultQueueCircuit()
	want.On, want.Open = true, true
	expectEqual(t, "circuit", want, b.queueCircuit().QueueCircuit)
}

func TestCountersOfAWindowThatWasChangedGrowOldLikeAllOthers(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":stats": merged(counted("4", "1", minute), counted("4", "1", 6*minute), counted("4", "1", 60*minute))})
		circuit := aQueueCircuit()
		for _, test := range []struct {
			window time.Duration
			want   [2]int64
		}{{time.Hour, [2]int64{8, 2}}, {5 * time.Minute, [2]int64{4, 1}}} {
			circuit.Window = test.window
			must(t, b.Fleet().SetQueueCircuit(t.Context(), circuit, "ann"))
			expectEqual(t, "measured", CircuitUnchanged, b.measure())
			expectEqual(t, test.window.String(), QueueCircuitStatus{circuit, "", test.want[0], test.want[1], 0}, b.queueCircuit())
		}
		for _, windows := range [][2]time.Duration{{5 * time.Minute, time.Hour}, {time.Hour, 5 * time.Minute}} {
			b.server.Flush(t)
			circuit.Window = windows[0]
			must(t, b.Fleet().SetQueueCircuit(t.Context(), circuit, "ann"))
			b.end(false, "f1", "f2")
			circuit.Window = windows[1]
			must(t, b.Fleet().SetQueueCircuit(t.Context(), circuit, "ann"))
			expectEqual(t, "measured", CircuitUnchanged, b.measure())
			expectEqual(t, windows[0].String()+": status at once", QueueCircuitStatus{circuit, "", 0, 2, 0}, b.queueCircuit())
			b.now = b.now.Add(windows[1])
			expectEqual(t, "measured", CircuitUnchanged, b.measure())
			expectEqual(t, windows[0].String()+": status after the window", QueueCircuitStatus{circuit, "", 0, 0, 0}, b.queueCircuit())
		}
	})
}

func TestAnOpenCircuitOfAQueueThatIsOffIsClosedByHandOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		must(t, b.turn(CircuitOpened, "queue", time.Minute))
		b.end(false, "f1")
		b.now = b.now.Add(time.Hour)
		b.end(true, "s1")
		expectEqual(t, "measured", CircuitUnchanged, b.measure())
		held := b.load("f1")
		failIf(t, held.Disabled || !b.queueCircuit().Open, "want it open, and failures held back, got %+v and %+v", b.queueCircuit(), held.State)
		must(t, b.turn(CircuitClosed, "queue", 0))
		b.now = b.now.Add(time.Minute)
		b.end(false, "f2")
		final := b.load("f2")
		failIf(t, !final.Disabled || b.queueCircuit().Open, "want it closed, and a final failure, got %+v and %+v", b.queueCircuit(), final.State)
	})
}

func TestAnyNumberOfExpiredCountersIsForgotten(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		stats := hash{"failure": "9"}
		for i := range 10_000 {
			stats[model.QueueCircuitFailed+strconv.Itoa(i)] = "1"
		}
		b.seed(keys{":stats": stats})
		must(t, b.Fleet().SetQueueCircuit(t.Context(), aQueueCircuit(), "ann"))
		expectEqual(t, "measured", CircuitUnchanged, b.measure())
		expectEqual(t, "counters", any(hash{"failure": "9"}), b.state()[":stats"])
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
			ttl := b.redis.TTL(t.Context(), b.Keys.Circuit(key)).Val()
			failIf(t, err != nil || (ttl < 0) != (key == "queue"), "%s: kept for %s, %v", key, ttl, err)
		}
	})
}
