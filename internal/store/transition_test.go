package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
)

// refusals are transitions that were decided on something that is no longer so when they are applied.
var refusals = []struct {
	name      string
	seed      keys
	meanwhile func(b *bench)
	act       func(b *bench, r *Record) *Transition
	maxQueued int
	answers   string // a claimed message
	want      Code
}{
	{
		name:      "conflict, for the revision has moved on",
		seed:      waitingKeys(),
		meanwhile: func(b *bench) { b.seed(keys{":model:m1": hash{"rev": "8"}}) },
		act:       startOf,
		want:      CodeConflict,
	},
	{
		name:      "conflict, for another attempt runs",
		seed:      runningKeys(),
		meanwhile: func(b *bench) { b.seed(keys{":model:m1": hash{"attempt_uid": "a2"}}) },
		act:       expiryOf,
		want:      CodeConflict,
	},
	{
		name:      "conflict, for the model was removed",
		seed:      runningKeys(),
		meanwhile: func(b *bench) { b.mustApply(b.load("m1").Remove()) },
		act:       expiryOf,
		want:      CodeConflict,
	},
	{
		name: "conflict, for the model was removed and put again within the millisecond in which it was put",
		seed: and(waitingKeys(), keys{":model:m1": but(dueModel, "rev", strconv.Itoa(six))}),
		meanwhile: func(b *bench) {
			r := b.load("m1")
			b.mustApply(r.Remove(), b.save(r, `{"input_url":"other"}`))
		},
		act:  startOf,
		want: CodeConflict,
	},
	{
		name:      "conflict, for the model was stored by another",
		meanwhile: func(b *bench) { b.seed(waitingKeys()) },
		act:       func(b *bench, r *Record) *Transition { return b.save(r, `{"input_url":"other"}`) },
		want:      CodeConflict,
	},
	{
		name:      "conflict, for an orphan became a model",
		seed:      keys{":due": scores{"m1": six}},
		meanwhile: func(b *bench) { b.seed(waitingKeys()) },
		act:       func(_ *bench, r *Record) *Transition { return r.Remove() },
		want:      CodeConflict,
	},
	{
		name:      "conflict, for what was to be mended has moved on",
		seed:      waitingKeys(),
		meanwhile: func(b *bench) { b.mustApply(b.start("m1", "a1")) },
		act:       func(_ *bench, r *Record) *Transition { return r.Mend() },
		want:      CodeConflict,
	},
	{
		name:    "gone, for another poller handled the message",
		seed:    and(runningKeys(), keys{":claimed:p1": list{"oother"}, ":claimed:p2": list{"oanswer"}}),
		act:     successOf,
		answers: "oanswer",
		want:    CodeGone,
	},
	{
		name:      "gone comes before conflict",
		seed:      runningKeys(),
		meanwhile: func(b *bench) { b.seed(keys{":model:m1": hash{"rev": "99"}}) },
		act:       successOf,
		answers:   "oanswer",
		want:      CodeGone,
	},
	{
		name: "taken, for a worker has the attempt",
		seed: and(runningKeys(), keys{"-input": list{"x"}}),
		act:  withdrawalOf,
		want: CodeTaken,
	},
	{
		name:      "conflict comes before taken",
		seed:      runningKeys(),
		meanwhile: func(b *bench) { b.seed(keys{":model:m1": hash{"rev": "99"}}) },
		act:       withdrawalOf,
		want:      CodeConflict,
	},
	{
		name:      "full, for as many attempts wait as may",
		seed:      and(waitingKeys(), keys{"-input": list{"x", "y", "z"}}),
		act:       startOf,
		maxQueued: 3,
		want:      CodeFull,
	},
	{
		name:      "conflict comes before full",
		seed:      and(waitingKeys(), keys{"-input": list{"x", "y", "z"}}),
		meanwhile: func(b *bench) { b.seed(keys{":model:m1": hash{"rev": "8"}}) },
		act:       startOf,
		maxQueued: 3,
		want:      CodeConflict,
	},
	{
		name: "broken, for the key of the model holds a list",
		seed: keys{":model:m1": list{"x"}, ":due": scores{"m1": six}, ":payload:m1": "{}"},
		act:  startOf,
		want: CodeBroken,
	},
	{
		name:    "broken comes before gone",
		seed:    keys{":model:m1": list{"x"}},
		act:     successOf,
		answers: "oanswer",
		want:    CodeBroken,
	},
}

func startOf(b *bench, r *Record) *Transition  { return r.Decide(r.Start(b.now, "a9"), b.now) }
func expiryOf(b *bench, r *Record) *Transition { return r.Decide(r.Expire(b.now), b.now) }

