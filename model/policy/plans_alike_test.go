package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/refreshd/refreshd/model/policy"
)

func TestPoliciesPlanAlikeUnlessTheirPlannedRefreshesMayDiffer(t *testing.T) {
	const rule = `"rrule":"FREQ=HOURLY"`
	for _, test := range []struct {
		a, b  string
		alike bool
	}{
		{``, `"timeout":"1h","retries":["1m"],"misfire":"skip"`, true},
		{`"retry_window":"FREQ=DAILY;BYHOUR=9","timezone":"Asia/Tokyo"`, `"retry_window":"FREQ=DAILY;BYHOUR=9"`, true},
		{``, `"limits":[{"key":"{a}","running":1}],"circuit":{"key":"{a}","open_after":"1 of 2"},"closed":["a"],"fresh_within":"1h"`, true},
		{rule, rule + `,"dtstart":"20010101T000000"`, true}, // the default
		{rule, `"rrule":"FREQ=DAILY"`, false},
		{rule, ``, false},
		{rule, rule + `,"timezone":"Asia/Tokyo"`, false},
		{rule, rule + `,"dtstart":"20260101T001500"`, false},
		{``, `"spread":"10m"`, false},
	} {
		a, b := parsed(t, test.a), parsed(t, test.b)
		if a.PlansAlike(b) != test.alike || b.PlansAlike(a) != test.alike {
			t.Errorf("{%s} and {%s}: expected alike: %t", test.a, test.b, test.alike)
		}
	}
}

func parsed(t *testing.T, fields string) policy.Policy {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte("{"+fields+"}"), &value); err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(value)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
