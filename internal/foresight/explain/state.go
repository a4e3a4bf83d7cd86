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

// state tells what the model is and why. A nil when leaves times and reasons out; of attempts, the newest first, there may be none; blocker is what
// keeps a model from starting that is parked.
func (s Shown) state(when func(time.Time) string, attempts []model.Attempt, blocker string) (told []string) {
	m, put := &s.Record.Model, s.deferred(attempts)
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
		told = append(told, s.disabled(since, attempts)...)
	case model.StatusFinished:
		told = append(told, "Finished: nothing more is planned.")
	case model.StatusQueued:
		told = append(told, "In line for a worker"+since(m.StartedAt)+".")
	case model.StatusProcessing:
		told = append(told, s.work(since)...)
	case model.StatusParked:
		told = append(told, "Due"+since(m.RefreshAt)+", but "+blocker+".")
	case model.StatusDue:
		text := "Due" + since(m.RefreshAt)
		if s.skips() {
			text = "The planned refresh" + strings.Replace(since(m.RefreshAt), "since", "of", 1) + " is too late and is skipped"
		} else if when != nil && put == nil {
			text += " (" + dueBecause(m, attempts) + ")"
		}
		told = append(append(told, put...), text+".")
		if s.Liveness != nil && s.Liveness.LacksRoom(&m.State) {
			told = append(told, fmt.Sprintf("The input list is full: %d wait, and workers hold %d.", s.Liveness.Queued, s.Liveness.Held))
		}
	case model.StatusScheduled:
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

// skips reports whether a planned refresh that is due is too late for its policy.
func (s Shown) skips() bool {
	m := &s.Record.Model
	return s.Status == model.StatusDue && m.Trigger == model.TriggerPlanned && m.StartsAt(s.Now).After(s.Now)
}

// dueBecause tells why a model is due.
func dueBecause(m *model.Model, attempts []model.Attempt) string {
	text, _, _ := strings.Cut(strings.TrimPrefix(m.Why, "withdrawn: "), ": again")
	switch {
	case m.Trigger == model.TriggerRetry && strings.HasPrefix(m.Why, "retry"):
		return retryOf(m, m.AttemptNo)
	case m.Trigger == model.TriggerRun && len(attempts) > 0 && strings.HasPrefix(attempts[0].Reason, "superseded") && attempts[0].EndedAt.Equal(m.RefreshAt):
		return text + fmt.Sprintf(", replaced attempt %d", attempts[0].AttemptNo)
	default:
		return text
	}
}

// disabled tells by whom and why a model was disabled.
func (s Shown) disabled(since func(time.Time) string, attempts []model.Attempt) []string {
	m, text, label := &s.Record.Model, "Disabled", "Its owner reads"
	if m.StoppedBy() == model.StoppedByHand {
		text, label = text+" by "+cmp.Or(m.DisabledWho, "hand"), "Reason"
	}
	text += since(cmp.Or(m.DisabledAt, m.FinalFailureAt))
	switch end := m.GivesUpAt(); {
	case m.StoppedBy() != model.StoppedByPolicy || len(attempts) == 0:
	case !end.IsZero() && !m.FinalFailureAt.Before(end):
		text += ": no success for " + document.FormatDurationInWords(m.Policy.GiveUpAfter)
	case attempts[0].Exhausted:
		text += ": no retry is left"
	case attempts[0].Final:
		text += ": this failure is not retried"
	}
	return append([]string{text + "."}, quote(label, m.DisabledReason)...)
}

// quote tells the words of a person or a worker; nil: there are none.
func quote(label, said string) []string {
	if said == "" {
		return nil
	}
	return []string{label + `: "` + strings.TrimSuffix(said, ".") + `".`}
}

// work tells of the attempt that a worker has.
func (s Shown) work(since func(time.Time) string) []string {
	m := &s.Record.Model
	text := "Running"
	if m.Policy.QueueTimeout > 0 && m.ProcessingAt.IsZero() {
		text = "Taken by a worker, but not begun"
	} else if m.Worker != "" {
		text += " on " + m.Worker
	}
	if text += since(m.StartedAt); m.AttemptNo > 1 {
		text += " (" + retryOf(m, m.AttemptNo-1) + ")"
	}
	told := []string{text + "."}
	if told = append(told, quote("The worker says", m.UserFriendlyStatus)...); m.Progress > 0 {
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
func (s Shown) deferred(attempts []model.Attempt) []string {
	m := &s.Record.Model
	if length, skipped := strings.CutPrefix(m.Why, model.WhySkipped); skipped {
		length, _, _ = strings.Cut(length, ":")
		late, _ := document.ParseDuration(length) // which the model has written
		return []string{"The last planned refresh was " + document.FormatDurationInWords(late) + " late and was skipped."}
	}
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
	text, since := "Failed", " since "
	switch {
	case count == 1 && all:
		text, since = "Failed once", " at "
	case count > 0 && !all:
		text += " at least " + words.Count(count, "time", "times")
	case count > 1:
		text += fmt.Sprintf(" %d times", count)
	}
	if when != nil {
		text += since + when(m.FailingSince)
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

// ended is the attempt whose end has decided when the model starts next; nil: something else has.
func ended(m *model.Model, attempts []model.Attempt) *model.Attempt {
	if len(attempts) == 0 || m.Running() || attempts[0].Why != m.Why || !attempts[0].RefreshAt.Equal(m.RefreshAt) {
		return nil
	}
	return &attempts[0]
}