func successOf(b *bench, r *Record) *Transition { return r.Decide(r.Succeed(b.now, nil), b.now) }

func withdrawalOf(b *bench, r *Record) *Transition {
	return r.Decide(r.Withdraw(b.now), b.now)
}

func TestARefusedTransitionChangesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, test := range refusals {
			t.Run(test.name, func(t *testing.T) {
				b.server.Flush(t)
				b := *b
				b.t = t
				b.seed(test.seed)
				transition := test.act(&b, b.load("m1"))
				if test.meanwhile != nil {
					test.meanwhile(&b)
				}
				room := max(test.maxQueued, 1)
				b.unchanged(func() { expectCodes(t, b.commitUpTo(room, answering(test.answers, transition)), test.want) })
			})
		}
	})
}

func TestARefusalAlsoRefusesWhatWasDecidedOnTopOfItAndNothingElse(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", `{"n":1}`), b.put("m2", `{"n":1}`))
		stale, other := b.load("m1"), b.load("m2")
		b.mustApply(b.put("m1", `{"n":2}`))
		codes := b.apply(
			b.save(stale, `{"n":3}`), b.save(other, `{"n":3}`),
			b.save(stale, `{"n":4}`), b.save(other, `{"n":4}`),
		)
		expectCodes(t, codes, CodeConflict, CodeApplied, CodeConflict, CodeApplied)
		state := b.state()
		expectEqual(t, "payload of the refused", `{"n":2}`, state[":payload:m1"])
		expectEqual(t, "payload of the other", `{"n":4}`, state[":payload:m2"])
	})
}

// A later item can look right by itself, for what it was decided on was what another process wrote as well.
func TestWhatFollowsARefusalIsRefusedEvenWhenItsRevisionFits(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", `{"n":1}`))
		stale := b.load("m1")
		first, second := b.save(stale, `{"n":2}`), b.save(stale, `{"n":3}`)
		b.mustApply(b.put("m1", `{"n":9}`))
		b.unchanged(func() { expectCodes(t, b.apply(first, second), CodeConflict, CodeConflict) })
	})
}

func TestAGoneMessageRefusesTheLaterOnesOfItsModel(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(runningKeys(), keys{":claimed:p1": list{"o2"}}))
		record := b.load("m1")
		first := record.Decide(record.Succeed(b.now, nil), b.now)
		decision, _ := record.Run(false, b.now)
		second := record.Decide(decision, b.now)
		items := []Item{{Transition: first, Message: Claimed{"o1"}}, {Transition: second, Message: Claimed{"o2"}}}
		b.unchanged(func() { expectCodes(t, b.commit(items...), CodeGone, CodeConflict) })
	})
}

func TestABrokenModelHarmsOnlyItself(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":model:bad": "a text", ":due": scores{"bad": six}})
		b.mustApply(b.put("m1", "{}"))
		bad := b.load("bad")
		codes := b.apply(bad.Decide(bad.Start(b.now, "a1"), b.now), b.start("m1", "a2"))
		expectCodes(t, codes, CodeBroken, CodeApplied)
		must(t, b.Forget(context.Background(), "bad", ""))
		if _, waits := b.state()[":due"]; waits {
			t.Error("the broken model stands in due after it was forgotten")
		}
	})
}

func TestTheHighWaterMarkIsReachedExactly(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", "{}"), b.put("m2", "{}"), b.put("m3", "{}"))
		codes := b.applyUpTo(2, b.start("m1", "a1"), b.start("m2", "a2"), b.start("m3", "a3"))
		expectCodes(t, codes, CodeApplied, CodeApplied, CodeFull)
		if queued := b.state()["-input"].(list); len(queued) != 2 {
			t.Errorf("%d attempts queued, want 2", len(queued))
		}
	})
}

func TestAnEndedOrphanLeavesBothSets(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":due": scores{"ghost": six, "m2": six}, ":running": scores{"ghost": six}})
		b.mustApply(b.load("ghost").Remove())
		b.expect(keys{
			":due":     scores{"m2": six},
			":journal": events{{"uid": "ghost", "event": "orphan", "at": "2026-11-21T06:00:00.000Z"}},
			":stats":   hash{"orphan": "1"},
		})
	})
}

func TestOnlyWhatHappensWithinASecondCallsTheDispatcher(t *testing.T) {
	tests := []struct {
		delay time.Duration
		calls bool
	}{{0, true}, {999 * time.Millisecond, true}, {time.Second, false}, {time.Hour, false}}
	everywhere(t, func(t *testing.T, b *bench) {
		for _, test := range tests {
			b.server.Flush(t)
			b.seed(runningKeys())
			record := b.load("m1")
			b.mustApply(record.Decide(record.Postpone(test.delay, b.now), b.now))
			if _, called := b.state()[":wake"]; called != test.calls {
				t.Errorf("due in %v: called %v, want %v", test.delay, called, test.calls)
			}
		}
	})
}

