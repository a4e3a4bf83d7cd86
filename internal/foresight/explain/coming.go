package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// tellNext tells what happens to the model next, when, and why then.
func (s *Explanation) tellNext() []string {
	m, f := s.m, &s.Forecast
	now := model.Branch{RefreshAt: m.RefreshAt, Why: m.Why, AttemptNo: m.AttemptNo, Trigger: m.Trigger, Ended: ended(m, s.Attempts)}
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
	case s.skips():
		return s.planned(model.Branch{RefreshAt: f.StartAt})
	case f.StartAt.After(s.Now):
		return []string{"Next retry " + s.at(f.StartAt) + ".", "Its retry window opens then."}
	default:
		return s.starting()
	}
}

// ends tells when a failing model is disabled if nothing changes; nil: it is not, or that is what comes next.
func (s *Explanation) ends() []string {
	end := s.m.GivesUpAt()
	if end.IsZero() || s.m.Disabled || s.Forecast.GiveUp.Possible() {
		return nil
	}
	return []string{"It will be disabled at " + s.clock(end) + " unless it succeeds before."}
}

// coming tells when the next attempt starts, and why then.
func (s *Explanation) coming(b model.Branch) []string {
	at, a := s.at(b.RefreshAt), b.Ended
	switch {
	case b.Disabled:
		return append([]string{"It is disabled."}, quote("Its owner reads", b.Reason)...)
	case b.RefreshAt.IsZero():
		return []string{"Nothing more is planned."}
	case b.Trigger == model.TriggerGiveUp:
		return []string{"It will be disabled " + at + ", after " + document.FormatDurationInWords(s.m.Policy.GiveUpAfter) + " without a success.", "The next start is later."}
	case s.m.Reserved != "" && a == nil:
		return []string{"It starts " + at + ", as this limit allows."}
	case a != nil && a.Exhausted:
		return append([]string{"No retry is left."}, s.planned(b)...)
	case a != nil && a.Outcome == model.EventPostponed:
		return []string{"It starts again " + at + ", as its worker asked.", "That does not count as a failure."}
	case a != nil && a.Outcome == model.EventInterrupted:
		return []string{"It starts again " + at + ".", "That does not count as a failure."}
	case a != nil && a.Overlap != "" && b.RefreshAt.Equal(a.RetryAt) && !s.yields(a):
		return append([]string{s.retry(b)}, s.goesFirst(a)...)
	case b.Trigger == model.TriggerRetry:
		return []string{s.retry(b), words.Sentence(b.Why)}
	case a != nil && a.Overlap != "" && b.RefreshAt.Equal(a.PlannedAt) && !b.RefreshAt.Equal(s.m.NotBefore):
		return append(s.planned(b), s.plannedFirst(a)...)
	default:
		return s.planned(b)
	}
}

// retry tells when a retry starts, and which.
func (s *Explanation) retry(b model.Branch) string {
	text := "Next retry " + s.at(b.RefreshAt)
	if b.AttemptNo == 0 { // the circuit of the queue lets it follow the last one
		return text + "."
	}
	number := strings.TrimPrefix(retryOf(s.m, b.AttemptNo), "retry ")
	if b.Ended != nil && b.Ended.Jitter != 0 {
		number += ", partly random delay"
	}
	return text + " (" + number + ")."
}

// planned tells when a planned refresh starts, and what moved it.
func (s *Explanation) planned(b model.Branch) []string {
	text, from := "Next refresh "+s.at(b.RefreshAt), s.Now
	if b.Ended != nil {
		from = b.Ended.EndedAt
	}
	switch planned := s.m.Planned(from); {
	case b.RefreshAt.Equal(s.m.NotBefore) && planned.Before(b.RefreshAt):
		return []string{text + ".", "Its worker asked to wait until then: the refresh " + s.day(planned) + " moves."}
	case !s.isPlanned(b.RefreshAt):
		return []string{text + " (" + b.Why + ")."}
	default:
		return append([]string{text + ", as planned."}, s.skippedHour(b.RefreshAt)...)
	}
}

func (s *Explanation) isPlanned(at time.Time) bool {
	return s.m.Planned(at.Add(-time.Millisecond)).Equal(at)
}

// skippedHour tells of a planned refresh whose time of day is skipped by the clocks of the zone; nil: it is not.
func (s *Explanation) skippedHour(at time.Time) []string {
	set, _ := at.In(s.zone).ZoneBounds()
	_, before := set.Add(-time.Second).In(s.zone).Zone()
	_, after := at.In(s.zone).Zone()
	usual := s.m.Planned(at).In(s.zone).Format("15:04")
	skipped := time.Duration(after-before) * time.Second
	if set.IsZero() || at.Sub(set) >= skipped || at.UTC().Add(time.Duration(before)*time.Second).Format("15:04") != usual {
		return nil
	}
	return []string{"On that day " + usual + " does not exist."}
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
		return append(told, "Its policy's formula puts this retry before "+planned+".")
	case a.Overlap == policy.Before && m.Policy.Timeout == 0, a.Overlap == policy.OverlapsStart && m.Policy.Alignment == policy.WhicheverFirst:
		return append(told, "It starts before "+planned+", so it goes first.")
	case a.Overlap == policy.Before:
		return append(told, "It ends before "+planned+", so it goes first.")
	case a.Overlap == policy.OverlapsStart:
		return append(told, "Its policy prefers this retry to "+planned+".")
	default:
		return append(told, "Its policy prefers this retry, and skips "+planned+".")
	}
}

