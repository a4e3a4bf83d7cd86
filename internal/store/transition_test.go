package store

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
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
		name: "conflict, for the revision has moved on", act: startOf, want: CodeConflict,
		seed: waitingKeys(), meanwhile: func(b *bench) { b.seed(keys{":model:m1": hash{"rev": "8"}}) },
	},
	{
		name: "conflict, for another attempt runs", act: expiryOf, want: CodeConflict,
		seed: runningKeys(), meanwhile: func(b *bench) { b.seed(keys{":model:m1": hash{"attempt_uid": "a2"}}) },
	},
	{
		name: "conflict, for its worker was heard since it was found silent", act: expiryOf, want: CodeConflict,
		seed: listenedKeys(), meanwhile: func(b *bench) { b.mustApply(signOf(b, b.load("m1"))) },
	},
	{
		name: "conflict, for the model was removed", act: expiryOf, want: CodeConflict,
		seed: runningKeys(), meanwhile: func(b *bench) { b.mustApply(b.load("m1").Remove()) },
	},
	{
		name: "conflict, for the model was removed and put again within the millisecond in which it was put", act: startOf, want: CodeConflict,
		seed: and(waitingKeys(), keys{":model:m1": but(dueModel, "rev", strconv.Itoa(six))}),
		meanwhile: func(b *bench) {
			r := b.load("m1")
			b.mustApply(r.Remove(), b.save(r, `{"input_url":"other"}`))
		},
	},
	{
		name: "conflict, for the model was stored by another", want: CodeConflict,
		meanwhile: func(b *bench) { b.seed(waitingKeys()) },
		act:       func(b *bench, r *Record) *Transition { return b.save(r, `{"input_url":"other"}`) },
	},
	{
		name: "conflict, for an orphan became a model", want: CodeConflict,
		seed: keys{":due": scores{"m1": six}}, meanwhile: func(b *bench) { b.seed(waitingKeys()) },
		act: func(_ *bench, r *Record) *Transition { return r.Remove() },
	},
	{
		name: "conflict, for what was to be mended has moved on", want: CodeConflict,
		seed: waitingKeys(), meanwhile: func(b *bench) { b.mustApply(b.start("m1", "a1")) },
		act: func(_ *bench, r *Record) *Transition { return r.Mend() },
	},
	{
		name: "gone, for another poller handled the message", act: successOf, answers: "oanswer", want: CodeGone,
		seed: and(runningKeys(), keys{":claimed:p1": list{"oother"}, ":claimed:p2": list{"oanswer"}}),
	},
	{
		name: "gone comes before conflict", act: successOf, answers: "oanswer", want: CodeGone,
		seed: runningKeys(), meanwhile: func(b *bench) { b.seed(keys{":model:m1": hash{"rev": "99"}}) },
	},
	{
		name: "taken, for a worker has the attempt", act: withdrawalOf, want: CodeTaken,
		seed: and(runningKeys(), keys{"-input": list{"x"}}),
	},
	{
		name: "conflict comes before taken", act: withdrawalOf, want: CodeConflict,
		seed: runningKeys(), meanwhile: func(b *bench) { b.seed(keys{":model:m1": hash{"rev": "99"}}) },
	},
	{
		name: "full, for as many attempts wait as may", act: startOf, maxQueued: 3, want: CodeFull,
		seed: and(waitingKeys(), keys{"-input": list{"x", "y", "z"}}),
	},
	{
		name: "conflict comes before full", act: startOf, maxQueued: 3, want: CodeConflict,
		seed: and(waitingKeys(), keys{"-input": list{"x", "y", "z"}}), meanwhile: func(b *bench) { b.seed(keys{":model:m1": hash{"rev": "8"}}) },
	},
	{
		name: "broken, for the key of the model holds a list", act: startOf, want: CodeBroken,
		seed: keys{":model:m1": list{"x"}, ":due": scores{"m1": six}, ":payload:m1": "{}"},
	},
	{
		name: "broken comes before gone", act: successOf, answers: "oanswer", want: CodeBroken,
		seed: keys{":model:m1": list{"x"}},
	},
}

