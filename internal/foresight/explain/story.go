package explain

import (
	"cmp"
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

// Story is the model up to now, in lines.
func (s *Explanation) Story() []string {
	rule, p := s.m.Rule, &s.m.Policy
	if rule == "" {
		rule = p.Rule + " of its policy"
	}
	identity := s.m.UID + ": refreshed by the rule " + rule + "; all times are in " + s.zone.String()
	if s.m.OneShot() {
		identity = s.m.UID + ": refreshed when it is saved or run; all times are in " + s.zone.String()
	} else if s.m.Phase > 0 {
		identity += "; each planned refresh " + document.FormatDuration(s.m.Phase) + " later, as level has chosen"
	}
	name, timeout, retries := cmp.Or(s.m.PolicyName, store.DefaultPolicyName), "no deadline", "unlimited retries"
	if p.Timeout > 0 {
		timeout = "timeout " + document.FormatDuration(p.Timeout)
	}
	if count := p.MaxRetries(); count != policy.Unlimited {
		retries = words.Count(count, "retry", "retries")
	}
	used := fmt.Sprintf("policy %s: %s, %s, %s, then %s", name, timeout, retries, p.AlignmentName(), p.OnExhausted)
	if p.GiveUpAfter > 0 {
		used += ", gives up after " + document.FormatDuration(p.GiveUpAfter) + " without a success"
	}
	lines := []string{identity, used}
	if s.m.Fault != "" {
		lines = append(lines, "fault: "+s.m.Fault)
	}
	for _, attempt := range slices.Backward(s.Attempts) {
		lines = append(lines, s.past(&attempt))
	}
	if s.Rejection != nil {
		lines = append(lines, s.Rejection.Text(s.when))
	}
	return append(lines, s.present()...)
}

func (s *Explanation) past(attempt *model.Attempt) string {
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
	if len(attempt.Ignored) > 0 {
		text += "; ignored of what the worker said, as it cannot be used: " + strings.Join(attempt.Ignored, ", ")
	}
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

func (s *Explanation) present() []string {
	lines := []string{"now, " + s.clock(s.Now) + ": " + s.StatusText()}
	if s.m.Running() {
		lines = append(lines, fmt.Sprintf("attempt %d runs since %s, deadline %s", s.m.AttemptNo, s.when(s.m.StartedAt), s.when(s.m.DeadlineAt)))
		if s.place.No > 0 {
			lines = append(lines, InLine(s.place))
		}
	} else if s.m.Waiting() {
		verb := "refresh at "
		if s.m.Parked() {
			verb = "parked since " + s.when(s.m.ParkedSince) + "; refresh was due at "
		}
		lines = append(lines, verb+s.when(s.m.RefreshAt)+", because: "+s.m.Why)
		if s.m.Due(s.Now) && s.place.No > 0 {
			lines = append(lines, InLine(s.place))
		}
	}
	lines = append(lines, s.stops()...)
	if s.m.QueueCircuit.Open && !s.m.Disabled {
		lines = append(lines, "the circuit of the queue is open: a final failure is held back, and retries are rarer")
	}
	if text := FreshnessText(s.m, s.when); text != "" {
		lines = append(lines, text+": its policy promises a success within "+document.FormatDuration(s.m.Policy.FreshWithin))
	}
	if s.m.FingerprintID != "" {
		others := words.Count(int(max(0, s.alike.Models-1)), "other model fails", "other models fail")
		alike := cmp.Or(s.alike.Text, s.m.FingerprintID)
		lines = append(lines, fmt.Sprintf("fails by %q; %s by it: refreshd failures show %s", alike, others, s.m.FingerprintID))
	}
	if end := s.m.GivesUpAt(); !end.IsZero() && !s.m.Disabled {
		lines = append(lines, "gives up at "+s.when(end)+" if it does not succeed before")
	}
	return lines
}

// InLine tells how many are taken before a model, and how fast they go.
func InLine(place store.QueuePosition) string {
	text := words.ShortOrdinal(place.No) + " in line"
	if place.Rate > 0 {
		wait := place.Wait()
		about := fmt.Sprintf("%.1fs", wait.Seconds())
		if wait >= 10*time.Second {
			about = document.FormatDuration(wait.Round(time.Second))
		}
		text += fmt.Sprintf(", %.1f a second: about %s", place.Rate, about)
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
