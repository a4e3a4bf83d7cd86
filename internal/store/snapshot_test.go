package store

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func (b *bench) read(commands ...*model.Command) *Snapshot {
	b.t.Helper()
	var uids list
	for _, command := range commands {
		uids = append(uids, command.UID)
	}
	snapshot, err := b.Read(b.t.Context(), uids, commands)
	must(b.t, err)
	return snapshot
}

// execute decides a command and returns the transition that would carry it out; nil: nothing changes.
func (b *bench) execute(snapshot *Snapshot, command *model.Command) (*Transition, model.Outcome, error) {
	record := snapshot.Records[command.UID]
	decision, outcome, err := record.Execute(command, snapshot.Policies, record.Exists, b.now)
	if err != nil || outcome != model.Applied {
		return nil, outcome, err
	}
	return snapshot.Apply(command, decision, b.now), outcome, nil
}

func commandOf(t testing.TB, text string) *model.Command {
	t.Helper()
	command, err := model.DecodeCommand([]byte(text))
	must(t, err)
	return &command
}

func TestAPutMayUseAPolicyThatAnotherOfItsBatchBringsAlong(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		inline := commandOf(t, `{"type":"put","uid":"m1","policy":{"timeout":"7m"}}`)
		byName := commandOf(t, `{"type":"put","uid":"m2","policy":"`+inline.Definition.PolicyName+`"}`)
		for _, batch := range [][]*model.Command{{inline, byName}, {byName, inline}} {
			b.server.Flush(t)
			snapshot := b.read(batch...)
			for _, command := range batch {
				transition, outcome, err := b.execute(snapshot, command)
				if err != nil || outcome != model.Applied {
					t.Fatalf("%s: %q, %v", command.UID, outcome, err)
				}
				b.mustApply(transition)
			}
			if m2 := b.load("m2"); m2.Fault != "" || m2.Policy.Timeout.Minutes() != 7 {
				t.Errorf("want the policy of the other, got %q, %v", m2.Fault, m2.Policy.Timeout)
			}
		}
	})
}

func TestAPolicyThatIsNotStoredIsRefusedWithTheNamesOfThoseThatAre(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":policies": hash{"nightly": "{}"}})
		command := commandOf(t, `{"type":"put","uid":"m1","policy":"hourly"}`)
		transition, _, err := b.execute(b.read(command), command)
		const want = `policy: expected a policy, or the name of a stored one (default, nightly), found "hourly"`
		if transition != nil || err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestACommandThatChangesNothingMakesNoTransition(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", "{}"))
		for text, want := range map[string]model.Outcome{
			`{"type":"enable","uid":"m1"}`: model.Unchanged, `{"type":"run","uid":"nobody"}`: model.UnknownModel,
		} {
			command := commandOf(t, text)
			if transition, outcome, err := b.execute(b.read(command), command); transition != nil || outcome != want || err != nil {
				t.Errorf("%s: %q, %v, want %q", text, outcome, err, want)
			}
		}
	})
}

func TestACommandThatSupersedesTakesTheQueuedAttemptBackUnlessItIsTaken(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, taken := range []bool{true, false} {
			b.server.Flush(t)
			b.mustApply(b.put("m1", "{}"))
			b.mustApply(b.start("m1", "a1"))
			if taken {
				b.redis.LPop(t.Context(), b.Keys.Input)
			}
			command := commandOf(t, `{"type":"run","uid":"m1","force":true}`)
			transition, _, err := b.execute(b.read(command), command)
			must(t, err)
			b.mustApply(transition)
			if left := len(b.redis.LRange(t.Context(), b.Keys.Input, 0, -1).Val()); left != 0 {
				t.Errorf("%d entries are queued", left)
			}
		}
	})
}

// A message that changes nothing was decided on top of what the message before it would have made of the model.
func TestWhatWasSettledOnTopOfARefusedDecisionIsRefusedWithIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", `{"n":1}`))
		b.seed(keys{":claimed:control": list{"c1", "c2", "c3"}, ":holder": "p1"})
		stale := b.load("m1")
		b.mustApply(b.put("m1", `{"n":2}`))
		items := []Item{
			{Transition: b.save(stale, `{"n":3}`), Message: Claimed{"c1"}},
			{Message: Claimed{"c2"}, UID: "m1", Counter: "unchanged"},
			{Message: Claimed{"c3"}, UID: "m2", Counter: "unchanged"},
		}
		expectCodes(t, b.commit(items...), CodeConflict, CodeConflict, CodeApplied)
		expectEqual(t, "claimed", any(list{"c1", "c2"}), b.state()[":claimed:control"])
	})
}

// One write per shared key: of two transitions of one model in a batch the sets show the last.
func TestTheSetsShowTheLastTransitionOfABatch(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		record := b.load("m1")
		created := b.save(record, `{"n":1}`)
		started := record.Decide(record.Start(b.now, "a1"), b.now)
		b.mustApply(created, started, b.put("m2", "{}"))
		state := b.state()
		expectEqual(t, "due", any(scores{"m2": six}), state[":due"])
		expectEqual(t, "running", any(scores{"m1": tenPast}), state[":running"])
		record = b.load("m1")
		ended := record.Decide(record.Interrupt(b.now), b.now)
		b.mustApply(ended, record.Remove())
		state = b.state()
		expectEqual(t, "due", any(scores{"m2": six}), state[":due"])
		if state[":running"] != nil {
			t.Errorf("running: %v, want nothing", state[":running"])
		}
	})
}

// A batch of many models writes more members than one call of unpack can hold.
func TestABatchOfHundredsIsCommittedAsOne(t *testing.T) {
	models := long.Or(520, 2000) // two members of a set for each: more than one chunk
	everywhere(t, func(t *testing.T, b *bench) {
		var creates, starts []*Transition
		for i := range models {
			record := &Record{Model: model.Model{UID: fmt.Sprintf("m%04d", i), Policy: policy.Default()}}
			creates = append(creates, b.save(record, "{}"))
			starts = append(starts, record.Decide(record.Start(b.now, fmt.Sprint("a", i)), b.now))
		}
		b.mustApply(creates...)
		b.mustApply(starts...)
		b.expectCounts(map[string]int{"-input": models, ":running": models, ":journal": models})
		state, each := b.state(), strconv.Itoa(models)
		expectEqual(t, "stats", any(hash{"create": each, "start": each}), state[":stats"])
		if due := state[":due"]; due != nil {
			t.Errorf("due: %v, want nothing", due)
		}
	})
}

func TestAModelWhosePolicyAsksIsToldHowLongTheInputListIs(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{
			":model:m1": but(dueModel, "policy", "asking"), ":policies": hash{"asking": `{"retries":{"expr":"queue_depth"}}`}, "-input": list{"a", "b", "c"},
		})
		expectEqual(t, "depth", 3, b.load("m1").QueueDepth)
		b.redis.HSet(t.Context(), b.Keys.Policies, "asking", "{}")
		expectEqual(t, "depth nobody asks for", 0, b.load("m1").QueueDepth)
	})
}
