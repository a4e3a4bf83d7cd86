package scripts

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

func aBrake() model.Brake {
	return model.Brake{On: true, Share: 0.5, Window: 5 * time.Minute, Min: 4}
}

func (b *bench) setBrake(brake model.Brake) {
	b.t.Helper()
	if err := b.SetBrake(b.t.Context(), brake); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) brake() BrakeStatus {
	b.t.Helper()
	status, err := b.Brake(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return status
}

func (b *bench) measure() BrakeChange {
	b.t.Helper()
	change, err := b.MeasureBrake(b.t.Context(), b.now)
	if err != nil {
		b.t.Fatal(err)
	}
	return change
}

// end starts a one-shot of its own and ends it.
func (b *bench) end(uid string, success bool) {
	b.t.Helper()
	b.mustApply(b.put(uid, "{}"))
	b.mustApply(b.start(uid, "attempt-"+uid))
	record := b.load(uid)
	decision := record.Fail(policy.Failure{Reason: "HTTP 500", ErrorType: "Gone", Retryable: new(bool)}, b.now)
	if success {
		decision = record.Succeed(b.now, nil)
	}
	b.mustApply(record.Decide(decision, b.now))
}

func TestTheBrakeIsEngagedByAShareOfFailuresAndReleasedByHalfOfIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.setBrake(aBrake())
		b.end("s1", true)
		b.end("f1", false)
		b.end("f2", false)
		expectEqual(t, "of three", BrakeUnchanged, b.measure())
		b.end("s2", true)
		expectEqual(t, "half of four", BrakeEngaged, b.measure())
		expectEqual(t, "again", BrakeUnchanged, b.measure())
		engaged := aBrake()
		engaged.Engaged = true
		expectEqual(t, "status", BrakeStatus{engaged, "2026-11-21T06:00:00.000Z", 2, 2, 1}, b.brake())
		expectEqual(t, "journal", map[string]any{"event": "brake_engaged", "at": "2026-11-21T06:00:00.000Z", "successes": "2", "failures": "2"}, b.newest(b.Keys.Journal()))

		b.end("f3", false) // held back
		expectEqual(t, "journal", any("1"), b.newest(b.Keys.Journal())["held"])
		if held := b.load("f3"); held.Disabled || held.RefreshAt.IsZero() {
			t.Errorf("want a failure held back, got %+v", held.State)
		}

		b.now = b.now.Add(6 * time.Minute) // all that was counted is too old
		expectEqual(t, "of none", BrakeUnchanged, b.measure())
		b.end("s3", true)
		expectEqual(t, "of one success", BrakeReleased, b.measure())
		expectEqual(t, "status", BrakeStatus{aBrake(), "", 1, 0, 1}, b.brake())
	})
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
func TestWhatIsCountedWhileTheBrakeIsMeasuredCounts(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.setBrake(aBrake())
		for _, uid := range []string{"f1", "f2", "f3", "f4"} {
			b.end(uid, false)
		}
		b.now = b.now.Add(-aBrake().Window / 2)
		expectEqual(t, "four failures", BrakeEngaged, b.measure())
		b.now = b.now.Add(aBrake().Window / 2)
		expectEqual(t, "failures", int64(4), b.brake().Failures)
	})
}

func TestACounterOfTheBrakeThatIsNoNumberCountsForNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		at := strconv.FormatInt(b.now.UnixMilli()-1, 10)
		b.seed(keys{":stats": hash{model.BrakeFailed + at: "many"}})
		b.setBrake(aBrake())
		for _, uid := range []string{"f1", "f2", "f3"} {
			b.end(uid, false)
		}
		expectEqual(t, "three failures", BrakeUnchanged, b.measure())
		b.end("f4", false)
		expectEqual(t, "four failures", BrakeEngaged, b.measure())
	})
}

func TestABrakeThatIsOffCountsNothingAndIsNeverEngaged(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		expectEqual(t, "of an empty queue", BrakeStatus{Brake: model.DefaultBrake()}, b.brake())
		off := aBrake()
		off.On = false
		b.setBrake(off)
		for _, uid := range []string{"f1", "f2", "f3", "f4"} {
			b.end(uid, false)
		}
		expectEqual(t, "measured", BrakeUnchanged, b.measure())
		expectEqual(t, "status", BrakeStatus{Brake: off}, b.brake())
	})
}

