package policy_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// parse reads a policy in JSON; a program would do the same with YAML.
func parse(text string) (policy.Policy, error) {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return policy.Policy{}, err
	}
	return policy.Parse(value)
}

func ExampleParse() {
	p, err := parse(`{"timeout": "1 hour", "retries": [0, "1 minute", "PT5M"]}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	canonical, err := json.Marshal(p)
	fmt.Println(string(canonical), err)
	// Output:
	// {"timeout":"1h","retries":["0s","1m","5m"],"alignment":"align_planned","on_exhausted":"next_planned"} <nil>
}

// A lint reports rules that are allowed, but seldom meant.
func ExampleSubject_Lint() {
	p, err := parse(`{"rrule": "every 2 hours", "timeout": "2h", "retries": ["1m"]}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := schedule.Parse(p.Rule, p.Timezone, p.Anchor())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, warning := range (policy.Subject{Policy: &p, Schedule: s}).Lint(false, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		fmt.Println(warning)
	}
	// Output:
	// timeout: 2h is not shorter than the interval of 2h: with align_planned no retry ever ends before the planned refresh, so none runs; see whichever_first
}
