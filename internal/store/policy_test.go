package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/internal/testkit"
)

// named parses a policy.
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
		if text != want || !found || err != nil {
			t.Errorf("PolicyText = %q, %v, %v", text, found, err)
		}
		policies, err := b.Policies(ctx, list{"nightly"})
		if read := policies["nightly"]; err != nil || !read.Equal(policy) || read.Name != "nightly" {
			t.Errorf("read %+v, %v", read, err)
		}
		for i, want := range []bool{true, false} {
			if removed, err := b.Fleet().RemovePolicy(ctx, "nightly"); removed != want || err != nil {
				t.Errorf("removal %d = %v, %v; want %v", i+1, removed, err, want)
			}
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
			if text, found, err := b.Report().PolicyText(t.Context(), DefaultPolicyName); text != want || !found || err != nil {
				t.Errorf("PolicyText = %q, %v, %v; want %q", text, found, err, want)
			}
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
			if policy := policies[name]; err != nil || policy.Timeout != time.Hour {
				t.Errorf("%q: expected the stored default policy, found %+v, %v", name, policy, err)
			}
		}
	})
}

func TestAPolicyWithoutAProperNameIsNotStored(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	for _, name := range []string{"", "a b", "inline-0123", "\x1b", strings.Repeat("x", 201)} {
		policy := policy.Default()
		policy.Name = name
		var refused *document.Error
		if err := b.Fleet().PutPolicy(t.Context(), policy); !errors.As(err, &refused) || refused.Field != "name" {
			t.Errorf("%q: expected a refusal of the name, found %v", name, err)
		}
	}
	b.expect(keys{})
}

func TestAPolicyThatIsTooLargeIsNotStoredByAnyWayAndStaysReadableIfItIs(t *testing.T) {
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

func TestAThousandNamesThatShareAHundredTextsHoldAHundredCompiledPolicies(t *testing.T) {
	testkit.Both(t, func(t *testing.T, s *testkit.Server) {
		b := newBench(t, s)
		stored, names := hash{}, list{}
		for i := range 1000 {
			name := fmt.Sprint("p", i)
			names = append(names, name)
			stored[name] = fmt.Sprintf(`{"timeout":"%dm","retries":{"expr":"k < %d ? 60 : false"}}`, i%100+1, i%100+1)
		}
		b.seed(keys{":policies": stored})
		for range 3 {
			policies, err := b.Policies(t.Context(), names)
			if err != nil || len(policies) != 1000 {
				t.Fatalf("expected 1000 policies, found %d, %v", len(policies), err)
			}
			for i, name := range names {
				if timeout := policies[name].Timeout; timeout != time.Duration(i%100+1)*time.Minute {
					t.Fatalf("%s: found the timeout %s of another policy", name, timeout)
				}
			}
			if policies["p7"].Retries != policies["p907"].Retries {
				t.Error("expected names with the same text to share one compiled expression")
			}
		}
		if cached := len(b.policies.byText); cached != 100 {
			t.Errorf("expected 100 compiled policies, found %d", cached)
		}
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
			var cache policyCache
			before := heapOf()
			for i := range 300 {
				must(t, only(cache.parse(policyOf(i))))
			}
			takes := heapOf() - before
			t.Logf("%d bytes each, %d by estimate", takes/300, cache.bytes/300)
			if takes > cache.bytes || len(cache.byText) != 300 {
				t.Errorf("expected at most %d bytes, found %d", cache.bytes, takes)
			}
		})
	}
}

func TestTheCacheOfPoliciesIsBoundedInBytes(t *testing.T) {
	var cache policyCache
	most := 0
	for i := 0; most == 0; i++ {
		held := len(cache.byText)
		must(t, only(cache.parse(fmt.Sprintf(`{"retries":{"expr":"reason matches 'x{250}%d' ? 1 : 2"}}`, i))))
		if cache.bytes > maxCachedPolicies || i > 3000 {
			t.Fatalf("expected at most %d bytes, found %d of %d policies", maxCachedPolicies, cache.bytes, len(cache.byText))
		}
		if len(cache.byText) < held {
			most = held
		}
	}
	if _, err := cache.parse(`{"timeout":"5ms"}`); err != nil || most < 500 || len(cache.byText) != 2 {
		t.Errorf("expected the cache anew after more than 500 policies, found %d, and now %d, %v", most, len(cache.byText), err)
	}
}

func TestAnUnreadablePolicyStaysUnreadable(t *testing.T) {
	var cache policyCache
	for range 2 {
		if _, err := cache.parse(`{"timeout":"never"}`); err == nil || len(cache.byText) > 0 {
			t.Error("expected an unreadable policy to stay unreadable, and not to be kept")
		}
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
			commands := []*model.Command{commandOf(t, `{"type":"put","uid":"m1","policy":{"timeout":"1m"}}`)}
			snapshot, err := b.Read(t.Context(), []string{"m1"}, commands)
			must(t, err)
			record := snapshot.Records["m1"]
			decision, outcome, err := record.Execute(commands[0], snapshot.Policies, record.Exists, b.now)
			if err != nil || outcome != model.Applied {
				t.Fatalf("put: %v, %v", outcome, err)
			}
			b.mustApply(snapshot.Apply(commands[0], decision, b.now))
			return decision.Definition.PolicyName
		}
		builtIn := named(t, `{"timeout":"1m","retries":[0,"1m","5m"],"on_exhausted":"next_planned"}`)
		expectEqual(t, "name", builtIn.ContentName(), put())
		must(t, b.Fleet().PutPolicy(t.Context(), named(t, `{"name":"default","timeout":"7m","retries":["3m"],"give_up_after":"1w"}`)))
		whole := named(t, `{"timeout":"1m","retries":["3m"],"give_up_after":"1w"}`)
		name := put()
		expectEqual(t, "name", whole.ContentName(), name)
		if policy := b.load("m1").Policy; !policy.Equal(whole) {
			t.Errorf("in force is %+v", policy)
		}
		text, _, err := b.Report().PolicyText(t.Context(), name)
		expectEqual(t, "text", `{"timeout":"1m","retries":["3m"],"alignment":"align_planned","on_exhausted":"next_planned","give_up_after":"1w"}`, text)
		if err != nil {
			t.Error(err)
		}
	})
}
