package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A cycle is saved when its last retry succeeds; the one that succeeds at once needed none.
func TestTheRetrySuccessRateIsTheShareOfCyclesThatARetrySaved(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	for _, uid := range []string{"well", "saved", "saved-late", "lost", "lost-too"} {
		s.put("uid: " + uid + "\npolicy: {timeout: 1h, retries: [0, 0], on_exhausted: give_up}\n")
	}
	for _, answers := range []map[string]string{
		{"well": "success", "saved": "failure", "saved-late": "failure", "lost": "failure", "lost-too": "failure"},
		{"saved": "success", "saved-late": "failure", "lost": "failure", "lost-too": "failure"},
		{"saved-late": "success", "lost": "failure", "lost-too": "failure"},
	} {
		s.dispatch("05:00:00")
		for uid, answer := range answers {
			s.answer("05:00:00", answer, uid)
		}
	}
	got, want := map[string]any{}, map[string]any{"total_retries": 7.0, "successful_retries": 2.0, "retried_cycles": 4.0, "retry_success_rate": 0.5}
	for name, value := range s.object("stats") {
		if _, asked := want[name]; asked {
			got[name] = value
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	expectContains(t, s.do("stats"), "retries", "7, 2 of 4 cycles that needed one were saved (50%)")
}
