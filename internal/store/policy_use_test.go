package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// decide makes the transition of a command as a poller does.
func (b *bench) decide(text string) *Transition {
	b.t.Helper()
	command := commandOf(b.t, text)
	transition, outcome, err := b.execute(b.read(command), command)
	if err != nil || outcome != model.Applied {
		b.t.Fatalf("%s: %q, %v", text, outcome, err)
	}
	return transition
}

// using is a put of a model with a policy of its own: a timeout of so many minutes.
func using(uid string, minutes int) string {
	return fmt.Sprintf(`{"type":"put","uid":%q,"policy":{"timeout":"%dm"}}`, uid, minutes)
}

// inlineOf is the name and the text of the policy that using brings along.
func inlineOf(t testing.TB, minutes int) (name, text string) {
	t.Helper()
	inline := commandOf(t, using("m", minutes)).Definition.Inline
	canonical, err := inline.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return inline.ContentName(), string(canonical)
}

// expectUses compares the stored policies, and how many models are counted for each, by the minutes of their timeouts. -1: not counted.
func (b *bench) expectUses(want map[int]int) {
	b.t.Helper()
	policies, uses := hash{}, hash{}
	for minutes, models := range want {
		name, text := inlineOf(b.t, minutes)
		if policies[name] = text; models >= 0 {
			uses[name] = fmt.Sprint(models)
		}
	}
	state := b.state()
	found := hash{}
	stored, _ := state[":policy_uses"].(hash)
	for name, value := range stored {
		if models, _, _ := strings.Cut(value, " "); policy.IsInline(name) && models != "?" {
			found[name] = models
		}
	}
	is, _ := state[":policies"].(hash)
	if is == nil {
		is = hash{}
	}
	expectEqual(b.t, "policies", policies, is)
	expectEqual(b.t, "uses", uses, found)
}

func TestManySavesOfOneModelLeaveOnePolicy(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		saves := long.Or(200, 20_000)
		for i := range saves {
			b.mustApply(b.decide(using("m1", i+1)))
		}
		b.expectUses(map[int]int{saves: 1})
	})
}

func TestAPutThatIsRefusedStoresNoPolicy(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.decide(using("m1", 1)))
		stale := b.decide(using("m1", 2))
		b.mustApply(b.decide(using("m1", 3)))
		gone := Item{Transition: b.decide(using("m2", 4)), Message: Claimed{"onobody"}}
		b.unchanged(func() {
			expectCodes(t, b.apply(stale), CodeConflict)
			expectCodes(t, b.commit(gone), CodeGone)
		})
		b.expectUses(map[int]int{3: 1})
	})
}

func TestAPolicyStaysUntilItsLastModelLeavesIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, step := range []struct {
			command string
			want    map[int]int
		}{
			{using("m1", 1), map[int]int{1: 1}},
			{using("m2", 1), map[int]int{1: 2}},
			{using("m3", 1), map[int]int{1: 3}},
			{`{"type":"put","uid":"m3","payload":{"n":1},"policy":{"timeout":"1m"}}`, map[int]int{1: 3}},
			{using("m1", 2), map[int]int{1: 2, 2: 1}},
			{`{"type":"put","uid":"m2","policy":"default"}`, map[int]int{1: 1, 2: 1}},
			{`{"type":"disable","uid":"m3"}`, map[int]int{1: 1, 2: 1}},
			{`{"type":"remove","uid":"m3"}`, map[int]int{2: 1}},
			{`{"type":"put","uid":"m2","policy":"` + nameOf(t, 2) + `"}`, map[int]int{2: 2}},
			{`{"type":"remove","uid":"m1"}`, map[int]int{2: 1}},
			{`{"type":"put","uid":"m2"}`, nil},
		} {
			b.mustApply(b.decide(step.command))
			b.expectUses(step.want)
		}
	})
}

func nameOf(t testing.TB, minutes int) string {
	name, _ := inlineOf(t, minutes)
	return name
}

func TestABatchLeavesThePoliciesThatItsModelsUseInTheEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		var batch []*model.Command
		for _, text := range []string{
			using("m1", 1), using("m1", 2), using("m2", 2), using("m3", 3), `{"type":"remove","uid":"m3"}`, using("m3", 1), using("m1", 4), using("m4", 2),
		} {
			batch = append(batch, commandOf(t, text))
		}
		snapshot := b.read(batch...)
		var transitions []*Transition
		for _, command := range batch {
			transition, outcome, err := b.execute(snapshot, command)
			if err != nil || outcome != model.Applied {
				t.Fatalf("%v: %q, %v", command, outcome, err)
			}
			transitions = append(transitions, transition)
		}
		b.mustApply(transitions...)
		b.expectUses(map[int]int{1: 1, 2: 2, 4: 1})
	})
}

