// Package logbook logs what happens to models: a line for each transition, with the whole attempt.
package logbook

import (
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Logbook logs transitions, from one goroutine only.
//
// What a person should see has its own level: a final failure, a lost attempt and a rejected message are warnings, a recovery is info. These are
// sampled, anew each minute; the others are logged at debug level, like all other transitions.
type Logbook struct {
	part  string // of the program, which begins each message
	log   *zerolog.Logger
	like  backoff.Sampler
	since time.Time // when the sampling began

	faults backoff.Sampler // sampled by text
}

// New returns the logbook of a part of the program.
func New(part string, log *zerolog.Logger) *Logbook { return &Logbook{part: part, log: log} }

// Applied logs a transition that was committed at now. While its level is off it costs next to nothing.
func (b *Logbook) Applied(t *store.Transition, now time.Time) {
	decision := t.Decision()
	if decision.Event == model.EventStatus || decision.Event == model.EventMend {
		return // no transition
	}
	level, message, count := zerolog.DebugLevel, "transition", 0
	switch {
	case decision.Final:
		level, message = zerolog.WarnLevel, "final failure, disabled until the next update"
	case decision.Event == model.EventTimeout:
		level, message = zerolog.WarnLevel, "attempt lost, no answer before its deadline"
	case decision.Notice == policy.NoticeRecovered:
		level, message = zerolog.InfoLevel, "recovered"
	}
	if level != zerolog.DebugLevel {
		kind, sampled := message, false
		if decision.Ended != nil {
			kind += decision.Ended.ErrorType + decision.Ended.Reason
		}
		if count, sampled = b.sample(kind, now); !sampled {
			level = zerolog.DebugLevel
		}
	}
	line := b.log.WithLevel(level)
	if line == nil {
		return
	}
	transition(fields{line}, t, now)
	if count > 0 {
		line.Int("like_this", count)
	}
	line.Msg(b.part + ": " + message)
}

// Fault begins a line about something that many models or rounds may meet, sampled by a text; nil, which is never written: it was logged lately.
func (b *Logbook) Fault(level zerolog.Level, text string, now time.Time) *zerolog.Event {
	count, sampled := b.faults.Sample(text, now)
	if !sampled {
		return nil
	}
	return b.log.WithLevel(level).Int("like_this", count)
}

// WrongType logs a key of the wrong type, sampled; an empty text is none.
func (b *Logbook) WrongType(wrong string, now time.Time) {
	if wrong != "" {
		b.Fault(zerolog.ErrorLevel, wrong, now).Str("misfit", wrong).Msg(b.part + ": a key is of another type")
	}
}

// IgnoreWrongType logs an error about a key of the wrong type, and returns any other: the round goes on without that key.
func (b *Logbook) IgnoreWrongType(err error, now time.Time) error {
	wrong, is := redis.WrongType(err)
	if is {
		b.WrongType(wrong, now)
		return nil
	}
	return err
}

// sample counts a line, anew each minute, so that rare events are always logged.
func (b *Logbook) sample(kind string, now time.Time) (count int, sampled bool) {
	if !backoff.Recent(b.since, now, time.Minute) {
		b.like, b.since = backoff.Sampler{}, now
	}
	return b.like.Sample(kind, now)
}

// Rejection is a message that cannot be handled. The uids are empty where they cannot be read.
type Rejection struct {
	UID, AttemptUID string
	Command         bool   // it came from an application, not from a worker
	Counter, Reason string // the counter, and the reason
}

// Rejected logs a message that was kept in <queue>:rejected at now.
func (b *Logbook) Rejected(r Rejection, now time.Time) {
	kind, _, _ := strings.Cut(r.Reason, ", found ") // the found text differs from message to message
	count, sampled := b.sample(r.Counter+kind, now)
	if !sampled {
		return
	}
	line, source, follows := fields{b.log.Warn()}, "output", "; its attempt goes on"
	if r.Command {
		source, follows = "control", ""
	}
	line.text("uid", document.Shorten(r.UID, document.MaxText)) // it may be anything
	line.text("attempt_uid", document.Shorten(r.AttemptUID, document.MaxText))
	line.Str("source", source).Str("counter", r.Counter).Str("reason", document.OneLine(r.Reason)).Int("like_this", count).
		Msg(b.part + ": message rejected, kept in the list rejected" + follows)
}

// fields is a line of the log without unset fields.
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

// transition logs a transition: the model, its attempt, and what follows.
func transition(line fields, t *store.Transition, now time.Time) {
	d := t.Decision()
	line.Str("uid", t.UID()).Str("event", string(d.Event))
	if a := t.Attempt(now); a.AttemptUID != "" {
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
