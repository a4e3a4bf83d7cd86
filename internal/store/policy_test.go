package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

func named(t testing.TB, text string) policy.Policy {
	t.Helper()
	var value any
	must(t, json.Unmarshal([]byte(text), &value))
	policy, err := policy.Parse(value)
	must(t, err)
	return policy
}

const defaultText = `{"timeout":"10m","retries":["0s","1m","5m"],"alignment":"align_planned","on_exhausted":"next_planned"}`

func TestAPolicyIsStoredAsItsCanonicalTextAndForgottenAgain(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		policy := named(t, `{"retries":"2 300s","timeout":"60 minutes","name":"nightly","on_exhausted":"next_planned"}`)
		const want = `{"name":"nightly","timeout":"1h","retries":{"strategy":"fixed","base":"5m","count":2},"jitter":0,"alignment":"align_planned","on_exhausted":"next_planned"}`
		must(t, b.Fleet().PutPolicy(ctx, policy))
		b.expect(keys{":policies": hash{"nightly": want}, ":forwarded": hash{"changes": "1"}})
		text, found, err := b.Report().PolicyText(ctx, "nightly")
		failIf(t, text != want || !found || err != nil, "PolicyText = %q, %v, %v", text, found, err)
		policies, err := b.Policies(ctx, list{"nightly"})
		read := policies["nightly"]
		failIf(t, err != nil || !read.Equal(policy) || read.Name != "nightly", "read %+v, %v", read, err)
		for i, want := range []bool{true, false} {
			removed, err := b.Fleet().RemovePolicy(ctx, "nightly")
			failIf(t, removed != want || err != nil, "removal %d = %v, %v; want %v", i+1, removed, err, want)
		}
		b.expect(keys{":forwarded": hash{"changes": "2"}})
		if text, found, err := b.Report().PolicyText(ctx, "nightly"); text != "" || found || err != nil {
			t.Errorf("PolicyText = %q, %v, %v; want none", text, found, err)
		}
	})
}

func TestTheBuiltInDefaultPolicyCountsAsStoredUntilAnotherIs(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		expect := func(want string) {
			t.Helper()
			text, found, err := b.Report().PolicyText(t.Context(), DefaultPolicyName)
			failIf(t, text != want || !found || err != nil, "PolicyText = %q, %v, %v; want %q", text, found, err, want)
		}
		expect(defaultText)
		if removed, err := b.Fleet().RemovePolicy(t.Context(), DefaultPolicyName); removed || err != nil {
			t.Errorf("RemovePolicy = %v, %v; want false", removed, err)
		}
		own := named(t, `{"name":"default","timeout":"1h","retries":[]}`)
		must(t, b.Fleet().PutPolicy(t.Context(), own))
		expect(`{"name":"default","timeout":"1h","retries":[],"alignment":"align_planned","on_exhausted":"next_planned"}`)
		for _, name := range []string{"", DefaultPolicyName} {
			policies, err := b.Policies(t.Context(), list{name})
			policy := policies[name]
			failIf(t, err != nil || policy.Timeout != time.Hour, "%q: expected the stored default policy, found %+v, %v", name, policy, err)
		}
	})
}

func TestAPolicyThatIsTooLargeOrHasNoProperNameIsNotStoredAndStaysReadableIfItIs(t *testing.T) {
	large := `{"timeout":"7m","never_retry":["` + strings.Repeat("x", 90)
	for i := range 199 {
		large += fmt.Sprintf(`","%d`, i) + strings.Repeat("x", 90)
	}
	large += `"]}`
	everywhere(t, func(t *testing.T, b *bench) {
		var value any
		must(t, json.Unmarshal([]byte(large), &value))
		p, err := policy.ParseStored(value)
		must(t, err)
		p.Name = "large"
		const want = "expected at most 16384 bytes of JSON, found "
		if err := b.Fleet().PutPolicy(t.Context(), p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("by name: expected %q, found %v", want, err)
		}
		p = policy.Default()
		for _, p.Name = range []string{"", "a b", "inline-0123", "\x1b", strings.Repeat("x", 201)} {
			var refused *document.Error
			err := b.Fleet().PutPolicy(t.Context(), p)
			failIf(t, !errors.As(err, &refused) || refused.Field != "name", "%q: expected a refusal of the name, found %v", p.Name, err)
		}
		if _, err := model.DecodeCommand([]byte(`{"type":"put","uid":"m1","policy":` + large + `}`)); err == nil || !strings.Contains(err.Error(), "policy: "+want) {
			t.Errorf("inline: expected %q, found %v", want, err)
		}
		b.expect(keys{})
		b.seed(keys{":policies": hash{"large": large}, ":model:m1": but(dueModel, "policy", "large")})
		if record := b.load("m1"); record.Fault != "" || record.Policy.Timeout != 7*time.Minute {
			t.Errorf("expected a stored policy in force, found %q, %s", record.Fault, record.Policy.Timeout)
		}
	})
}

