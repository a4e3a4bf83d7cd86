package flow_test

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

func aQueueCircuit() model.QueueCircuit {
	return model.QueueCircuit{On: true, Share: 0.5, Window: 5 * time.Minute, Min: 4}
}

func queueCircuit(b *bench) flow.QueueCircuitStatus {
	b.T.Helper()
	status, err := flow.Of(b.Store).QueueCircuit(b.T.Context())
	must(b.T, err)
	return status
}

func measure(b *bench) flow.CircuitChange {
	b.T.Helper()
	change, err := flow.Of(b.Store).MeasureCircuit(b.T.Context(), b.Clock())
	must(b.T, err)
	return change
}

// end starts one-shots of their own and ends them.
func end(b *bench, success bool, uids ...string) {
	b.T.Helper()
	for _, uid := range uids {
		b.MustApply(b.Put(uid, "{}"))
		b.MustApply(b.Hand(uid, "attempt-"+uid))
		record := b.One(uid)
		decision := record.Fail(policy.Failure{Reason: "HTTP 500", ErrorType: "Gone", Retryable: new(bool)}, b.Clock())
		if success {
			decision = record.Succeed(b.Clock(), nil)
		}
		b.MustApply(record.Decide(decision, b.Clock()))
	}
}

func TestTheCircuitOfAQueueIsOpenedByAShareOfFailuresAndHoldsWhatFailsThen(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		expectEqual(t, "of an empty queue", flow.QueueCircuitStatus{QueueCircuit: model.DefaultQueueCircuit()}, queueCircuit(b))
		set := aQueueCircuit()
		for _, on := range []bool{false, true} {
			set.On = on
			must(t, flow.Of(b.Store).SetQueueCircuit(t.Context(), set, "ann"))
			end(b, true, fmt.Sprint("s1-", on), fmt.Sprint("s2-", on))
			end(b, false, fmt.Sprint("f1-", on), fmt.Sprint("f2-", on))
		}
		expectEqual(t, "half of four", flow.CircuitOpened, measure(b))
		set.Open = true
		expectEqual(t, "status", flow.QueueCircuitStatus{QueueCircuit: set, OpenedAt: "2026-11-21T06:00:00.000Z", Successes: 2, Failures: 2, Opened: 1}, queueCircuit(b))
		end(b, false, "f3")
		expectEqual(t, "journal", any("1"), newest(b, b.Keys.Journal)["held"])
		if held := b.One("f3"); held.Disabled || held.RefreshAt.IsZero() {
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
	opened := fixture.But(set, "opened_at", "2026-11-21T06:00:00.000Z", "opened", "1")
	measured := func(b *bench) any { return measure(b) }
	told := func(event, ok, failed string) events {
		return events{{"event": event, "key": "queue", "at": "2026-11-21T06:00:00.000Z", "successes": ok, "failures": failed}}
	}
	fixture.EachCall(t, []fixture.Call{
		{
			Name: "three attempts are too few to open it", Call: measured, Says: flow.CircuitUnchanged,
			Seed: keys{":circuit:queue": set, ":stats": counted("1", "2", 1)},
		},
		{
			Name: "half of four open it", Call: measured, Says: flow.CircuitOpened,
			Seed: keys{":circuit:queue": set, ":stats": counted("2", "2", 1)},
			Want: keys{
				":circuit:queue": opened, ":stats": fixture.But(counted("2", "2", 1), "circuit_opened", "1"),
				":journal": told("circuit_opened", "2", "2"), ":outbox": told("circuit_opened", "2", "2"),
			},
		},
		{
			Name: "without a journal the operators are told all the same", Says: flow.CircuitOpened,
			Call: func(b *bench) any { b.Config.JournalCap = store.None; return measure(b) },
			Seed: keys{":circuit:queue": set, ":stats": counted("0", "4", 1)},
			Want: keys{":circuit:queue": opened, ":stats": fixture.But(counted("0", "4", 1), "circuit_opened", "1"), ":outbox": told("circuit_opened", "0", "4")},
		},
		{
			Name: "an open one is not opened again", Call: measured, Says: flow.CircuitUnchanged,
			Seed: keys{":circuit:queue": opened, ":stats": counted("0", "9", 1)},
		},
		{
			Name: "what is too old, or no number, counts for nothing", Call: measured, Says: flow.CircuitUnchanged,
			Seed: keys{":circuit:queue": set, ":stats": merged(counted("0", "9", 300_000), counted("", "many", 1), counted("0", "3", 2), counted("0", "9", -300_001))},
			Want: keys{":circuit:queue": set, ":stats": merged(counted("", "many", 1), counted("0", "3", 2))},
		},
		{
			Name: "what stands beside what is no number counts", Call: measured, Says: flow.CircuitOpened,
			Seed: keys{":circuit:queue": set, ":stats": merged(counted("", "many", 1), counted("0", "4", 2))},
			Want: keys{
				":circuit:queue": opened, ":stats": merged(counted("", "many", 1), counted("0", "4", 2), hash{"circuit_opened": "1"}),
				":journal": told("circuit_opened", "0", "4"), ":outbox": told("circuit_opened", "0", "4"),
			},
		},
		{ // Several daemons count and one measures: attempts that are counted meanwhile lie ahead of the clock that it has read.
			Name: "what is counted meanwhile counts", Call: measured, Says: flow.CircuitOpened,
			Seed: keys{":circuit:queue": set, ":stats": counted("0", "4", -300_000)},
			Want: keys{
				":circuit:queue": opened, ":stats": fixture.But(counted("0", "4", -300_000), "circuit_opened", "1"),
				":journal": told("circuit_opened", "0", "4"), ":outbox": told("circuit_opened", "0", "4"),
			},
		},
		{
			Name: "one success is enough to close it", Call: measured, Says: flow.CircuitClosed,
			Seed: keys{":circuit:queue": opened, ":stats": counted("1", "0", 1)},
			Want: keys{
				":circuit:queue": fixture.But(set, "opened", "1"), ":stats": fixture.But(counted("1", "0", 1), "circuit_closed", "1"),
				":journal": told("circuit_closed", "1", "0"), ":outbox": told("circuit_closed", "1", "0"),
			},
		},
		{
			Name: "less than half of its share of failures closes it", Call: measured, Says: flow.CircuitClosed,
			Seed: keys{":circuit:queue": fixture.But(opened, "probe_at", "2026-11-21T06:00:00.000Z", "by", "ann", "reason", "why"), ":stats": counted("4", "1", 1)},
			Want: keys{
				":circuit:queue": fixture.But(set, "opened", "1"), ":stats": fixture.But(counted("4", "1", 1), "circuit_closed", "1"),
				":journal": told("circuit_closed", "4", "1"), ":outbox": told("circuit_closed", "4", "1"),
			},
		},
		{
			Name: "half of it does not, nor does nothing", Call: func(b *bench) any {
				first := measure(b)
				b.Step(10 * time.Minute)
				return []flow.CircuitChange{first, measure(b)}
			},
			Says: []flow.CircuitChange{flow.CircuitUnchanged, flow.CircuitUnchanged},
			Seed: keys{":circuit:queue": opened, ":stats": counted("3", "1", 1)},
			Want: keys{":circuit:queue": opened},
		},
		{
			Name: "what somebody has opened is not closed before it may be tried", Call: measured, Says: flow.CircuitUnchanged,
			Seed: keys{":circuit:queue": fixture.But(opened, "probe_at", "2026-11-21T06:00:00.001Z"), ":stats": counted("9", "0", 1)},
		},
		{
			Name: "one that is off stays as it is", Call: measured, Says: flow.CircuitUnchanged,
			Seed: keys{":circuit:queue": fixture.But(opened, "on", ""), ":stats": counted("9", "0", 1)},
		},
	})
}

// turn opens a circuit by hand, for a time, or closes it.
func turn(b *bench, to flow.CircuitChange, key string, probeAfter time.Duration) error {
	var err error
	if to == flow.CircuitOpened {
		_, err = flow.Of(b.Store).OpenCircuit(b.T.Context(), key, "ann", "a new proxy", b.Clock().Add(probeAfter), b.Clock())
	} else {
		_, err = flow.Of(b.Store).CloseCircuit(b.T.Context(), key, "ann", b.Clock())
	}
	return err
}

func newest(b *bench, stream string) map[string]any {
	b.T.Helper()
	entries, err := b.Redis.XRevRangeN(b.T.Context(), stream, "+", "-", 1).Result()
	stopIf(b.T, err != nil || len(entries) == 0, "want an entry in %s, got none (%v)", stream, err)
	return store.EntryFields(entries[0].Values)
}

func TestACircuitOfAQueueThatIsClosedByHandForgetsWhatOpenedIt(t *testing.T) {
	off := aQueueCircuit()
	off.On = false
	everywhere(t, func(t *testing.T, b *bench) {
		for name, closes := range map[string]func(b *bench) error{
			"closed": func(b *bench) error { return turn(b, flow.CircuitClosed, "queue", 0) },
			"switched off": func(b *bench) error {
				return errors.Join(flow.Of(b.Store).SetQueueCircuit(t.Context(), off, "ann"), flow.Of(b.Store).SetQueueCircuit(t.Context(), aQueueCircuit(), "ann"))
			},
		} {
			b := b.Fresh(t)
			must(t, flow.Of(b.Store).SetQueueCircuit(t.Context(), aQueueCircuit(), "ann"))
			end(b, false, "f1", "f2", "f3", "f4")
			expectEqual(t, name+": before", flow.CircuitOpened, measure(b))
			must(t, closes(b))
			expectEqual(t, name+": measured", flow.CircuitUnchanged, measure(b))
			expectEqual(t, name, flow.QueueCircuitStatus{QueueCircuit: aQueueCircuit(), Opened: 1}, queueCircuit(b))
			expectEqual(t, name+": told", map[string]any{"event": "circuit_closed", "key": "queue", "at": "2026-11-21T06:00:00.000Z", "by": "ann"}, newest(b, b.Keys.Outbox))
			stats, err := report.Of(b.Store).Stats(t.Context())
			failIf(t, err != nil || stats.Counters["failure"] != 4, "%s: want the counters for people kept, got %v, %v", name, stats.Counters, err)
		}
	})
}

func TestACircuitOfAQueueOutOfRangeIsRefusedAndOneThatCannotBeReadIsTheDefault(t *testing.T) {
	b := fixture.NewBench(t, testkit.Miniredis(t))
	bad := aQueueCircuit()
	bad.Share = 2
	err := flow.Of(b.Store).SetQueueCircuit(t.Context(), bad, "ann")
	failIf(t, !errors.As(err, new(*document.Error)), "want a refusal, got %v", err)
	b.Expect(keys{})
	b.Seed(keys{":circuit:queue": hash{"on": "1", "opened_at": "x", "share": "half", "window_ms": "300000", "min": "20"}})
	want := model.DefaultQueueCircuit()
	want.On, want.Open = true, true
	expectEqual(t, "circuit", want, queueCircuit(b).QueueCircuit)
}

func TestCountersOfAWindowThatWasChangedGrowOldLikeAllOthers(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.Seed(keys{":stats": merged(counted("4", "1", fixture.Minute), counted("4", "1", 6*fixture.Minute), counted("4", "1", 60*fixture.Minute))})
		circuit := aQueueCircuit()
		for _, test := range []struct {
			window time.Duration
			want   [2]int64
		}{{time.Hour, [2]int64{8, 2}}, {5 * time.Minute, [2]int64{4, 1}}} {
			circuit.Window = test.window
			must(t, flow.Of(b.Store).SetQueueCircuit(t.Context(), circuit, "ann"))
			expectEqual(t, "measured", flow.CircuitUnchanged, measure(b))
			expectEqual(t, test.window.String(), flow.QueueCircuitStatus{QueueCircuit: circuit, Successes: test.want[0], Failures: test.want[1]}, queueCircuit(b))
		}
		for _, windows := range [][2]time.Duration{{5 * time.Minute, time.Hour}, {time.Hour, 5 * time.Minute}} {
			b.Server.Flush(t)
			circuit.Window = windows[0]
			must(t, flow.Of(b.Store).SetQueueCircuit(t.Context(), circuit, "ann"))
			end(b, false, "f1", "f2")
			circuit.Window = windows[1]
			must(t, flow.Of(b.Store).SetQueueCircuit(t.Context(), circuit, "ann"))
			expectEqual(t, "measured", flow.CircuitUnchanged, measure(b))
			expectEqual(t, windows[0].String()+": status at once", flow.QueueCircuitStatus{QueueCircuit: circuit, Failures: 2}, queueCircuit(b))
			b.Step(windows[1])
			expectEqual(t, "measured", flow.CircuitUnchanged, measure(b))
			expectEqual(t, windows[0].String()+": status after the window", flow.QueueCircuitStatus{QueueCircuit: circuit}, queueCircuit(b))
		}
	})
}

