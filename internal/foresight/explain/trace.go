package explain

import (
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// Trace is the model up to now with the rules that decided, in lines.
func (s *Explanation) Trace() []string {
	rule, p := s.m.Rule, &s.m.Policy
	if rule == "" {
		rule = p.Rule + " of its policy"
	}
	identity := "rule " + rule
	if s.m.OneShot() {
		identity = "no rule: refreshed when it is saved or run"
	}
	name, timeout, retries := "policy "+s.m.PolicyKey(), "no deadline", "unlimited retries"
	if policy.IsInline(s.m.PolicyName) {
		name = "a policy of its own"
	}
	if p.Timeout > 0 {
		timeout = "timeout " + document.FormatDuration(p.Timeout)
	}
	if count := p.MaxRetries(); count != policy.Unlimited {
		retries = words.Count(count, "retry", "retries")
	}
	used := fmt.Sprintf("%s: %s, %s, %s, then %s", name, timeout, retries, p.AlignmentName(), p.OnExhausted)
	if p.GiveUpAfter > 0 {
		used += ", gives up after " + document.FormatDuration(p.GiveUpAfter) + " without a success"
	}
	lines := []string{identity, used}
	for _, attempt := range slices.Backward(s.Attempts) {
		lines = append(lines, s.traced(&attempt))
	}
	return append(lines, "refresh_why: "+s.m.Why)
}

func (s *Explanation) traced(attempt *model.Attempt) string {
	text := fmt.Sprintf("%s of attempt %d", attempt.Outcome, attempt.AttemptNo)
	if attempt.Outcome == model.EventFailure || attempt.Outcome == model.EventTimeout {
		text = fmt.Sprintf("failure %d", attempt.AttemptNo)
		if count := s.m.Policy.MaxRetries(); count != policy.Unlimited && attempt.AttemptNo <= count+1 {
			text += fmt.Sprintf(" of %d", count+1)
		}
	}
	if attempt.Reason != "" {
		text += " (" + attempt.Reason + ")"
	}
	text += " at " + s.clock(attempt.EndedAt)
	refresh := "nothing"
	if at := attempt.RefreshAt; !at.IsZero() {
		refresh = s.clock(at)
	}
	if attempt.Overlap == "" {
		return text + "; next: " + refresh + " (" + attempt.Why + ")"
	}
	return text + "; " + s.timing(attempt, refresh)
}

// timing tells how the time of the retry came about, in the order in which it was decided.
func (s *Explanation) timing(attempt *model.Attempt, refresh string) string {
	text := "delay " + document.FormatDuration(attempt.Delay)
	if attempt.Jitter != 0 {
		text += ", jitter " + document.FormatDuration(attempt.Jitter.Round(time.Second))
	}
	text += "; " + s.clock(attempt.RetryAt)
	if planned := attempt.PlannedAt; attempt.Overlap == policy.NonePlanned {
		text += ", with none planned"
	} else {
		text += ", planned " + s.clock(planned) + " (" + string(attempt.Overlap) + ")"
	}
	if at := attempt.RefreshAt; at.Equal(attempt.RetryAt) || at.Equal(attempt.PlannedAt) {
		return text + "; " + s.m.Policy.AlignmentName() + ": " + refresh
	}
	return text + "; " + refresh + ": " + attempt.Why // something else overruled both
}