// One poller's put begins to use the policy that another's ceases to use: each has decided before either commits.
func TestAPolicyThatOneModelLeavesWhileAnotherTakesItStaysInEitherOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, takesFirst := range []bool{true, false} {
			b.server.Flush(t)
			b.mustApply(b.decide(using("m1", 1)))
			takes, leaves := b.decide(`{"type":"put","uid":"m2","policy":"`+nameOf(t, 1)+`"}`), b.decide(using("m1", 2))
			if takesFirst {
				b.mustApply(takes)
				b.expectUses(map[int]int{1: 2})
				b.mustApply(leaves)
			} else {
				b.mustApply(leaves)
				b.expectUses(map[int]int{2: 1})
				b.mustApply(takes)
			}
			b.expectUses(map[int]int{1: 1, 2: 1})
			if m2 := b.load("m2"); m2.Fault != "" || m2.Policy.Timeout.Minutes() != 1 {
				t.Errorf("expected its policy, found %q, %s", m2.Fault, m2.Policy.Timeout)
			}
		}
	})
}

// Policies of older releases are used by any number of models that nobody has counted.
func TestAPolicyThatWasStoredWithoutACountIsNeverRemovedByCounting(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		name, text := inlineOf(t, 1)
		old := hash{"rev": "1", "policy": name, "refresh_at": "2026-11-21T06:00:00.000Z"}
		b.seed(keys{":policies": hash{name: text}, ":model:old": old, ":model:m1": old})
		for _, command := range []string{using("m1", 2), using("m1", 1), `{"type":"remove","uid":"m1"}`, using("m1", 1), using("m1", 3)} {
			b.mustApply(b.decide(command))
			if _, stays := b.state()[":policies"].(hash)[name]; !stays {
				t.Fatalf("after %s the policy of another model is gone", command)
			}
		}
		b.expectUses(map[int]int{1: -1, 3: 1})
	})
}

func TestAnInlinePolicyIsNotRemovedByHand(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.decide(using("m1", 1)))
		b.unchanged(func() {
			var refused *document.Error
			if removed, err := b.Fleet().RemovePolicy(t.Context(), nameOf(t, 1)); removed || !errors.As(err, &refused) || refused.Field != "name" {
				t.Errorf("expected a refusal of the name, found %v, %v", removed, err)
			}
		})
	})
}

func TestAPolicyThatWasStoredUnderANameIsNotCounted(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":policies": hash{"nightly": "{}"}})
		b.mustApply(b.decide(`{"type":"put","uid":"m1","policy":"nightly"}`))
		b.mustApply(b.decide(`{"type":"remove","uid":"m1"}`))
		state := b.state()
		expectEqual(t, "policies", any(hash{"nightly": "{}"}), state[":policies"])
		if state[":policy_uses"] != nil {
			t.Errorf("expected nothing counted, found %v", state[":policy_uses"])
		}
	})
}

// recounted counts the models that use a policy of so many minutes, lets something happen, and writes the number down.
func (b *bench) recounted(minutes int, meanwhile func()) bool {
	b.t.Helper()
	uses, err := b.CountPolicyUses(b.t.Context(), list{nameOf(b.t, minutes)})
	if err != nil || len(uses) != 1 {
		b.t.Fatalf("expected one policy, found %v, %v", uses, err)
	}
	meanwhile()
	done, err := b.Recount(b.t.Context(), uses[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return done
}

func TestARecountWritesDownHowManyModelsUseAPolicy(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.decide(using("m1", 1)), b.decide(using("m2", 2)))
		b.mustApply(b.decide(using("m3", 1)))
		unused, text := inlineOf(t, 3)
		b.seed(keys{":policies": hash{unused: text}, ":policy_uses": hash{nameOf(t, 1): "7 9"}})
		b.redis.HDel(t.Context(), b.Keys.PolicyUses(), nameOf(t, 2))
		for minutes := 1; minutes <= 3; minutes++ {
			if !b.recounted(minutes, func() {}) {
				t.Errorf("%d minutes: expected it written down", minutes)
			}
		}
		b.expectUses(map[int]int{1: 2, 2: 1})
		for _, uid := range modelNames {
			b.mustApply(b.decide(`{"type":"remove","uid":"` + uid + `"}`))
		}
		b.expectUses(nil)
	})
}

// What happens between the count and the script may leave the number as it was.
func TestARecountIsRefusedWhenAModelBeganOrCeasedToUseThePolicyMeanwhile(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, counted := range []string{"", "1 1", "many"} {
			for _, meanwhile := range []list{
				{using("m2", 1)},
				{using("m1", 2)},
				{using("m1", 2), using("m2", 1)},
				{`{"type":"remove","uid":"m1"}`, using("m1", 1)},
			} {
				b.server.Flush(t)
				b.mustApply(b.decide(using("m1", 1)))
				b.redis.HDel(t.Context(), b.Keys.PolicyUses(), nameOf(t, 1))
				if counted != "" {
					b.seed(keys{":policy_uses": hash{nameOf(t, 1): counted}})
				}
				written := b.recounted(1, func() {
					for _, command := range meanwhile {
						b.mustApply(b.decide(command))
					}
				})
				if written {
					t.Errorf("%q, then %s: expected a refusal", counted, meanwhile)
				}
			}
		}
	})
}