func TestNamesThatShareATextShareACompiledPolicy(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		stored, names := hash{}, list{}
		for i := range 1000 {
			names = append(names, fmt.Sprint("p", i))
			stored[names[i]] = fmt.Sprintf(`{"timeout":"%dm","retries":{"expr":"k < %d ? 60 : false"}}`, i%100+1, i%100+1)
		}
		b.seed(keys{":policies": stored})
		for range 3 {
			policies, err := b.Policies(t.Context(), names)
			stopIf(t, err != nil || len(policies) != 1000, "expected 1000 policies, found %d, %v", len(policies), err)
			for i, name := range names {
				timeout := policies[name].Timeout
				stopIf(t, timeout != time.Duration(i%100+1)*time.Minute, "%s: found the timeout %s of another policy", name, timeout)
			}
			failIf(t, policies["p7"].Retries != policies["p907"].Retries, "expected names with the same text to share one compiled expression")
		}
		expectEqual(t, "compiled policies", 100, len(b.policies.byText))
	})
}

// heapOf measures how much memory is in use when nothing is garbage.
func heapOf() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// The estimate holds whatever a policy is made of.
func TestACachedPolicyTakesNoMoreThanTheCacheBelieves(t *testing.T) {
	words := `"` + strings.Repeat("x", 80)
	for name, policyOf := range map[string]func(i int) string{
		"short":    func(i int) string { return fmt.Sprintf(`{"timeout":"%dms"}`, i+1) },
		"sums":     func(i int) string { return fmt.Sprintf(`{"retries":{"expr":"%d%s"}}`, i, strings.Repeat("+k", 90)) },
		"patterns": func(i int) string { return fmt.Sprintf(`{"retries":{"expr":"reason matches 'x{250}%d' ? 1 : 2"}}`, i) },
		"delays":   func(i int) string { return fmt.Sprintf(`{"retries":["%dms"%s]}`, i+1, strings.Repeat(`,"1h1m"`, 999)) },
		"classes": func(i int) string {
			var list []string
			for n := range 170 {
				list = append(list, fmt.Sprintf(`%s%d-%d"`, words, i, n))
			}
			return `{"never_retry":[` + strings.Join(list, ",") + `]}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			const many = 300
			var cache policyCache
			takes := math.MaxInt
			for range 3 { // what ends meanwhile of other tests only adds to it
				cache = policyCache{}
				before := heapOf()
				for i := range many {
					must(t, only(cache.parse(policyOf(i))))
				}
				takes = min(takes, heapOf()-before)
			}
			t.Logf("%d bytes each, %d by estimate", takes/many, cache.bytes/many)
			failIf(t, takes > cache.bytes || len(cache.byText) != many, "expected at most %d bytes, found %d", cache.bytes, takes)
		})
	}
}

func TestTheCacheOfPoliciesIsBoundedInBytes(t *testing.T) {
	var cache policyCache
	text := func(i int) string {
		return fmt.Sprintf(`{"retries":{"expr":"reason matches 'x{250}%03d' ? 1 : 2"}}`, i)
	}
	must(t, only(cache.parse(text(0))))
	if !long.Enabled() {
		cache.bytes = maxCachedPolicies - cache.bytes // as if others had been read: one more fits, and no second one
	}
	for i := 1; len(cache.byText) == i; i++ {
		must(t, only(cache.parse(text(i))))
		stopIf(t, cache.bytes > maxCachedPolicies || i > 3000,
			"expected at most %d bytes, found %d of %d policies", maxCachedPolicies, cache.bytes, len(cache.byText))
		failIf(t, i == long.Or(1, 500) && len(cache.byText) != i+1,
			"expected the cache anew after more than %d policies, found it after %d", i, len(cache.byText))
	}
	expectEqual(t, "policies in the cache that began anew", 1, len(cache.byText))
	must(t, only(cache.parse(`{"timeout":"5ms"}`)))
	expectEqual(t, "policies behind it", 2, len(cache.byText))
}

func TestAnUnreadablePolicyStaysUnreadable(t *testing.T) {
	var cache policyCache
	for range 2 {
		_, err := cache.parse(`{"timeout":"never"}`)
		failIf(t, err == nil || len(cache.byText) > 0 || cache.bytes > 0, "expected an unreadable policy to stay unreadable, and not to be kept")
	}
}

func TestAChangedTextIsInForceAtTheNextRead(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":model:m1": hash{"rev": "1", "policy": "nightly"}})
		for _, minutes := range []int{1, 2, 1} {
			must(t, b.Fleet().PutPolicy(t.Context(), named(t, fmt.Sprintf(`{"name":"nightly","timeout":"%dm"}`, minutes))))
			if record := b.load("m1"); record.Policy.Timeout != time.Duration(minutes)*time.Minute || record.Fault != "" {
				t.Errorf("expected a timeout of %d minutes, found %s, %s", minutes, record.Policy.Timeout, record.Fault)
			}
		}
	})
}

func TestAPartialPolicyOfAModelIsCompletedWithTheStoredDefault(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		put := func() string {
			command := commandOf(t, `{"type":"put","uid":"m1","policy":{"timeout":"1m"}}`)
			transition, _, err := b.execute(b.read(command), command)
			must(t, err)
			b.mustApply(transition)
			return command.Definition.PolicyName
		}
		builtIn := named(t, `{"timeout":"1m","retries":[0,"1m","5m"],"on_exhausted":"next_planned"}`)
		expectEqual(t, "name", builtIn.ContentName(), put())
		must(t, b.Fleet().PutPolicy(t.Context(), named(t, `{"name":"default","timeout":"7m","retries":["3m"],"give_up_after":"1w"}`)))
		whole := named(t, `{"timeout":"1m","retries":["3m"],"give_up_after":"1w"}`)
		name := put()
		expectEqual(t, "name", whole.ContentName(), name)
		policy := b.load("m1").Policy
		failIf(t, !policy.Equal(whole), "in force is %+v", policy)
		text, _, err := b.Report().PolicyText(t.Context(), name)
		expectEqual(t, "text", `{"timeout":"1m","retries":["3m"],"alignment":"align_planned","on_exhausted":"next_planned","give_up_after":"1w"}`, text)
		failIf(t, err != nil, "%v", err)
	})
}

// decide makes the transition of a command as a poller does.
func (b *bench) decide(text string) *Transition {
	b.t.Helper()
	command := commandOf(b.t, text)
	transition, outcome, err := b.execute(b.read(command), command)
	stopIf(b.t, err != nil || outcome != model.Applied, "%s: %q, %v", text, outcome, err)
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
		policies[name], uses[name] = text, "? "+redis.Millis(b.now)
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

func TestAnInlinePolicyIsNotRemovedByHand(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.decide(using("m1", 1)))
		name, _ := inlineOf(t, 1)
		b.unchanged(func() {
			var refused *document.Error
			removed, err := b.Fleet().RemovePolicy(t.Context(), name)
			failIf(t, removed || !errors.As(err, &refused) || refused.Field != "name", "expected a refusal of the name, found %v, %v", removed, err)
		})
	})
}

// expectForgotten lets something happen between the look at a policy and the attempt to forget it.
func (b *bench) expectForgotten(minutes int, want bool, meanwhile func()) {
	b.t.Helper()
	uses, err := b.Fleet().PolicyUses(b.t.Context())
	name, _ := inlineOf(b.t, minutes)
	use := uses[name]
	use.Name = name
	meanwhile()
	forgotten, failed := b.Fleet().ForgetPolicy(b.t.Context(), use)
	failIf(b.t, err != nil || failed != nil || forgotten != want, "expected it forgotten: %t, found %t, %v, %v", want, forgotten, err, failed)
}

func TestAPolicyIsForgottenUnlessAModelIsSavedWithItMeanwhile(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, recorded := range []string{"", "? 7"} {
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
		name, _ := inlineOf(t, 1)
		takes := b.decide(`{"type":"put","uid":"m2","policy":"` + name + `"}`)
		b.expectForgotten(1, true, func() {})
		b.mustApply(takes)
		b.expectPolicies(1)
		if m2 := b.load("m2"); m2.Fault != "" || m2.Policy.Timeout.Minutes() != 1 {
			t.Errorf("expected its policy, found %q, %s", m2.Fault, m2.Policy.Timeout)
		}
	})
}

func TestAPolicyThatWasChangedMeanwhileIsReplacedInNoPart(t *testing.T) {
	b, q := newBench(t, testkit.Miniredis(t)), &Queue{Name: "{q}"}
	for i := range 2 {
		part, err := New(b.Clients, Config{Queue: fmt.Sprintf("{q:%d}", i)})
		must(t, err)
		q.Parts = append(q.Parts, part)
	}
	hourly := func(timeout time.Duration) policy.Policy {
		p := policy.Default()
		p.Name, p.Timeout = "hourly", timeout
		return p
	}
	must(t, q.Fleet().ReplacePolicy(t.Context(), hourly(time.Minute), Digest("")))
	err := q.Fleet().ReplacePolicy(t.Context(), hourly(time.Hour), "what somebody read before")
	failIf(t, !errors.Is(err, ErrPolicyChanged), "expected it refused, found %v", err)
	for _, part := range q.Parts {
		text, _, err := part.Report().PolicyText(t.Context(), "hourly")
		failIf(t, err != nil || !strings.Contains(text, `"timeout":"1m"`), "%s: expected the first policy, found %s, %v", part.Keys.Queue, text, err)
	}
}
