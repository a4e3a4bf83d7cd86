package model

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/schedule"

	"github.com/google/go-cmp/cmp"
)

func TestForesightTellsWhatThePolicyInForceWouldDecideNow(t *testing.T) {
	const byAge = `"policy":{"timeout":"1h","retries":{"by_age":["1h: 5m","2h: 20m"]}}`
	for _, test := range []struct{ definition, steps, now, planned, deadline, next, why string }{
		// An idle model is asked about an attempt that would begin now; one that never started has no age yet
		{daily, "", "02:00", "06:00", "03:00", "02:00", "retry 1/6 at once, before planned"},
		{byAge, "", "05:00", "never", "06:00", "05:05", "retry 1 +5m, none planned"},
		{daily, "06:00 wake | 06:10 failure", "06:10", "16:00", "07:10", "06:11", "retry 2/6 +1m, before planned"},
		// A running one about its own attempt
		{daily, "06:00 wake | 06:10 failure | 06:10 wake", "06:30", "16:00", "07:30", "06:31", "retry 2/6 +1m, before planned"},
		{byAge, "00:00 wake", "01:30", "never", "02:30", "01:50", "retry 1 +20m, none planned"},
	} {
		l := live(t, test.definition, test.steps)
		before := l.m.State
		got := l.m.Foresee(clock(test.now))
		told := []string{clockText(got.Planned), clockText(got.Deadline), clockText(got.Next), got.Why}
		if diff := cmp.Diff([]string{test.planned, test.deadline, test.next, test.why}, told); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.steps, diff)
		}
		if l.m.State != before {
			t.Errorf("%s: to ask has changed the model to %+v", test.steps, l.m.State)
		}
	}
}

func TestForesightOfTwoPoliciesDiffersWhereTheyDecideDifferently(t *testing.T) {
	at := clock("02:00")
	foresee := func(policy string) Foresight {
		m := Model{UID: "tbl_1", Rule: "FREQ=DAILY;BYHOUR=6", Dtstart: "2026-01-01T00:00:00"}
		if err := m.Resolve(policyOf(t, policy), schedule.Parse); err != nil {
			t.Fatal(err)
		}
		return m.Foresee(at)
	}
	same := foresee(`{"timeout":"1h","retries":["1m"]}`)
	if other := foresee(`{"timeout":"60m","retries":[60],"name":"p"}`); other != same {
		t.Errorf("equal policies: %+v and %+v", same, other)
	}
	for _, policy := range []string{`{"timeout":"2h","retries":["1m"]}`, `{"timeout":"1h","retries":["2m"]}`, `{"timeout":"1h","retries":["1m"],"spread":"1h"}`} {
		if other := foresee(policy); other == same {
			t.Errorf("%s is foreseen as %+v, like another one", policy, other)
		}
	}
	if same.Deadline != at.Add(time.Hour) {
		t.Errorf("deadline %s", same.Deadline)
	}
}
