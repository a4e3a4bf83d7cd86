package model

import "testing"

// How many retries there were, how many of them succeeded, and how many cycles needed one.
func TestRetriesAreCounted(t *testing.T) {
	const job = `"policy":{"timeout":"10m","retries":[0,0,0]}`
	for steps, want := range map[string][3]int{
		"00:00 wake | 00:01 success":                                                                                                    {0, 0, 0},
		"00:00 wake | 00:01 failure":                                                                                                    {0, 0, 0},
		"00:00 wake | 00:01 failure | 00:01 wake | 00:02 success":                                                                       {1, 1, 1},
		"00:00 wake | 00:01 failure | 00:01 wake | 00:02 failure | 00:02 wake | 00:03 success":                                          {2, 1, 1},
		"00:00 wake | 00:01 failure | 00:01 wake | 00:11 timeout | 00:11 wake | 00:12 failure | 00:12 wake":                             {2, 0, 1},
		"00:00 wake | 00:01 failure | 00:01 wake | 00:02 interrupted | 00:02 wake | 00:03 success":                                      {1, 1, 1},
		"00:00 wake | 00:01 failure | 00:01 wake | 00:11 withdraw | 00:11 wake":                                                         {0, 0, 0},
		"00:00 wake | 00:01 failure | 00:01 wake | 00:02 success | 01:00 run | 01:00 wake | 01:01 failure | 01:01 wake | 01:02 success": {2, 2, 2},
	} {
		m := tell(t, job, steps).m
		if got := [3]int{m.TotalRetries, m.SuccessfulRetries, m.RetriedCycles}; got != want {
			t.Errorf("%s: retries, successful ones, cycles: %v, want %v", steps, got, want)
		}
	}
}

func TestThreeRetriesAreFourRuns(t *testing.T) {
	const job = `"policy":{"maxRetries":3,"jitterEnabled":false}`
	runStories(t, []storyTest{
		{job, "00:00 wake | 00:01 failure", "#1, next 00:02: retry 1/3 +1m, none planned"},
		{job, "00:00 wake | 00:01 failure | 00:02 wake | 00:03 failure", "#2, next 00:05: retry 2/3 +2m, none planned"},
		{job, "00:00 wake | 00:01 failure | 00:02 wake | 00:03 failure | 00:05 wake | 00:06 failure", "#3, next 00:10: retry 3/3 +4m, none planned"},
		{job, "00:00 wake | 00:01 failure | 00:02 wake | 00:03 failure | 00:05 wake | 00:06 failure | 00:10 wake | 00:11 failure",
			"#4 disabled (Cannot refresh after 4 attempts): final: exhausted after 4"},
		{job, `00:00 wake | 00:01 failure "error_type":"NotFoundError"`, "#1 disabled (Cannot refresh after 1 attempt): final: never retry NotFoundError"},
	})
}

// Unlimited retries: the count is never said to end; the schedule goes before them all the same.
func TestUnlimitedRetriesGoOnForEver(t *testing.T) {
	s := tell(t, `"policy":{"retries":"1m"}`, "")
	now := monday
	for k := 1; k <= 2000; k++ {
		s.do(now, "wake", "")
		s.do(now, "failure", "")
		if s.m.Disabled || s.m.AttemptNo != k {
			t.Fatalf("after %d failures: %s", k, s)
		}
		now = s.m.RefreshAt
	}
	if want := "retry 2000 +1m, none planned"; s.m.Why != want {
		t.Errorf("why %q, want %q", s.m.Why, want)
	}
	tell(t, atSixAnd16+`"policy":{"retries":"1h"}`, "15:30 run | 15:30 wake | 15:31 failure").
		expect("#1, next 16:00: retry 1 +1h, planned first: after")
}