func startOf(b *bench, r *Record) *Transition { return r.Decide(r.Start(b.now, "a9"), b.now) }

func firstStartOf(b *bench, r *Record) *Transition { return r.Decide(r.Start(b.now, "a1"), b.now) }

func expiryOf(b *bench, r *Record) *Transition { return r.Decide(r.Expire(b.now), b.now) }

// listenedKeys holds a model whose worker has announced signs of life, and gave the last one half a minute ago.
func listenedKeys() keys {
	return and(runningKeys(), keys{":running": scores{"m1": six + minute/2, "m2": six}, ":model:m1": but(running,
		"processing_at", "2026-11-21T05:59:00.000Z", "silent_after", "1m", "heard_at", "2026-11-21T05:59:30.000Z")})
}

func signOf(b *bench, r *Record) *Transition {
	decision, _ := r.Handle(model.Message{Type: model.MessageStatus, AttemptUID: "a1"}, b.now)
	return r.Decide(decision, b.now)
}

func TestASignOfLifeMovesTheScoreInRunningAndNeitherTheDeadlineNorThatOfALimit(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		const text = `{"timeout":"10m","silent_after":"1m"}`
		b.seed(and(runningKeys(), keys{":policies": hash{"default": text}, ":limit:k": scores{"m1": six}, ":model:m1": but(running, "counted_by", "limit:k")}))
		started := func() model.Message {
			return model.Message{Type: model.MessageStarted, AttemptUID: "a1", SignsEvery: 10 * time.Second}
		}
		expect := func(rev string, expires int, heard string) {
			t.Helper()
			all := b.state()
			m := all[":model:m1"].(hash)
			expectEqual(t, "scores", any(scores{"m1": float64(expires), "m2": six}), all[":running"])
			expectEqual(t, "limit", any(scores{"m1": six + 10*minute}), all[":limit:k"])
			expectEqual(t, "hash", []string{rev, "2026-11-21T06:10:00.000Z", heard}, []string{m["rev"], m["deadline_at"], m["heard_at"]})
		}
		record := b.load("m1")
		decision, _ := record.Handle(started(), b.now)
		b.mustApply(record.Decide(decision, b.now))
		expect("9", six+minute, "2026-11-21T06:00:00.000Z")
		b.now = b.now.Add(40 * time.Second)
		record = b.load("m1")
		b.mustApply(signOf(b, record), signOf(b, record)) // of one batch, the second changes nothing
		expect("10", six+40_000+minute, "2026-11-21T06:00:40.000Z")
		before := len(b.state()[":journal"].(events))
		record = b.load("m1")
		b.mustApply(record.Decide(record.Fail(policy.Failure{}, b.now), b.now))
		all := b.state()
		m := all[":model:m1"].(hash)
		failIf(t, m["heard_at"]+m["silent_after"] != "", "left behind: %v", m)
		entries := all[":journal"].(events)
		failIf(t, before != 1 || entries[1]["rev"] != "11", "want one entry before, and then the revision 11, as a sign has counted: %v", entries)
	})
}

func successOf(b *bench, r *Record) *Transition { return r.Decide(r.Succeed(b.now, nil), b.now) }

func withdrawalOf(b *bench, r *Record) *Transition { return r.Decide(r.Withdraw(b.now), b.now) }

func TestARefusedTransitionChangesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		for _, test := range refusals {
			t.Run(test.name, func(t *testing.T) {
				b := b.fresh(t)
				b.seed(test.seed)
				transition := test.act(b, b.load("m1"))
				if test.meanwhile != nil {
					test.meanwhile(b)
				}
				room := max(test.maxQueued, 1)
				b.unchanged(func() { expectCodes(t, b.commitUpTo(room, answering(test.answers, transition)), test.want) })
			})
		}
	})
}

