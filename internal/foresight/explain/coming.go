package explain

import (
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// tellNext tells what happens to the model next, when, and why then.
func (s *Explanation) tellNext() []string {
	m, f := s.m, &s.Forecast
	now := model.Branch{At: s.Now, RefreshAt: m.RefreshAt, Why: m.Why, AttemptNo: m.AttemptNo, Trigger: m.Trigger, Ended: ended(m, s.Attempts)}
	switch gate, until := s.blocked(); {
	case s.Record.Broken:
		return []string{"Nothing happens until its key is repaired: refreshd doctor tells how."}
	case m.StoppedBy() == model.StoppedByHand:
		return []string{"Nothing happens until somebody enables it."}
	case m.Disabled:
		return []string{"Nothing happens until somebody enables, runs or changes it."}
	case m.Running():
		return s.running()
	case m.RefreshAt.IsZero():
		return []string{"Nothing happens until somebody saves or runs it."}
	case gate != "":
		return s.released(gate, until)
	case f.GiveUp.Possible():
		return s.coming(model.Branch{RefreshAt: f.GiveUp.At, Trigger: model.TriggerGiveUp})
	case !m.Due(s.Now):
		return s.coming(now)
	case f.StartAt.After(s.Now):
		return []string{"Next refresh " + s.at(f.StartAt) + ".", "The refresh of " + s.clock(m.RefreshAt) + " is too late and is left out."}
	default:
		return s.starting(now)
	}
}

// coming tells when the next attempt starts, and why then.
func (s *Explanation) coming(b model.Branch) []string {
	at, a := s.at(b.RefreshAt), b.Ended
	switch {
	case b.Disabled:
		return []string{"It is disabled, and its owner reads: " + words.Sentence(b.Reason)}
	case b.RefreshAt.IsZero():
		return []string{"Nothing more is planned."}
	case b.Trigger == model.TriggerGiveUp:
		return []string{"It is disabled " + at + ", after " + document.FormatDurationInWords(s.m.Policy.GiveUpAfter) + " without a success."}
	case s.m.Reserved != "" && a == nil:
		return []string{"It starts " + at + ", as limit " + s.m.Reserved + " allows."}
	case a != nil && a.Exhausted:
		return []string{"No retry is left.", "Next refresh " + at + ", as planned."}
	case a != nil && a.Outcome == model.EventPostponed:
		return []string{"Next try " + at + ", as its worker asked.", "That does not count as a failure."}
	case a != nil && a.Outcome == model.EventInterrupted:
		return []string{"It starts again " + at + ".", "That does not count as a failure."}
	case a != nil && a.Overlap != "" && b.RefreshAt.Equal(a.RetryAt) && !s.yields(a):
		return append([]string{"Next try " + s.at(b.RefreshAt) + " (" + retryOf(s.m, b.AttemptNo) + ")."}, s.goesFirst(a)...)
	case a != nil && b.RefreshAt.Equal(s.m.NotBefore) && b.RefreshAt.Equal(a.PlannedAt):
		return []string{"Next refresh " + at + ".", "Its worker asked to wait longer than the schedule."}
	case a != nil && a.Overlap != "" && b.RefreshAt.Equal(a.PlannedAt):
		return append([]string{"Next refresh " + at + ", as planned."}, s.plannedFirst(a)...)
	case b.Trigger == model.TriggerRetry:
		return []string{"Next try " + at + " (" + retryOf(s.m, b.AttemptNo) + ").", words.Sentence(b.Why)}
	default:
		return []string{"Next refresh " + at + " (" + b.Why + ")."}
	}
}

// yields reports whether the planned refresh that comes at the time of a retry takes its place.
func (s *Explanation) yields(a *model.Attempt) bool {
	return a.Overlap == policy.Same && s.m.Policy.Alignment != policy.UntilSuccess
}

// goesFirst tells why a retry starts at its own time.
func (s *Explanation) goesFirst(a *model.Attempt) (told []string) {
	m, planned := s.m, "the planned refresh "+s.day(a.PlannedAt)
	switch {
	case a.RetryAt.Equal(m.NotBefore):
		told = append(told, "Its worker asked to wait until then.")
	case !a.RetryAt.Equal(a.EndedAt.Add(a.Delay + a.Jitter)):
		told = append(told, "Its retry window opens then.")
	}
	switch {
	case a.Overlap == policy.NonePlanned && !m.OneShot():
		return append(told, "Nothing is planned before.")
	case a.Overlap == policy.NonePlanned:
		return told
	case m.Policy.AlignBy != nil:
		return append(told, "Its policy lets it go before "+planned+".")
	case a.Overlap == policy.Before && m.Policy.Timeout == 0, a.Overlap == policy.OverlapsStart && m.Policy.Alignment == policy.WhicheverFirst:
		return append(told, "It starts before "+planned+", so it goes first.")
	case a.Overlap == policy.Before:
		return append(told, "It ends before "+planned+", so it goes first.")
	default:
		return append(told, "Its policy retries until success, and skips "+planned+".")
	}
}

// plannedFirst tells why the planned refresh starts in place of a retry.
func (s *Explanation) plannedFirst(a *model.Attempt) (told []string) {
	retry := s.clock(a.RetryAt)
	switch {
	case s.m.Policy.AlignBy != nil:
		told = append(told, "Its policy prefers it to a retry at "+retry+".")
	case a.Overlap == policy.Before, s.m.Policy.Alignment == policy.PlannedOnly:
		told = append(told, "Its policy waits for that instead of retrying at "+retry+".")
	case s.m.Policy.Alignment == policy.WhicheverFirst:
		told = append(told, "A retry at "+retry+" would not start earlier, so there is none.")
	default:
		told = append(told, "A retry at "+retry+" would not end before, so there is none.")
	}
	if s.m.Policy.Alignment == policy.BetweenPlanned {
		told = append(told, "The retries begin anew.")
	}
	return told
}

// retryOf names the retry that follows so many failures.
func retryOf(m *model.Model, failures int) string {
	if count := m.Policy.MaxRetries(); count != policy.Unlimited && failures <= count {
		return fmt.Sprintf("retry %d of %d", failures, count)
	}
	return fmt.Sprintf("retry %d", failures)
}

// starting tells how soon a model starts that is due.
func (s *Explanation) starting(b model.Branch) (told []string) {
	why := b.Why
	if b.Trigger == model.TriggerRetry {
		why = retryOf(s.m, b.AttemptNo)
	}
	begins, missing := "It starts in a moment", s.Missing()
	switch {
	case missing != nil && missing.Role == model.RoleDispatcher:
		begins = "It starts as soon as a dispatcher runs"
	case missing != nil && missing.Role == model.RoleWorker, s.Liveness != nil && s.Liveness.LacksRoom(&s.m.State):
		begins = "It starts as soon as workers take others"
	}
	told = append(told, begins+" ("+why+").")
	if s.m.Trigger == model.TriggerRun {
		told = append(told, "It goes before all others.")
	}
	if s.place.No > 1 {
		told = append(told, words.Sentence("It is "+InLine(s.place)))
	}
	return told
}

// day is an instant within a sentence that has no room for both time and day.
func (s *Explanation) day(at time.Time) string {
	switch away := at.Sub(s.Now).Abs(); {
	case away < 24*time.Hour:
		return "at " + s.clock(at)
	case at.In(s.zone).Year() == s.Now.In(s.zone).Year():
		return "on " + at.In(s.zone).Format("Mon 2 Jan")
	default:
		return "on " + at.In(s.zone).Format("2 Jan 2006")
	}
}

// running tells what the running attempt waits for, and until when.
func (s *Explanation) running() (told []string) {
	m, end := s.m, s.m.DeadlineAt
	switch missing := s.Missing(); {
	case s.Status == model.StatusQueued && missing != nil && missing.Role == model.RoleWorker:
		told = append(told, "It starts as soon as a worker takes it.")
	case s.Status == model.StatusQueued && s.place.No > 1:
		told = append(told, words.Sentence("It is "+InLine(s.place)))
	case s.Status == model.StatusQueued:
		told = append(told, "The next worker that is free takes it.")
	}
	if missing := s.Missing(); missing != nil && missing.Role == model.RolePoller {
		told = append(told, "Its answer counts as soon as a poller runs.")
	}
	switch by := "before " + s.clock(end); {
	case !end.After(s.Now):
		told = append(told, "Its deadline has passed: a dispatcher ends it in a moment.")
	case s.Status == model.StatusQueued:
		told = append(told, "If none takes it "+by+", it gets in line again.")
	case m.Again:
		told = append(told, "It starts again as soon as this attempt ends.")
	case m.Outdated:
		told = append(told, "Its next refresh is planned "+s.at(m.Planned(s.Now))+".")
	case m.Policy.QueueTimeout > 0 && m.ProcessingAt.IsZero():
		told = append(told, "Its worker must begin "+by+", or it starts again.")
	case m.Policy.Timeout == 0 && end.Sub(s.Now) > 365*24*time.Hour:
		told = append(told, "It has no deadline.")
	case m.Policy.Timeout == 0:
		told = append(told, "It may run until "+s.clock(end)+".", "Then it starts anew.")
	case end.Sub(s.Now) < time.Minute:
		told = append(told, "Its worker must answer "+s.at(end)+", or it fails.")
	default:
		told = append(told, "Its worker must answer "+by+", or it fails.")
	}
	return told
}
