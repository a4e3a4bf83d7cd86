package explain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// nextText says what happens to the model next, when, and why then.
func (s *Explanation) nextText() string {
	m, f := s.m, &s.Forecast
	until := func(somebody string) string { return "Nothing happens until somebody " + somebody + "." }
	switch blocker, opens := s.blocked(); {
	case s.Record.Broken:
		return until("repairs its key: refreshd doctor shows how")
	case m.DisabledBy == model.StoppedByHand:
		return until("enables it")
	case m.Disabled:
		return until("enables, runs or changes it")
	case m.Running():
		return s.running()
	case m.RefreshAt.IsZero():
		return until("saves or runs it")
	case m.Held():
		return join(until("accepts or rejects it"), hint.Text(hint.JudgeSuspect, s.ui, m.UID))
	case blocker != "":
		return s.released(blocker, opens)
	case f.GiveUp.Possible():
		return s.coming(model.Branch{RefreshAt: f.GiveUp.At, Trigger: model.TriggerGiveUp})
	case !m.Due(s.Now):
		return s.coming(model.Branch{RefreshAt: m.RefreshAt, Why: m.Why, AttemptNo: m.AttemptNo, Trigger: m.Trigger, Ended: ended(m, s.Attempts)})
	case f.StartAt.After(s.Now):
		return s.coming(model.Branch{RefreshAt: f.StartAt, Why: "its retry window opens then", AttemptNo: m.AttemptNo, Trigger: m.StartOrSkip(s.Now, "").Next.Trigger})
	default:
		return s.starting()
	}
}

// GivesUpAt is when a failing model is disabled unless it succeeds before; zero: never, or it is not yet known when.
func (s *Explanation) GivesUpAt() time.Time {
	end, f := s.m.GivesUpAt(), &s.Forecast
	delayed := !s.m.Running() && (f.StartAt.IsZero() || f.StartAt.After(s.m.RefreshAt) && f.StartAt.After(s.Now)) ||
		s.m.Due(s.Now) && s.m.StartOrSkip(s.Now, "").Event == model.EventSkipped
	switch {
	case f.GiveUp.Possible() && s.WaitsFor == "":
		return f.GiveUp.At
	case s.m.Disabled || s.m.QueueCircuit.Open || delayed || !end.After(cmp.Or(s.m.DeadlineAt, f.StartAt)):
		return time.Time{}
	default:
		return end
	}
}

// ends says when a failing model is disabled if nothing changes; empty: unknown, or nextText says it.
func (s *Explanation) ends() string {
	end := s.GivesUpAt()
	if end.IsZero() || s.Forecast.GiveUp.Possible() {
		return ""
	}
	return "It will be disabled at " + s.clock(end) + " unless it succeeds before."
}

// coming says what follows, and why then, for the model as it is and for each end of the next attempt. The first sentence can be used alone.
func (s *Explanation) coming(b model.Branch) string {
	at := s.at(b.RefreshAt)
	switch {
	case b.Disabled:
		return join("It is disabled.", quote("Its owner reads", b.Reason))
	case b.RefreshAt.IsZero():
		return "Nothing more is planned."
	case b.Trigger == model.TriggerGiveUp && s.m.QueueCircuit.Open:
		return "Next try " + at + ": the circuit of the queue holds giving up back."
	case b.Trigger == model.TriggerGiveUp:
		return "It will be disabled " + at + ", after " + document.FormatDurationInWords(s.m.Policy.GiveUpAfter) + " without a success. No attempt starts before that."
	case b.Trigger == model.TriggerDeferred, b.Ended != nil && b.Ended.Outcome == model.EventQueueTimeout:
		return "It starts again " + at + ". That does not count as a failure."
	case b.Trigger == model.TriggerRetry:
		text := "Next retry " + at
		if b.AttemptNo > 0 { // else the circuit of the queue lets it follow the last one
			text += " (" + retryOf(s.m, b.AttemptNo) + ")"
		}
		return join(text+".", s.retryBecause(b))
	default:
		return s.planned(b)
	}
}

func (s *Explanation) retryBecause(b model.Branch) string {
	a, moved := b.Ended, ""
	if a == nil || a.Overlap == "" || !b.RefreshAt.Equal(a.RetryAt) {
		return words.Sentence(b.Why)
	}
	switch {
	case a.RetryAt.Equal(s.m.NotBefore):
		moved = "Its worker asked to wait until then."
		if _, asked, more := strings.Cut(a.Why, model.WhyServerAsked); more {
			moved = "Its server asked for " + asked + "; the policy allows until then."
		}
	case rejected(a):
	case !a.RetryAt.Equal(a.EndedAt.Add(a.Delay + a.Jitter)):
		moved = "Its retry window opens then."
	case a.Jitter != 0:
		moved = "The delay is partly random."
	}
	switch planned := "the planned refresh " + s.day(a.PlannedAt); {
	case a.Overlap == policy.NonePlanned:
		return moved
	case a.Overlap == policy.Before && s.m.Policy.Timeout > 0:
		return join(moved, "It ends before "+planned+", so it goes first.")
	case a.Overlap == policy.Before, a.Overlap == policy.OverlapsStart && s.m.Policy.Alignment == policy.WhicheverFirst:
		return join(moved, "It starts before "+planned+", so it goes first.")
	case a.Overlap == policy.OverlapsStart:
		return join(moved, "If it still runs "+s.day(a.PlannedAt)+", it replaces the planned refresh: its policy says so.")
	default:
		return join(moved, "Its policy puts it first, so it replaces "+planned+".")
	}
}