// plannedFirst tells why the planned refresh starts in place of a retry.
func (s *Explanation) plannedFirst(a *model.Attempt) (told []string) {
	retry, planned := s.day(a.RetryAt), s.clock(a.PlannedAt)
	if strings.Contains(planned, " ") {
		planned = "that" // the sentence before names the day too
	}
	switch {
	case s.m.Policy.AlignBy != nil:
		told = append(told, "Its policy's formula prefers it to a retry "+retry+".")
	case a.Overlap == policy.Before, s.m.Policy.Alignment == policy.PlannedOnly:
		told = append(told, "Its policy waits for it instead of a retry "+retry+".")
	case s.m.Policy.Alignment == policy.WhicheverFirst:
		told = append(told, "A retry "+retry+" would not start before "+planned+".")
	default:
		told = append(told, "A retry "+retry+" would not end before "+planned+".")
	}
	if s.m.Policy.Alignment == policy.BetweenPlanned {
		told = append(told, "After "+planned+", retries count from 1 again.")
	}
	return told
}

// retryOf names the retry that follows so many failures.
func retryOf(m *model.Model, failures int) string {
	switch count := m.Policy.MaxRetries(); {
	case count == policy.Unlimited:
		return fmt.Sprintf("retry %d, without a limit", failures)
	case failures <= count:
		return fmt.Sprintf("retry %d of %d", failures, count)
	default:
		return fmt.Sprintf("retry %d", failures)
	}
}

// soon says when a dispatcher acts.
func (s *Explanation) soon() string {
	if missing := s.Missing(); missing != nil && missing.Role == model.RoleDispatcher {
		return "as soon as a dispatcher runs"
	}
	return "in a moment"
}

// starting tells how soon a model starts that is due.
func (s *Explanation) starting() (told []string) {
	switch missing := s.Missing(); {
	case missing != nil && missing.Role == model.RoleWorker:
		told = append(told, "It starts when workers take models again.")
	case missing == nil && s.place.No > 1:
		told = append(told, InLine(s.place)+".")
	case missing == nil && s.Liveness.LacksRoom(&s.m.State):
		told = append(told, "It starts when workers have taken others.")
	default:
		told = append(told, "It starts "+s.soon()+".")
	}
	if s.m.Trigger == model.TriggerRun {
		told = append(told, "It goes before all others.")
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
	m, lost, by := s.m, &s.Forecast.TimedOut, "before "+s.clock(s.m.DeadlineAt)
	missing, left := s.Missing(), s.m.DeadlineAt.Sub(s.Now)
	begins, act := m.Policy.QueueTimeout > 0 && m.ProcessingAt.IsZero(), "Its worker must answer "
	if begins {
		act = "Its worker must begin "
	}
	switch again := begins && lost.Ended != nil && lost.Ended.Outcome == model.EventQueueTimeout; {
	case s.Status == model.StatusQueued && left <= 0:
		return []string{"No worker took it " + by + ": it goes to the end of the line."}
	case s.Status == model.StatusQueued:
		return []string{s.taken(), "If no worker takes it " + by + ", it goes to the end of the line."}
	case m.Again:
		return []string{"It starts again as soon as this attempt ends."}
	case m.Outdated:
		return s.coming(model.Branch{RefreshAt: m.Planned(s.Now)})
	case again && left <= 0:
		return []string{"It has not begun in time: it goes back in line " + s.soon() + "."}
	case again:
		return []string{"If it has not begun " + by + ", it goes back in line."}
	case left <= 0:
		return []string{"Its deadline has passed: it counts as failed " + s.soon() + "."}
	case m.Policy.Timeout == 0 && left > forever:
		return []string{"It has no deadline."}
	case missing != nil && missing.Role == model.RolePoller:
		act = "Its answer must be applied "
	case left < time.Minute:
		by = strings.Replace(s.at(m.DeadlineAt), "in ", "within ", 1)
	}
	if told = []string{act + by + ", or this attempt fails."}; m.Policy.Timeout == 0 && !lost.Disabled {
		told = append(told, "The planned refresh starts then.")
	}
	return told
}

// forever is longer than anybody waits for a deadline.
const forever = 365 * 24 * time.Hour

// taken tells when a worker takes the attempt.
func (s *Explanation) taken() string {
	switch missing := s.Missing(); {
	case missing != nil && missing.Role == model.RoleWorker:
		return "It starts when workers take models again."
	case s.place.No > 1:
		return InLine(s.place) + "."
	default:
		return "The next free worker takes it."
	}
}

// InLine tells how many are taken before a model, and when it is.
func InLine(place store.QueuePosition) string {
	text := words.Count(place.No-1, "is", "are") + " before it"
	if wait, unit := place.Wait(), time.Second; wait > 0 {
		if wait >= time.Minute {
			unit = time.Minute
		}
		text += "; it starts in about " + document.FormatDurationInWords(max(wait.Round(unit), unit))
	}
	return text
}