func TestCodesHaveNames(t *testing.T) {
	for code, want := range map[Code]string{CodeApplied: "applied", CodeBroken: "broken", 77: "code 77"} {
		got := code.String()
		failIf(t, got != want, "code %d = %q, want %q", int(code), got, want)
	}
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

func TestItemsOfOneModelAreAppliedOneAfterTheOther(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", `{"n":1}`))
		disableAndEnable := func() []*Transition {
			record := b.load("m1")
			off, _ := record.Disable("", "", b.now)
			first := record.Decide(off, b.now)
			on, _ := record.Enable(b.now)
			return []*Transition{first, record.Decide(on, b.now)}
		}
		stale := disableAndEnable()
		b.mustApply(disableAndEnable()[:1]...)
		b.unchanged(func() { expectCodes(t, b.apply(stale...), CodeConflict, CodeConflict) })
		on, _ := b.load("m1").Enable(b.now)
		b.mustApply(b.load("m1").Decide(on, b.now))
		b.mustApply(disableAndEnable()...)
		_, waits := b.state()[":due"]
		failIf(t, !waits, "the model was disabled and enabled, and does not wait: %v", b.state())
	})
}

// Somebody has ended attempts with redis-cli. What he has left is started and mended, and stops no batch.
func TestAModelWhoseFieldsWereTakenAwayByHandIsDecidedLikeAnyOther(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":model:m1": but(dueModel, "rev", "7"), ":due": scores{"m1": six}})
		must(t, b.redis.HSet(t.Context(), b.Keys.Model("m1"), fieldAttemptUID, "").Err())
		b.mustApply(b.start("m1", "a1"))
		must(t, b.redis.HSet(t.Context(), b.Keys.Model("m1"), "counted_by", "limit:host=h1").Err())
		must(t, b.redis.HDel(t.Context(), b.Keys.Model("m1"), fieldDeadlineAt).Err())
		b.mustApply(b.load("m1").Mend())
		_, runs := b.state()[":running"]
		failIf(t, runs, "a model without a deadline stands among the running ones: %v", b.state())
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
		_, waits := b.state()[":due"]
		failIf(t, waits, "the broken model stands in due after it was forgotten")
	})
}

func TestTheHighWaterMarkIsReachedExactly(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", "{}"), b.put("m2", "{}"), b.put("m3", "{}"))
		items := []Item{{Transition: b.start("m1", "a1")}, {Transition: b.start("m2", "a2")}, {Transition: b.start("m3", "a3")}}
		expectCodes(t, b.commitUpTo(2, items...), CodeApplied, CodeApplied, CodeFull)
		expectEqual(t, "queued", int64(2), b.redis.LLen(t.Context(), b.Keys.Input).Val())
	})
}

func TestAnEndedOrphanLeavesBothSets(t *testing.T) {
	eachCall(t, []callCase{{
		name: "orphan", says: []Code{CodeApplied},
		seed: keys{":due": scores{"ghost": six, "m2": six}, ":running": scores{"ghost": six}},
		call: func(b *bench) any { return b.apply(b.load("ghost").Remove()) },
		want: keys{":due": scores{"m2": six}, ":journal": events{{"uid": "ghost", "event": "orphan", "at": "2026-11-21T06:00:00.000Z"}}, ":stats": hash{"orphan": "1"}},
	}})
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
			_, called := b.state()[":wake"]
			failIf(t, called != test.calls, "due in %v: called %v, want %v", test.delay, called, test.calls)
		}
	})
}

