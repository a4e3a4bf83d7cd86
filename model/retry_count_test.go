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
