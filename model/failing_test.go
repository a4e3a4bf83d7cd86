package model

import (
	"fmt"
	"testing"
)

func TestTheOwnerIsToldOfTheFailureThatThePolicyNamesOnceInACycle(t *testing.T) {
	for from, want := range map[string]string{
		`"none"`: "", "1": "00:01 failing 1, 01:01 failing 1, ", "2": "00:12 failing 2, 01:12 failing 2, ", "3": "",
	} {
		s, told := tell(t, `"policy":{"timeout":"5m","retries":["10m","10m"],"on_exhausted":"give_up","failing_from":`+from+`}`, "00:00 wake"), ""
		for _, step := range []string{"00:01 failure", "00:11 wake", "00:12 failure", "00:22 wake", "00:23 success", "01:00 run", "01:00 wake", "01:01 failure", "01:11 wake", "01:12 failure"} {
			s.then(step)
			for _, n := range s.decision.Notifications("m", clock(step[:5])) {
				told += fmt.Sprintf("%s %s %d, ", step[:5], n.Notice, n.AttemptNo)
			}
		}
		if told != want {
			t.Errorf("failing_from %s: told %q, want %q", from, told, want)
		}
	}
	s := tell(t, `"policy":{"timeout":"1h","retries":[],"on_exhausted":"give_up","failing_from":1}`, "00:00 wake | 00:01 failure")
	if told := s.decision.Notifications("m", clock("00:01")); len(told) != 1 || told[0].Notice != "disabled" {
		t.Errorf("want a final failure told as disabled alone, got %+v", told)
	}
}