func TestADeadlineWithinASecondCallsTheDispatcherButAStartDoesNotAndManyCallsLeaveOneToken(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(waitingKeys(), keys{":policies": hash{"default": `{"timeout":"500ms"}`}}))
		b.mustApply(b.start("m1", "a1"))
		_, called := b.state()[":wake"]
		failIf(t, called, "a start called the dispatcher that made it")
		record := b.load("m1")
		decision, _ := record.Begin(b.now, "w")
		b.mustApply(record.Decide(decision, b.now))
		expectEqual(t, "wake for a deadline in half a second", any(list{"1"}), b.state()[":wake"])
		b.mustApply(b.put("m3", "{}"), b.put("m4", "{}"))
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

func TestALargePayloadAndABinaryMessagePassUnchanged(t *testing.T) {
	large := `{"text":"` + strings.Repeat("ä\u0000\\\"%", 10_000) + `"}`
	binary := "o\x00\xff\xfe%d\r\n" + strings.Repeat("\x80", 60_000)
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:p1": list{binary, binary}})
		expectCodes(t, b.commit(Item{Transition: b.put("m1", large), Message: Claimed{binary}}), CodeApplied)
		state := b.state()
		failIf(t, state[":payload:m1"] != large, "the payload is not what was stored")
		left := state[":claimed:p1"].(list)
		failIf(t, len(left) != 1, "want one of two equal messages, %d stand there", len(left))
	})
}

func TestACallAboutNothingAsksNobody(t *testing.T) {
	none := &Store{}
	codes, errCommit := none.Commit(t.Context(), Batch{Owner: "p1", MaxQueued: roomy})
	answered, errAnswer := none.Pool().Answer(t.Context(), "w1", nil)
	records, errLoad := none.Load(t.Context(), nil)
	err := errors.Join(errCommit, errAnswer, errLoad)
	failIf(t, codes != nil || answered != nil || len(records) > 0 || err != nil, "found %v, %v, %v, %v; want nothing", codes, answered, records, err)
}

func TestAKeyOfAnotherTypeOrACounterThatIsNoNumberStopsNobody(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(runningKeys(), keys{":history:m1": "a text", ":stats": hash{"create": "many"}}))
		b.mustApply(expiryOf(b, b.load("m1")), b.put("m3", "{}"))
		state := b.state()
		expectEqual(t, "history", any("a text"), state[":history:m1"])
		expectEqual(t, "stats", any(hash{"create": "many", "timeout": "1"}), state[":stats"])
	})
}

func TestWhatFailsFromAFailureOnStandsInTheOutboxWithItsReason(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(runningKeys())
		record := b.load("m1")
		record.Policy.FailingFrom = record.AttemptNo
		b.mustApply(record.Decide(record.Fail(policy.Failure{Reason: "HTTP 503", ErrorType: "http_503"}, b.now), b.now))
		entries := b.redis.XRange(t.Context(), b.Keys.Outbox, "-", "+").Val()
		if len(entries) != 1 || entries[0].Values["event"] != "failing" || entries[0].Values["reason"] != "HTTP 503" || entries[0].Values["error_type"] != "http_503" || entries[0].Values["refresh_why"] == "" {
			t.Errorf("got %v", entries)
		}
	})
}

// A key of a limit is asked for its type whether the limit has a maximum, a rate, or both.
func TestAStartWhoseLimitIsOfAnotherTypeIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		for _, limit := range []int{0, 3} {
			for _, slots := range []string{"", "1763704800000000"} {
				for _, key := range []string{":limit:host=h", ":rate:host=h"} {
					if key == ":rate:host=h" && slots == "" {
						continue // it is not touched
					}
					b.server.Flush(t)
					b.seed(and(waitingKeys(), keys{key: list{"x"}}))
					decision := b.load("m1").Start(b.now, "a9")
					decision.Acquires = []model.Acquire{{Name: "host=h", Limit: limit, After: model.ParseSlots(slots)}}
					start := Item{Transition: b.load("m1").Decide(decision, b.now)}
					b.unchanged(func() { expectCodes(t, b.commit(start), CodeBlocked) })
				}
			}
		}
	})
}
