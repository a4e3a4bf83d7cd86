package model

import (
	"testing"

	"github.com/refreshd/refreshd/model/policy"
)

// A model fails for good only when nothing more is tried by itself; then each further run by hand may end so again.
func TestAModelMayFailForGoodOnceForEachRunByHand(t *testing.T) {
	s := tell(t, `"policy":{"timeout":"1m","retries":[0],"on_exhausted":"give_up"}`, "")
	for _, hour := range []string{"00", "01", "02"} {
		s.then(hour + ":00 run | " + hour + ":00 start | " + hour + ":00:10 failure")
		if s.decision.Final || s.m.Disabled || s.decision.Notice != policy.NoticeNone {
			t.Fatalf("failed for good although a retry is left: %s", s)
		}
		s.then(hour + ":00:10 start | " + hour + ":00:20 failure")
		s.expect("#2 disabled (Cannot refresh after 2 attempts): final: exhausted after 2")
		if d := s.decision; !d.Final || !d.Exhausted || d.Notice != policy.NoticeDisabled || !s.m.FinalFailureAt.Equal(clock(hour+":00:20")) {
			t.Errorf("%s: found %+v", hour, d)
		}
	}
	s.then("03:00 run | 03:00 start | 03:00:10 success | 03:00:10 failure")
	if s.outcome != Duplicate || s.m.Disabled {
		t.Errorf("completed is completed: outcome %q, %s", s.outcome, s)
	}
}
