package scripts

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model"
)

func (b *bench) open(commands ...*model.Command) *Desk {
	b.t.Helper()
	var uids list
	for _, command := range commands {
		uids = append(uids, command.UID)
	}
	desk, err := b.OpenDesk(b.t.Context(), uids, commands)
	if err != nil {
		b.t.Fatal(err)
	}
	return desk
}

func commandOf(t testing.TB, text string) *model.Command {
	t.Helper()
	command, err := model.DecodeCommand([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &command
}

func TestAPutMayUseAPolicyThatAnotherOfItsBatchBringsAlong(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		inline := commandOf(t, `{"type":"put","uid":"m1","policy":{"timeout":"7m"}}`)
		byName := commandOf(t, `{"type":"put","uid":"m2","policy":"`+inline.Definition.PolicyName+`"}`)
		for _, batch := range [][]*model.Command{{inline, byName}, {byName, inline}} {
			b.server.Flush(t)
			desk := b.open(batch...)
			for _, command := range batch {
				transition, outcome, err := desk.Obey(command, true, b.now)
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
		transition, _, err := b.open(command).Obey(command, true, b.now)
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
			if transition, outcome, err := b.open(command).Obey(command, true, b.now); transition != nil || outcome != want || err != nil {
				t.Errorf("%s: %q, %v, want %q", text, outcome, err, want)
			}
		}
	})
}

func TestACommandThatSupersedesTakesTheQueuedAttemptBackUnlessItIsTaken(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, takeBack := range []bool{true, false} {
			b.server.Flush(t)
			b.mustApply(b.put("m1", "{}"))
			b.mustApply(b.start("m1", "a1"))
			command := commandOf(t, `{"type":"run","uid":"m1","force":true}`)
			transition, _, err := b.open(command).Obey(command, takeBack, b.now)
			if err != nil || strings.Contains(transition.TakeBack, `"a1"`) != takeBack {
				t.Errorf("takes back %q, %v, want %v", transition.TakeBack, err, takeBack)
			}
			b.mustApply(transition)
			if left := len(b.redis.LRange(t.Context(), b.Keys.Input(), 0, -1).Val()); (left == 0) != takeBack {
				t.Errorf("%d entries are queued", left)
			}
		}
	})
}

func TestAModelWhosePolicyAsksIsToldHowLongTheInputListIs(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{
			":model:m1": but(dueModel, "policy", "asking"), ":policies": hash{"asking": `{"retries":{"expr":"queue_depth"}}`}, "-input": list{"a", "b", "c"},
		})
		expectEqual(t, "depth", 3, b.load("m1").QueueDepth)
		b.redis.HSet(t.Context(), b.Keys.Policies(), "asking", "{}")
		expectEqual(t, "depth nobody asks for", 0, b.load("m1").QueueDepth)
	})
}