func TestAnOpenCircuitOfAQueueThatIsOffIsClosedByHandOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		must(t, turn(b, flow.CircuitOpened, "queue", time.Minute))
		end(b, false, "f1")
		b.Step(time.Hour)
		end(b, true, "s1")
		expectEqual(t, "measured", flow.CircuitUnchanged, measure(b))
		held := b.One("f1")
		failIf(t, held.Disabled || !queueCircuit(b).Open, "want it open, and failures held back, got %+v and %+v", queueCircuit(b), held.State)
		must(t, turn(b, flow.CircuitClosed, "queue", 0))
		b.Step(time.Minute)
		end(b, false, "f2")
		final := b.One("f2")
		failIf(t, !final.Disabled || queueCircuit(b).Open, "want it closed, and a final failure, got %+v and %+v", queueCircuit(b), final.State)
	})
}

func TestAnyNumberOfExpiredCountersIsForgotten(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		stats := hash{"failure": "9"}
		for i := range 10_000 {
			stats[model.QueueCircuitFailed+strconv.Itoa(i)] = "1"
		}
		b.Seed(keys{":stats": stats})
		must(t, flow.Of(b.Store).SetQueueCircuit(t.Context(), aQueueCircuit(), "ann"))
		expectEqual(t, "measured", flow.CircuitUnchanged, measure(b))
		expectEqual(t, "counters", any(hash{"failure": "9"}), b.State()[":stats"])
	})
}

