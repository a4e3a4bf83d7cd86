package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Trace lists the rule, the policy, and the numbers behind the end of each attempt, the oldest first.
func (s *Explanation) Trace() []string {
	inForce, _ := json.Marshal(s.m.Policy) // it was read from JSON
	lines := []string{"rule: " + cmp.Or(s.m.Rule, s.m.Policy.Rule, "none"), "policy " + s.m.PolicyKey() + ": " + string(inForce)}
	for _, a := range slices.Backward(s.Attempts) {
		lines = append(lines, s.traced(&a))
	}
	return append(lines, "refresh_why: "+s.m.Why)
}

func (s *Explanation) traced(a *model.Attempt) string {
	clock := func(at time.Time) string {
		if at.IsZero() {
			return "none"
		}
		return s.clock(at)
	}
	text := fmt.Sprintf("%s of attempt %d at %s (%s)", a.Outcome, a.AttemptNo, clock(a.EndedAt), cmp.Or(a.Reason, a.ErrorType, "no reason"))
	if a.Overlap != "" {
		text += fmt.Sprintf("; delay %s, jitter %s; retry %s, planned %s: %s; %s", document.FormatDuration(a.Delay),
			document.FormatDuration(a.Jitter.Round(time.Second)), clock(a.RetryAt), clock(a.PlannedAt), a.Overlap, s.m.Policy.AlignmentName())
	}
	if len(a.Ignored) > 0 {
		text += "; ignored " + strings.Join(a.Ignored, ", ")
	}
	return text + "; next " + clock(a.RefreshAt) + ": " + a.Why
}