func TestABrakeThatIsReleasedByHandForgetsWhatEngagedIt(t *testing.T) {
	off := aBrake()
	off.On = false
	everywhere(t, func(t *testing.T, b *bench) {
		for name, release := range map[string]func() error{
			"released":     func() error { return b.ReleaseBrake(t.Context()) },
			"switched off": func() error { return errors.Join(b.SetBrake(t.Context(), off), b.SetBrake(t.Context(), aBrake())) },
		} {
			b.server.Flush(t)
			b.setBrake(aBrake())
			for _, uid := range []string{"f1", "f2", "f3", "f4"} {
				b.end(uid, false)
			}
			expectEqual(t, name+": before", BrakeEngaged, b.measure())
			if err := release(); err != nil {
				t.Fatal(err)
			}
			expectEqual(t, name+": measured", BrakeUnchanged, b.measure())
			expectEqual(t, name, BrakeStatus{Brake: aBrake(), Incidents: 1}, b.brake())
			if stats, err := b.Stats(t.Context()); err != nil || stats.Counters["failure"] != 4 {
				t.Errorf("%s: want the counters for people kept, got %v, %v", name, stats.Counters, err)
			}
		}
	})
}

func TestABrakeOutOfRangeIsRefusedAndOneThatCannotBeReadIsTheDefault(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	bad := aBrake()
	bad.Share = 2
	if err := b.SetBrake(t.Context(), bad); !errors.As(err, new(*document.Error)) {
		t.Errorf("want a refusal, got %v", err)
	}
	b.expect(keys{})
	b.seed(keys{":brake": hash{"on": "1", "engaged_at": "x", "share": "half", "window_ms": "300000", "min": "20"}})
	want := model.DefaultBrake()
	want.On, want.Engaged = true, true
	expectEqual(t, "brake", want, b.brake().Brake)
}

func TestCountersOfAWindowThatWasChangedGrowOldLikeAllOthers(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, windows := range [][2]time.Duration{{5 * time.Minute, time.Hour}, {time.Hour, 5 * time.Minute}} {
			b.server.Flush(t)
			brake := aBrake()
			brake.Window = windows[0]
			b.setBrake(brake)
			b.end("f1", false)
			b.end("f2", false)
			brake.Window = windows[1]
			b.setBrake(brake)
			expectEqual(t, "measured", BrakeUnchanged, b.measure())
			expectEqual(t, windows[0].String()+": status at once", BrakeStatus{brake, "", 0, 2, 0}, b.brake())
			b.now = b.now.Add(windows[1])
			expectEqual(t, "measured", BrakeUnchanged, b.measure())
			expectEqual(t, windows[0].String()+": status after the window", BrakeStatus{brake, "", 0, 0, 0}, b.brake())
		}
	})
}

func TestAnyNumberOfExpiredCountersIsForgotten(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		stats := hash{"failure": "9"}
		for i := range 10_000 {
			stats[model.BrakeFailed+strconv.Itoa(i)] = "1"
		}
		b.seed(keys{":stats": stats})
		b.setBrake(aBrake())
		expectEqual(t, "measured", BrakeUnchanged, b.measure())
		expectEqual(t, "counters", any(hash{"failure": "9"}), b.state()[":stats"])
	})
}

func TestTheBrakeIsMeasuredWithoutAJournalToo(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.setBrake(aBrake())
		for _, uid := range []string{"f1", "f2", "f3", "f4"} {
			b.end(uid, false)
		}
		expectEqual(t, "of four", BrakeEngaged, b.measure())
		if journal := b.state()[":journal"]; journal != nil {
			t.Errorf("want no journal, got %v", journal)
		}
		expectEqual(t, "outbox", any("brake_engaged"), b.newest(b.Keys.Outbox())["event"])
	}, func(c *Config) { c.JournalCap = None })
}
