package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// StatusText tells what the model is and why, without times: a list has columns for them.
func (s Shown) StatusText() string {
	s.Reason = "" // a list shows it beside
	return join(s.state(nil, nil, stopped(s.Record.ParkedBy)))
}

// state tells what the model is and why. A nil when leaves times out; of attempts, the newest first, there may be none; blocker is what keeps a model
// from starting that is parked.
func (s Shown) state(when func(time.Time) string, attempts []model.Attempt, blocker string) (told []string) {
	m := &s.Record.Model
	since := func(at time.Time) string {
		if when == nil || at.IsZero() {
			return ""
		}
		return " since " + when(at)
	}
	if text := s.failed(when, attempts); text != "" && !m.Disabled {
		told = append(told, text)
	}
	switch s.Status {
	case model.StatusBroken:
		told = append(told, "Its key in Redis holds something else than a model.")
	case model.StatusDisabled:
		text := "Disabled"
		if m.StoppedBy() == model.StoppedByHand {
			text += " by " + cmp.Or(m.DisabledWho, "hand")
		}
		text += since(cmp.Or(m.DisabledAt, m.FinalFailureAt))
		if m.DisabledReason != "" {
			text += ": " + m.DisabledReason
		}
		told = append(told, words.Sentence(text))
		if m.StoppedBy() == model.StoppedByPolicy {
			told = append(told, s.why(attempts)...)
		}
	case model.StatusFinished:
		told = append(told, "Finished: nothing more is planned.")
	case model.StatusQueued:
		told = append(told, "In line for a worker"+since(m.StartedAt)+".")
	case model.StatusProcessing:
		told = append(told, s.work(since)...)
	case model.StatusParked:
		told = append(told, "Due"+since(m.RefreshAt)+", but "+blocker+".")
	case model.StatusDue:
		told = append(told, deferred(m, attempts)...)
		told = append(told, "Due"+since(m.RefreshAt)+".")
		if s.Liveness != nil && s.Liveness.LacksRoom(&m.State) {
			told = append(told, fmt.Sprintf("The input list is full: %d wait, and workers hold %d.", s.Liveness.Queued, s.Liveness.Held))
		}
	case model.StatusScheduled:
		put := deferred(m, attempts)
		switch {
		case len(put)+len(told) > 0:
			told = append(told, put...)
		case m.LastSuccessAt.IsZero() && len(attempts) == 0:
			told = append(told, "Not refreshed yet.")
		default:
			told = append(told, "Waits for its schedule.")
		}
	}
	if missing := s.Missing(); missing != nil {
		told = append(told, words.Sentence(missing.Reason))
	}
	return told
}

// work tells of the attempt that a worker has.
func (s Shown) work(since func(time.Time) string) []string {
	m := &s.Record.Model
	text := "Running"
	if m.Worker != "" {
		text += " on " + m.Worker
	}
	if text += since(m.StartedAt); m.AttemptNo > 1 {
		text += " (" + retryOf(m, m.AttemptNo-1) + ")"
	}
	told := []string{text + "."}
	switch says := m.UserFriendlyStatus; {
	case says != "" && m.Progress > 0:
		told = append(told, fmt.Sprintf("The worker says: %s (%d%%).", says, m.Progress))
	case says != "":
		told = append(told, words.Sentence("The worker says: "+says))
	case m.Progress > 0:
		told = append(told, fmt.Sprintf("%d%% are done.", m.Progress))
	}
	switch {
	case m.Outdated:
		told = append(told, "Its payload has changed: this attempt does not count.")
	case m.Again:
		told = append(told, "It was saved meanwhile.")
	}
	return told
}

// deferred tells who has put the model off; nil: nobody.
func deferred(m *model.Model, attempts []model.Attempt) []string {
	last := ended(m, attempts)
	if last == nil || m.Deferrals == 0 {
		return nil
	}
	text := map[model.Event]string{
		model.EventPostponed: "Its worker has postponed it", model.EventInterrupted: "Its worker had to stop", model.EventQueueTimeout: "Its worker did not begin in time",
	}[last.Outcome]
	if m.Deferrals > 1 {
		text += fmt.Sprintf(", the %s time in a row", words.ShortOrdinal(m.Deferrals))
	}
	return []string{text + "."}
}

// failed tells how often a model has failed since its last success, since when, and why last; empty: it has not.
func (s Shown) failed(when func(time.Time) string, attempts []model.Attempt) string {
	m := &s.Record.Model
	if m.FailingSince.IsZero() {
		return ""
	}
	count, reason, all := 0, s.Reason, false
	for _, a := range attempts {
		if all = a.EndedAt.Before(m.FailingSince); all {
			break
		}
		if a.Outcome == model.EventFailure || a.Outcome == model.EventTimeout {
			if all = a.EndedAt.Equal(m.FailingSince); count == 0 {
				reason = cmp.Or(reason, reasonOf(&a))
			}
			count++
		}
	}
	text := "Failed"
	switch {
	case count == 1:
		text += " once"
	case count > 1 && !all:
		text += fmt.Sprintf(" at least %d times", count)
	case count > 1:
		text += fmt.Sprintf(" %d times", count)
	}
	if when != nil && count == 1 {
		text += " at " + when(m.FailingSince)
	} else if when != nil {
		text += " since " + when(m.FailingSince)
	}
	if reason != "" {
		text += " (" + strings.TrimSuffix(document.Shorten(reason, maxReason), ".") + ")"
	}
	return text + "."
}

// maxReason bounds the reason of a worker within a sentence, in bytes.
const maxReason = 80

func reasonOf(a *model.Attempt) string {
	if a.ErrorType == policy.ReasonTimeout && a.Outcome == model.EventTimeout {
		return "no answer in time"
	}
	return cmp.Or(a.Reason, a.ErrorType)
}

// why tells why the last failure was final.
func (s Shown) why(attempts []model.Attempt) []string {
	m := &s.Record.Model
	if len(attempts) == 0 {
		return nil
	}
	last, end := &attempts[0], m.GivesUpAt()
	switch {
	case !end.IsZero() && !m.FinalFailureAt.Before(end) && m.Policy.DisabledReason == "":
		return nil // the reason says so
	case !end.IsZero() && !m.FinalFailureAt.Before(end):
		return []string{"It had no success for " + document.FormatDurationInWords(m.Policy.GiveUpAfter) + "."}
	case last.Exhausted:
		return []string{"No retry is left."}
	case last.Final:
		return []string{"This failure is not retried."}
	default:
		return nil
	}
}

// ended is the attempt whose end has decided when the model starts next; nil: something else has.
func ended(m *model.Model, attempts []model.Attempt) *model.Attempt {
	if len(attempts) == 0 || m.Running() || attempts[0].Why != m.Why || !attempts[0].RefreshAt.Equal(m.RefreshAt) {
		return nil
	}
	return &attempts[0]
}
