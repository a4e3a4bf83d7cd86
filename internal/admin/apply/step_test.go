package apply

import (
	"fmt"
	"testing"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model/policy"
)

func TestAChangeTellsEachFieldThatDiffersAndNoOther(t *testing.T) {
	const policies = "name: p\ntimeout: 1h\n---\nname: q\ntimeout: 2h\n---\n"
	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"another rule":                      {"rrule: FREQ=YEARLY", "rrule: FREQ=DAILY", []string{"rrule FREQ=YEARLY FREQ=DAILY"}},
		"no rule any more":                  {"rrule: FREQ=YEARLY\ndtstart: 2026-01-01T00:00:00", "payload: {}", []string{"rrule FREQ=YEARLY <nil>", "dtstart 2026-01-01T00:00:00 <nil>"}},
		"a policy of another name":          {"policy: p", "policy: q", []string{"policy p q"}},
		"another value of its own policy":   {"policy: {timeout: 1h, retries: [1m]}", "policy: {timeout: 1h, retries: [2m]}", []string{"policy.retries [1m] [2m]"}},
		"a field that only the old one has": {"payload: {a: 1, b: 2}", "payload: {b: 2}", []string{"payload.a 1 <nil>"}},
		"a field that only the new one has": {"payload: {b: 2}", "payload: {b: 2, c: 3}", []string{"payload.c <nil> 3"}},
		"a policy of its own instead":       {"policy: p", "policy: {timeout: 1h}", []string{"policy p its own"}},
		"labels":                            {"labels: {a: x, b: x}", "labels: {b: y, c: x}", []string{"labels.a x <nil>", "labels.b x y", "labels.c <nil> x"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, testkit.Miniredis(t))
			b.carryOut(b.plan(policies + "uid: a\n" + test.before + "\n"))
			var got []string
			for _, step := range b.plan(policies + "uid: a\n" + test.after + "\n").Steps {
				for _, c := range step.Changes {
					if name, is := c.New.(string); is && policy.IsInline(name) {
						c.New = "its own"
					}
					got = append(got, fmt.Sprintf("%s %v %v", c.Field, c.Old, c.New))
				}
			}
			equal(t, test.want, got)
		})
	}
}

func TestPoliciesAreCompletedWithTheBuiltInOneWhereNoneCalledDefaultCanBeRead(t *testing.T) {
	server := testkit.Miniredis(t)
	b := setup(t, server)
	must(t, server.Client(t).HSet(t.Context(), b.queue.Parts[0].Keys.Policies, policy.DefaultName, "no policy").Err())
	plan := b.plan("name: p\ntimeout: 90m\n")
	want := policy.Default()
	want.Timeout = plan.Steps[0].policy.Timeout
	diff := definitions.Compare(want, plan.Steps[0].policy)
	failIf(t, len(diff) > 0 || want.Timeout.Minutes() != 90, "expected the built-in policy but for its timeout, found %v", diff)
}
