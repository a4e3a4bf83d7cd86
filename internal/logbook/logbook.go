// Package logbook writes into the log what becomes of models: a line for each transition, with the whole attempt.
package logbook

import (
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Logbook is the part of a log that is about models. One goroutine only.
//
// What a person should look at has a level of its own: a final failure, a lost attempt and a rejected message are warnings, a recovery is
// info. A flood of these is sampled, anew each minute; what is left out then is told at debug level like all other transitions.
type Logbook struct {
	part  string // of the program, which begins each message
	log   *zerolog.Logger
	like  backoff.Sampler
	since time.Time // when the sampling began
}

// New returns the logbook of a part of the program.
func New(part string, log *zerolog.Logger) *Logbook { return &Logbook{part: part, log: log} }

// Applied tells of a transition that was committed at now. While its level is off it costs next to nothing.
func (b *Logbook) Applied(t *store.Transition, now time.Time) {
	decision := t.Decision()
	if decision.Event == model.EventStatus || decision.Event == model.EventMend {
		return // no transition
	}
	level, message := judge(decision)
	if level == zerolog.DebugLevel {
		b.tell(b.log.Debug(), t, now, message, 0)
		return
	}
	kind := message
	if decision.Ended != nil {
		kind += decision.Ended.ErrorType + decision.Ended.Reason
	}
	count, tell := b.sample(kind, now)
	if !tell {
		level = zerolog.DebugLevel
	}
	b.tell(b.log.WithLevel(level), t, now, message, count)
}

// judge says how much a transition should be looked at.
func judge(decision *model.Decision) (zerolog.Level, string) {
	switch {
	case decision.Final:
		return zerolog.WarnLevel, "final failure, disabled until the next update"
	case decision.Event == model.EventTimeout:
		return zerolog.WarnLevel, "attempt lost, no answer before its deadline"
	case decision.Notice == policy.NoticeRecovered:
		return zerolog.InfoLevel, "recovered"
	default:
		return zerolog.DebugLevel, "transition"
	}
}

// sample counts a line. The count begins anew each minute, so that what happens now and then is told however long it goes on.
func (b *Logbook) sample(kind string, now time.Time) (count int, tell bool) {
	if !backoff.Recent(b.since, now, time.Minute) {
		b.like, b.since = backoff.Sampler{}, now
	}
	return b.like.Sample(kind, now)
}

// Rejection is a message that cannot be handled. The uids are empty where they cannot be read.
type Rejection struct {
	UID, AttemptUID string
	Command         bool   // it came from an application, not from a worker
	Counter, Reason string // where it is counted, and what is wrong with it
}

// Rejected tells of a message that was kept in <queue>:rejected at now.
func (b *Logbook) Rejected(r Rejection, now time.Time) {
	kind, _, _ := strings.Cut(r.Reason, ", found ") // what was found differs from message to message
	count, tell := b.sample(r.Counter+kind, now)
	if !tell {
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

func (b *Logbook) tell(line *zerolog.Event, t *store.Transition, now time.Time, message string, count int) {
	if line == nil {
		return
	}
	transition(fields{line}, t, now)
	if count > 0 {
		line.Int("like_this", count)
	}
	line.Msg(b.part + ": " + message)
}
