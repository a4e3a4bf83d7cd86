package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
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
	parts := []string{"delay " + document.FormatDuration(attempt.Delay)}
	if attempt.Jitter != 0 {
		parts[0] += ", jitter " + signed(attempt.Jitter)
	}
	retry, planned := attempt.RetryAt, attempt.PlannedAt
	switch attempt.Overlap {
	case policy.NonePlanned:
		parts = append(parts, s.clock(retry)+", with none planned")
	case policy.Same:
		parts = append(parts, s.clock(retry)+" is planned itself ("+string(attempt.Overlap)+")")
	default:
		parts = append(parts, s.position(attempt.Overlap, retry, planned))
	}
	switch at := attempt.RefreshAt; {
	case at.Equal(retry) || at.Equal(planned):
		parts = append(parts, s.m.Policy.AlignmentName()+": "+refresh)
	default: // something else overruled both
		parts = append(parts, refresh+": "+attempt.Why)
	}
	return strings.Join(parts, "; ")
}

// position says how a retry lies to the planned refresh. Which timeout was in force then nobody has written down; the one of
// now is left out where it contradicts what was found then.
func (s *Explanation) position(overlap policy.Overlap, retry, planned time.Time) string {
	timeout := s.m.Policy.Timeout
	end := retry.Add(timeout)
	side := map[bool]string{true: "after", false: "before"}
	text := s.clock(retry)
	switch {
	case overlap == policy.OverlapsEnd || overlap == policy.After:
		return fmt.Sprintf("%s is after planned %s (%s)", text, s.clock(planned), overlap)
	case timeout == 0 || end.After(planned) != (overlap == policy.OverlapsStart):
		return fmt.Sprintf("%s, planned %s (%s)", text, s.clock(planned), overlap)
	case end.Equal(planned):
		return fmt.Sprintf("%s would end %s, exactly when planned (%s)", text, s.clock(end), overlap)
	default:
		return fmt.Sprintf("%s would end %s, %s planned %s (%s)", text, s.clock(end), side[end.After(planned)], s.clock(planned), overlap)
	}
}

// InLine tells how many are taken before a model, and how fast they go.
func InLine(place store.QueuePosition) string {
	text := words.ShortOrdinal(place.No) + " in line"
	if wait := place.Wait(); wait > 0 {
		text += ", about " + document.FormatDurationInWords(max(wait.Round(time.Second), time.Second))
	}
	return text
}

// signed is a duration with its sign and two digits for each lower unit: +1m04s.
func signed(d time.Duration) string {
	sign := "+"
	if d < 0 {
		sign, d = "-", -d
	}
	d = d.Round(time.Second)
	hours, minutes, seconds := d/time.Hour, d/time.Minute%60, d/time.Second%60
	switch {
	case hours > 0:
		return fmt.Sprintf("%s%dh%02dm%02ds", sign, hours, minutes, seconds)
	case minutes > 0:
		return fmt.Sprintf("%s%dm%02ds", sign, minutes, seconds)
	default:
		return fmt.Sprintf("%s%ds", sign, seconds)
	}
}