// planned says when a planned refresh starts, and what moved it or a retry there.
func (s *Explanation) planned(b model.Branch) string {
	text, a := "Next refresh "+s.at(b.RefreshAt), cmp.Or(b.Ended, &model.Attempt{EndedAt: s.Now})
	planned, own := s.m.Planned(a.EndedAt), ZoneOf(s.m)
	switch {
	case b.RefreshAt.Equal(s.m.NotBefore) && planned.Before(b.RefreshAt):
		return text + ". Its worker asked to wait until then: the refresh " + s.day(planned) + " moves."
	case !s.isPlanned(b.RefreshAt):
		return join(text+".", words.Sentence(b.Why))
	case own.String() != s.zone.String():
		text += b.RefreshAt.In(own).Format(", planned for 15:04 in ") + own.String() + "."
	default:
		text += ", as planned."
	}
	retry := s.day(a.RetryAt)
	switch {
	case a.Exhausted:
		return text + " No retry is left."
	case a.Overlap == "" || !b.RefreshAt.Equal(a.PlannedAt):
		return text
	case a.Overlap == policy.Before, s.m.Policy.Alignment == policy.PlannedOnly:
		return text + " Its policy waits for it instead of a retry " + retry + "."
	case s.m.Policy.Timeout == 0, s.m.Policy.Alignment == policy.WhicheverFirst:
		return text + " A retry " + retry + " would not start before then."
	default:
		return text + " A retry " + retry + " would not end before then."
	}
}

func (s *Explanation) isPlanned(at time.Time) bool {
	return s.m.Planned(at.Add(-time.Millisecond)).Equal(at)
}

// retryOf numbers the retry after so many failures.
func retryOf(m *model.Model, failures int) string {
	if count := m.Policy.MaxRetries(); count != policy.Unlimited && failures <= count {
		return fmt.Sprintf("%d of %d", failures, count)
	}
	return strconv.Itoa(failures)
}

// day is a short time within a sentence: the clock or the date.
func (s *Explanation) day(at time.Time) string {
	clock, date, is := strings.Cut(s.clock(at), " on ")
	if is {
		return "on " + date
	}
	return "at " + clock
}

// starting says when a due or queued attempt starts.
func (s *Explanation) starting() string {
	switch {
	case s.misses(model.RoleWorker):
		return "It starts when workers take models again."
	case s.place.No > 1 && !s.misses(model.RoleDispatcher):
		return inLine(s.place) + "."
	case s.Status == model.StatusQueued:
		return "The next free worker takes it."
	case s.m.Why == model.WhyWithdrawn:
		return "It goes to the end of the line " + s.soon() + "."
	default:
		return "It starts " + s.soon() + "."
	}
}

func (s *Explanation) soon() string {
	if s.misses(model.RoleDispatcher) {
		return "as soon as a dispatcher runs"
	}
	return "in a moment"
}

// running says what the running attempt waits for, and until when.
func (s *Explanation) running() string {
	m, lost, left := s.m, s.Forecast.TimedOut.Ended, s.m.ExpiresAt().Sub(s.Now)
	queued, begins, then := s.Status == model.StatusQueued, m.Policy.QueueTimeout > 0 && m.ProcessingAt.IsZero(), "it counts as failed"
	if queued || begins && lost != nil && lost.Outcome == model.EventQueueTimeout {
		then = "it goes to the end of the line"
	}
	by := "before " + s.clock(m.ExpiresAt())
	if left < time.Minute {
		by = strings.Replace(s.at(m.ExpiresAt()), "in ", "within ", 1)
	}
	switch {
	case m.Again && !queued:
		return "It starts again as soon as this attempt ends."
	case m.Outdated && !queued:
		return s.coming(model.Branch{RefreshAt: m.Planned(s.Now)})
	case left <= 0 && m.ExpiresAt().Before(m.DeadlineAt):
		return "Its worker is silent: " + then + " " + s.soon() + "."
	case left <= 0:
		return "Its deadline has passed: " + then + " " + s.soon() + "."
	case queued:
		return s.starting() + " If no worker takes it " + by + ", " + then + "."
	case begins:
		return "If not begun " + by + ", " + then + "."
	case m.ExpiresAt().Before(m.DeadlineAt):
		return "If it stays silent, it fails " + s.at(m.ExpiresAt()) + "."
	case m.Policy.Timeout == 0 && left > forever:
		return "It has no deadline."
	case m.Policy.Timeout == 0 && s.Forecast.TimedOut.Disabled:
		return "If it still runs " + s.at(m.DeadlineAt) + ", it fails and is disabled."
	case m.Policy.Timeout == 0 && s.isPlanned(m.DeadlineAt):
		return "If it still runs " + s.at(m.DeadlineAt) + ", it fails and the planned refresh starts."
	case m.Policy.Timeout == 0:
		return "If it still runs " + s.at(m.DeadlineAt) + ", it fails."
	case s.misses(model.RolePoller):
		return "Its answer must be applied " + by + ", or this attempt fails."
	default:
		return "Its worker must answer " + by + ", or this attempt fails."
	}
}

// forever is longer than anybody waits for a deadline.
const forever = 365 * 24 * time.Hour

// inLine says how many attempts are before one, and when it starts.
func inLine(place report.QueuePosition) string {
	text := words.Count(place.No-1, "is", "are") + " before it"
	if wait, unit := place.Wait(), time.Second; wait > 0 {
		if wait >= time.Minute {
			unit = time.Minute
		}
		text += "; it starts in about " + document.FormatDurationInWords(max(wait.Round(unit), unit))
	}
	return text
}
