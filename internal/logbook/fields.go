package logbook

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// fields is a line of the log that leaves out what is not set.
type fields struct{ *zerolog.Event }

func (f fields) text(name, value string) {
	if value != "" {
		f.Str(name, value)
	}
}

func (f fields) time(name string, at time.Time) { f.text(name, model.FormatTime(at)) }

func (f fields) flag(name string, set bool) {
	if set {
		f.Bool(name, true)
	}
}

// transition turns a transition that was committed at now into fields: the model, its attempt as a whole, and what follows.
func transition(line fields, t *store.Transition, now time.Time) {
	d := t.Decision()
	line.Str("uid", t.UID()).Str("event", string(d.Event))
	if a := t.Attempt(now); a.AttemptUID != "" {
		attempt(line, &a)
	}
	line.time("refresh_at", d.Next.RefreshAt)
	line.text("refresh_why", d.Next.Why)
	line.text("refresh_for", string(d.Next.Trigger))
	line.flag("final", d.Final)
	line.flag("held", d.Held)
	line.flag("late", d.Late)
	line.flag("disabled", d.Next.Disabled)
	line.text("refresh_disabled_user_friendly_reason", d.Next.DisabledReason)
	line.text("refresh_disabled_by", string(d.Next.DisabledBy))
	line.text("refresh_disabled_who", d.Next.DisabledWho)
	line.text("policy_error", d.PolicyError)
	if len(d.Ignored) > 0 {
		line.Strs("ignored", d.Ignored)
	}
}

// attempt tells all that is known of an attempt: of one that has ended also how its retry came about.
func attempt(line fields, a *model.Attempt) {
	line.Str("attempt_uid", a.AttemptUID).Int("attempt_no", a.AttemptNo)
	line.time("started_at", a.StartedAt)
	line.time("ended_at", a.EndedAt)
	line.time("deadline_at", a.DeadlineAt)
	line.text("worker", a.Worker)
	line.text("reason", a.Reason)
	line.text("error_type", a.ErrorType)
	if a.Changed != nil {
		line.Bool("changed", *a.Changed)
	}
	line.flag("retries_exhausted", a.Exhausted)
	if a.Overlap != "" { // a retry was considered
		line.Int64("delay_ms", a.Delay.Milliseconds()).Int64("jitter_ms", a.Jitter.Milliseconds()).Str("overlap", string(a.Overlap))
		line.time("retry_at", a.RetryAt)
	}
	line.time("planned_at", a.PlannedAt)
}
