package policy

import "testing"

func TestAMisfireRuleIsReadInEachOfItsForms(t *testing.T) {
	for text, want := range map[string]string{
		`null`: "run_once", `"run_once"`: "run_once", `"skip"`: "skip", `" skip "`: "skip",
		`"run_if_younger_than 1h"`: "run_if_younger_than 1h", `"run_if_younger_than 90 minutes"`: "run_if_younger_than 1h30m",
		`{"run_if_younger_than":"PT1H"}`: "run_if_younger_than 1h", `{"run_if_younger_than":3600}`: "run_if_younger_than 1h",
		`"run_if_younger_than 1m"`: "skip", `"run_if_younger_than 0"`: "run_if_younger_than 0s",
	} {
		policy := policyOf(t, `{"misfire":`+text+`}`)
		if got := policy.Misfire.String(); got != want {
			t.Errorf("%s: %s", text, got)
		}
		if again := policyOf(t, policy.canonical()); again.Misfire != policy.Misfire {
			t.Errorf("%s is read back as %+v", text, again.Misfire)
		}
	}
}

func TestABadMisfireRuleIsRefused(t *testing.T) {
	const want = `misfire: expected run_once, skip or "run_if_younger_than 1h", found `
	refusals(t, map[string]string{
		`{"misfire":"never"}`:                       want + `"never"`,
		`{"misfire":""}`:                            want + `""`,
		`{"misfire":"skip 1h"}`:                     want + `"skip 1h"`,
		`{"misfire":"run_if_younger_than"}`:         want + `"run_if_younger_than"`,
		`{"misfire":7}`:                             want + `7`,
		`{"misfire":{"skip":"1h"}}`:                 "misfire.skip: expected one of run_if_younger_than, found an unknown field",
		`{"misfire":{"run_if_younger_than":[]}}`:    "misfire.run_if_younger_than: expected a text or a number, found a list",
		`{"misfire":"run_if_younger_than a while"}`: `misfire: expected ` + wantDuration + `, found "a while" (a number from 0 is missing before "a while")`,
	})
}
