package explain

import (
	"strings"
	"testing"
)

func TestAServerThatAsksForMoreThanItsPolicyAllowsIsTold(t *testing.T) {
	row := situation{
		definition: banner, steps: `06:00 start | 06:05 failure "reason":"HTTP 429","retry_after":31536000,"retry_after_by":"server"`, now: "06:06",
	}
	got := row.told(t, row.explanation(t))
	const want = "Next retry at 06:05 tomorrow (1 of 3). Its server asked for 365d; the policy allows until then."
	if !strings.HasSuffix(got, want) {
		t.Errorf("got %s, want at its end %s", got, want)
	}
}
