package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
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
	must(t, err)
	return inline.ContentName(), string(canonical)
}

// expectPolicies compares the stored policies, by the minutes of their timeouts, and that it is noted when a model was saved with them.
func (b *bench) expectPolicies(minutes ...int) {
	b.t.Helper()
	policies, uses := hash{}, hash{}
	for _, minutes := range minutes {
		name, text := inlineOf(b.t, minutes)
		policies[name], uses[name] = text, "? "+Millis(b.now)
	}
	state := b.state()
	expectEqual(b.t, "policies", any(policies), state[":policies"])
	expectEqual(b.t, "uses", any(uses), state[":policy_uses"])
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
		b.expectPolicies(1, 3)
	})
}

func nameOf(t testing.TB, minutes int) string {
	name, _ := inlineOf(t, minutes)
	return name
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

// expectForgotten lets something happen between the look at a policy and the attempt to forget it.
func (b *bench) expectForgotten(minutes int, want bool, meanwhile func()) {
	b.t.Helper()
	uses, err := b.Fleet().PolicyUses(b.t.Context())
	name := nameOf(b.t, minutes)
	use := uses[name]
	use.Name = name
	meanwhile()
	if forgotten, failed := b.Fleet().ForgetPolicy(b.t.Context(), use); err != nil || failed != nil || forgotten != want {
		b.t.Errorf("expected it forgotten: %t, found %t, %v, %v", want, forgotten, err, failed)
	}
}

func TestAPolicyIsForgottenUnlessAModelIsSavedWithItMeanwhile(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, recorded := range []string{"", "2 7", "? 7"} { // by older releases, and by this one
			name, text := inlineOf(t, 1)
			b.server.Flush(t)
			b.seed(keys{":policies": hash{name: text}})
			if recorded != "" {
				b.seed(keys{":policy_uses": hash{name: recorded}})
			}
			b.expectForgotten(1, false, func() { b.mustApply(b.decide(using("m1", 1))) })
			b.expectPolicies(1)
			b.expectForgotten(1, true, func() {})
			if state := b.state(); state[":policies"] != nil || state[":policy_uses"] != nil {
				t.Errorf("expected nothing left, found %v, %v", state[":policies"], state[":policy_uses"])
			}
		}
	})
}

// A put is decided on a policy that is gone when it is committed.
func TestASaveWritesItsPolicyAnewWhenItWasForgottenMeanwhile(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.decide(using("m1", 1)))
		takes := b.decide(`{"type":"put","uid":"m2","policy":"` + nameOf(t, 1) + `"}`)
		b.expectForgotten(1, true, func() {})
		b.mustApply(takes)
		b.expectPolicies(1)
		if m2 := b.load("m2"); m2.Fault != "" || m2.Policy.Timeout.Minutes() != 1 {
			t.Errorf("expected its policy, found %q, %s", m2.Fault, m2.Policy.Timeout)
		}
	})
}
