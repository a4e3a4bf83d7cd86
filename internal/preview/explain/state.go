package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// StatusText describes the state and its reason, without times: a list has columns for them.
func (s View) StatusText() string {
	s.Reason = "" // a list shows it beside
	return s.state(nil, nil, stopped(s.Record.ParkedBy))
}

// state describes the state and its reason. A nil when leaves out times and reasons. attempts, the newest first, may be empty. blocker describes
// what parks the model.
func (s View) state(when func(time.Time) string, attempts []model.Attempt, blocker string) string {
	m, text, failed, missing := &s.Record.Model, "", "", cmp.Or(s.Missing(), &MissingRole{})
	since := func(at time.Time) string {
		if when == nil || at.IsZero() {
			return ""
		}
		return " since " + when(at)
	}
	if !m.FailingSince.IsZero() && !m.Disabled {
		failed = s.failed(when, attempts)
	}
	switch s.Status {
	case model.StatusBroken:
		text = "Its key in Redis holds something else than a model."
	case model.StatusDisabled:
		text = s.disabled(since)
	case model.StatusFinished:
		text = "Finished: nothing more is planned."
	case model.StatusQueued:
		text = "In line for a worker" + since(m.StartedAt) + "."
	case model.StatusProcessing:
		text = s.work(since)
	case model.StatusParked:
		if m.Held() {
			text = "Waits for a verdict" + since(m.ParkedSince) + ": its result is doubted."
			if m.Unpublished {
				text += " It is not published."
			}
			break
		}
		text = "Due" + since(m.RefreshAt) + ", but " + blocker + "."
	case model.StatusDue:
		text = "Due" + since(m.RefreshAt)
		switch {
		case m.Trigger == model.TriggerPlanned && m.StartsAt(s.Now).After(s.Now) && blocker == "":
			text += ", but too late to start: this refresh will be skipped"
		case when != nil && m.Trigger == model.TriggerRetry && m.AttemptNo > 0:
			text += " (retry " + retryOf(m, m.AttemptNo) + ")"
		case when != nil:
			text += " (" + m.Why + ")"
		}
		if text += "."; s.Liveness != nil && s.Liveness.LacksRoom(&m.State) {
			text += " The input list is full."
		}
	case model.StatusScheduled:
		switch {
		case strings.HasPrefix(m.Why, model.WhySkipped):
			text = "A planned refresh was skipped: it was too late to start."
		case m.Trigger == model.TriggerDeferred:
			text = words.Sentence(m.Why)
		case failed != "":
		case m.LastSuccessAt.IsZero() && len(attempts) == 0:
			text = "Not refreshed yet."
		default:
			text = "Waits for its schedule."
		}
	}
	if m.Deaths > 0 {
		text = join(text, words.Sentence(words.Count(m.Deaths, "worker has", "workers have")+" died over it."))
	}
	return join(failed, text, words.Sentence(missing.Reason))
}

func (s View) disabled(since func(time.Time) string) string {
	m, text, label := &s.Record.Model, "Disabled", "Its owner reads"
	if m.DisabledBy == model.StoppedByHand {
		text, label = text+" by "+cmp.Or(m.DisabledWho, "hand"), "Reason"
	}
	text += since(cmp.Or(m.DisabledAt, m.FinalFailureAt))
	if why, is := strings.CutPrefix(m.Why, model.WhyDisabled); is && m.DisabledBy == model.StoppedByPolicy {
		text += " (" + strings.TrimLeft(why, ", ") + ")"
	}
	return join(text+".", quote(label, m.DisabledReason))
}

// quote quotes a person or a worker; empty: nothing was said.
func quote(label, said string) string {
	if said == "" {
		return ""
	}
	return label + `: "` + strings.TrimSuffix(said, ".") + `".`
}

func (s View) work(since func(time.Time) string) string {
	m := &s.Record.Model
	text, began := "Running", m.StartedAt
	if m.Policy.QueueTimeout > 0 && m.ProcessingAt.IsZero() {
		text, began = "Taken by a worker"+since(m.TakenAt)+", but not begun", time.Time{}
	} else if m.Worker != "" {
		text += " on " + m.Worker
	}
	if text += since(began); m.AttemptNo > 1 {
		text += " (retry " + retryOf(m, m.AttemptNo-1) + ")"
	}
	sentences := join(text+".", quote("The worker says", m.UserFriendlyStatus))
	if m.Progress > 0 {
		sentences = join(sentences, fmt.Sprintf("%d%% are done.", m.Progress))
	}
	if m.ExpectsSigns() {
		sentences = join(sentences, "Last heard "+words.Distance(m.HeardAt, s.Now)+".")
	}
	switch {
	case m.Outdated:
		sentences = join(sentences, "Its payload has changed: this attempt does not count.")
	case m.Again:
		sentences = join(sentences, "It was saved meanwhile.")
	}
	return sentences
}

// failed says how often a model has failed since its last success, since when, and why last.
func (s View) failed(when func(time.Time) string, attempts []model.Attempt) string {
	m := &s.Record.Model
	count, reason, text, since, all := 0, s.Reason, "Failed", " since ", false
	for i := range attempts {
		a := &attempts[i]
		if a.EndedAt.Before(m.FailingSince) && !rejected(a) {
			break
		}
		if a.Outcome == model.EventFailure || a.Outcome == model.EventTimeout {
			count, reason, all = count+1, cmp.Or(reason, reasonOf(a)), !a.EndedAt.After(m.FailingSince)
		}
	}
	switch {
	case count == 1 && all:
		text, since = "Failed once", " at "
	case all:
		text += fmt.Sprintf(" %d times", count)
	case count > 0: // the history begins later
		text += " at least " + words.Count(count, "time", "times")
	}
	if when != nil {
		text += since + when(m.FailingSince)
	}
	if reason != "" && !s.apart {
		text += " (" + strings.TrimSuffix(document.Shorten(reason, maxReason), ".") + ")"
	}
	return text + "."
}

// LastFailure is the whole reason of the last failure of a model that fails; empty: it does not, or nobody knows.
func (s *Explanation) LastFailure() string {
	i := slices.IndexFunc(s.Attempts, func(a model.Attempt) bool { return a.Outcome == model.EventFailure || a.Outcome == model.EventTimeout })
	if s.m.FailingSince.IsZero() || i < 0 {
		return ""
	}
	return reasonOf(&s.Attempts[i])
}

// rejected reports whether somebody rejected the success of an attempt.
func rejected(a *model.Attempt) bool { return a.Outcome == model.EventFailure && a.Suspect != "" }

// maxReason bounds the reason of a worker in a sentence, in bytes.
const maxReason = 80

func reasonOf(a *model.Attempt) string {
	switch {
	case a.Late > 0:
		return "a success came " + words.Roughly(max(a.Late, time.Second).Truncate(time.Second)) + " after it had timed out"
	case a.ErrorType == policy.ReasonTimeout && a.Outcome == model.EventTimeout:
		return "no answer in time"
	}
	return cmp.Or(a.Reason, a.ErrorType)
}

// ended is the attempt that decided when the model starts next; nil: something else did.
func ended(m *model.Model, attempts []model.Attempt) *model.Attempt {
	if len(attempts) == 0 || m.Running() || attempts[0].Why != m.Why || !attempts[0].RefreshAt.Equal(m.RefreshAt) {
		return nil
	}
	return &attempts[0]
}