func TestACircuitThatIsTurnedByHandIsToldOnceWithWhoDidItAndWhy(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, key := range []string{"queue", "host=h"} {
			b.Server.Flush(t)
			told := func(want ...string) {
				t.Helper()
				for _, stream := range []string{b.Keys.Journal, b.Keys.Outbox} {
					var got []string
					for _, entry := range b.Redis.XRange(t.Context(), stream, "-", "+").Val() {
						got = append(got, fmt.Sprint(entry.Values["event"], " ", entry.Values["key"], " ", entry.Values["by"], " ", entry.Values["reason"], " ", entry.Values["at"]))
					}
					expectEqual(t, stream, want, got)
				}
			}
			opened, closed := "circuit_opened "+key+" ann a new proxy "+model.FormatTime(b.Clock()), "circuit_closed "+key+" ann <nil> "+model.FormatTime(b.Clock())
			must(t, turn(b, flow.CircuitClosed, key, 0))
			told()
			must(t, turn(b, flow.CircuitOpened, key, time.Minute))
			must(t, turn(b, flow.CircuitOpened, key, time.Hour))
			told(opened)
			expectEqual(t, "probe_at", model.FormatTime(b.Clock().Add(time.Hour)), b.Redis.HGet(t.Context(), b.Keys.Circuit(key), "probe_at").Val())
			expectEqual(t, "reason", "a new proxy", b.Redis.HGet(t.Context(), b.Keys.Circuit(key), "reason").Val())
			must(t, only(flow.Of(b.Store).OpenCircuit(t.Context(), key, "bob", "", b.Clock().Add(time.Hour), b.Clock())))
			if fields := b.Redis.HGetAll(t.Context(), b.Keys.Circuit(key)).Val(); fields["by"] != "bob" || fields["reason"] != "" {
				t.Errorf("want the reason to be that of the last, got %v", fields)
			}
			must(t, turn(b, flow.CircuitOpened, key, time.Hour))
			must(t, turn(b, flow.CircuitClosed, key, 0))
			must(t, turn(b, flow.CircuitClosed, key, 0))
			told(opened, closed)
			if fields := b.Redis.HGetAll(t.Context(), b.Keys.Circuit(key)).Val(); fields["by"] != "" || fields["reason"] != "" {
				t.Errorf("want neither name nor reason of a closed one, got %v", fields)
			}
			stats, err := report.Of(b.Store).Stats(t.Context())
			expectEqual(t, "counters", map[string]int64{"circuit_opened": 1, "circuit_closed": 1}, stats.Counters)
			ttl := b.Redis.TTL(t.Context(), b.Keys.Circuit(key)).Val()
			failIf(t, err != nil || (ttl < 0) != (key == "queue"), "%s: kept for %s, %v", key, ttl, err)
		}
	})
}