func TestADeadlineWithinASecondCallsTheDispatcherButAStartDoesNot(t *testing.T) {
	short := keys{":policies": hash{"default": `{"timeout":"500ms"}`}}
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(waitingKeys(), short))
		b.mustApply(b.start("m1", "a1"))
		if _, called := b.state()[":wake"]; called {
			t.Error("a start called the dispatcher that made it")
		}
		record := b.load("m1")
		decision, _ := record.Begin(b.now, "w")
		b.mustApply(record.Decide(decision, b.now))
		if _, called := b.state()[":wake"]; !called {
			t.Error("a deadline in half a second called nobody")
		}
	})
}

func TestManyCallsLeaveOneToken(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", "{}"), b.put("m2", "{}"))
		b.mustApply(b.put("m3", "{}"))
		expectEqual(t, "wake", any(list{"1"}), b.state()[":wake"])
	})
}

func TestThePayloadIsWrittenOnlyWhenItChanged(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", `{"n":1}`))
		record := b.load("m1")
		definition := model.Definition{UID: "m1", Payload: `{"n":1}`, PolicyName: "other"}
		decision, _, err := record.Put(definition, policy.Default(), true, b.now)
		must(t, err)
		b.seed(keys{":payload:m1": "a witness that is overwritten by any write"})
		b.mustApply(record.Decide(decision, b.now))
		expectEqual(t, "payload", any("a witness that is overwritten by any write"), b.state()[":payload:m1"])
	})
}

// expectCounts compares the number of entries of some keys.
func (b *bench) expectCounts(want map[string]int) {
	b.t.Helper()
	got, state := map[string]int{}, b.state()
	for name := range want {
		got[name] = reflect.ValueOf(state[name]).Len()
	}
	expectEqual(b.t, "number of entries", want, got)
}

func TestALargePayloadAndABinaryMessagePassUnchanged(t *testing.T) {
	large := `{"text":"` + strings.Repeat("ä\u0000\\\"%", 10_000) + `"}`
	binary := "o\x00\xff\xfe%d\r\n" + strings.Repeat("\x80", 60_000)
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:p1": list{binary}})
		expectCodes(t, b.commit(Item{Transition: b.put("m1", large), Message: Claimed{binary}}), CodeApplied)
		state := b.state()
		if state[":payload:m1"] != large {
			t.Error("the payload is not what was stored")
		}
		if left, stays := state[":claimed:p1"]; stays {
			t.Errorf("the message still stands there: %.20q", left)
		}
	})
}

func TestOneOfTwoEqualMessagesIsRemovedByEachTransition(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(runningKeys(), keys{":claimed:p1": list{"oanswer", "oanswer"}}))
		expectCodes(t, b.commit(answering("oanswer", successOf(b, b.load("m1")))), CodeApplied)
		expectEqual(t, "claimed", any(list{"oanswer"}), b.state()[":claimed:p1"])
	})
}

func TestACallAboutNothingAsksNobody(t *testing.T) {
	none := &Store{}
	codes, errCommit := none.Commit(t.Context(), Batch{Owner: "p1", MaxQueued: roomy})
	answered, errAnswer := none.Pool().Answer(t.Context(), "w1", nil)
	records, errLoad := none.Load(t.Context(), nil)
	if err := errors.Join(errCommit, errAnswer, errLoad); codes != nil || answered != nil || len(records) > 0 || err != nil {
		t.Errorf("found %v, %v, %v, %v; want nothing", codes, answered, records, err)
	}
}

func TestCodesHaveNames(t *testing.T) {
	for code, want := range map[Code]string{CodeApplied: "applied", CodeBroken: "broken", 77: "code 77"} {
		if got := code.String(); got != want {
			t.Errorf("code %d = %q, want %q", int(code), got, want)
		}
	}
}

func TestTheWorkOfAllScriptsSurvivesAScriptFlush(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		flush := func() {
			must(t, b.redis.ScriptFlush(t.Context()).Err())
		}
		for range 2 {
			flush()
			b.mustApply(b.put("m1", fmt.Sprintf(`{"n":%d}`, b.now.UnixMilli())))
			flush()
			b.readDue(10)
			flush()
			b.claim("p1", 10)
			flush()
			b.settle("p1", Item{Message: Claimed{"onone"}, Counter: "stale"})
			flush()
			b.adopt("p2", "p1", time.Second, 10)
			b.now = b.now.Add(time.Second)
		}
	})
}
