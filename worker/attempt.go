package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refreshd/refreshd/model"
)

// Attempt is one run that was handed to this worker.
type Attempt struct {
	UID        string    // the model
	AttemptUID string    // the fence: what is written under it may be stale as soon as the context has ended
	AttemptNo  int       // 1 is the first run since the last success; 0: not told
	DeadlineAt time.Time // as it was when the attempt was taken: Deadline tells it as it is now. Zero: not told
	PlannedAt  time.Time // the next planned refresh; zero: none
	DueAt      time.Time // the time that the attempt is for; zero: not told
	// Purpose is what the attempt is for; the entry calls it for. Empty: not told.
	Purpose model.Purpose
	// Fence grows with each attempt of the model, and is the same if an attempt is handed out again. What is written elsewhere under a condition on it
	// is never replaced by a worker that was frozen: see docs/publish.md. 0: not told.
	Fence int64
	// Deaths is how many workers have died over this attempt. From 2 on it is worked on alone.
	Deaths int
	// Traceparent is the part of the trace of the attempt that the work belongs to, as W3C Trace Context writes it; a handler hands it on to what
	// it calls. Empty: the attempt is not traced.
	Traceparent string
	// Payload is the model's own part of the entry: a JSON object.
	Payload json.RawMessage
	// Raw is the whole entry as it came.
	Raw string

	owner, entry string // where it stands in Redis; entry is Raw, which a handler may change
	unchanged    atomic.Bool
	metrics      sync.Map                                      // of float64 by name
	log          atomic.Pointer[string]                        // nil: there is none
	status       *status                                       // nil outside a pool
	ask          func(context.Context, message) (reply, error) // likewise
	signs        *status                                       // of life; nil: none are announced
	unguarded    atomic.Bool                                   // Redis has told that no guard may withhold the result
	deadline     atomic.Pointer[time.Time]                     // nil: DeadlineAt
}

// Deadline is when the attempt counts as timed out, as Redis told last: it moves once the poller has applied that the work has begun. The
// context follows it. Zero: not told. It may be called from any goroutine.
func (a *Attempt) Deadline() time.Time {
	if at := a.deadline.Load(); at != nil {
		return *at
	}
	return a.DeadlineAt
}

// Status tells the owner how far the work is. percent is 0 to 100; negative means unknown. It may be called as often as one
// likes, from any goroutine: only a few of them are told, but always the last.
func (a *Attempt) Status(text string, percent int) {
	if a.status == nil {
		return
	}
	m := a.message(model.MessageStatus)
	m.Status = text
	if percent >= 0 {
		m.Progress = new(min(percent, 100))
	}
	a.status.report(m)
}

// Alive says that the work gets on: a sign of life, where Config.SignsEvery announces some. Status is one too. Call it where something is done,
// not by a timer: else work that hangs looks alive. It may be called as often as one likes, from any goroutine.
func (a *Attempt) Alive() {
	if a.signs != nil {
		a.signs.report(a.message(model.MessageStatus))
	}
}

// Unchanged makes the success that follows say that the refresh found nothing new.
func (a *Attempt) Unchanged() { a.unchanged.Store(true) }

// Metric gives the success that follows a number, such as its rows, by which a policy may doubt it: a finite one, under a name of small letters,
// digits and _. At most 16 are kept. The last one of a name counts. It may be called from any goroutine.
func (a *Attempt) Metric(name string, n float64) {
	if !math.IsNaN(n) && !math.IsInf(n, 0) {
		a.metrics.Store(name, n)
	}
}

// Guarded reports whether a guard of the policy may keep the result from being published, or that is not known: then ask by Ready before. It may
// be called from any goroutine.
func (a *Attempt) Guarded() bool { return a.ask != nil && !a.unguarded.Load() }

// Ready asks, before anything is published, what the guards of the policy say of the numbers so far. Nil: publish. Any other error the handler returns
// without publishing: then the attempt ends as the verdict says. It waits for a poller until ctx or the attempt ends; a poller of 0.9.0 never answers.
// Without a pool there is nobody to ask, and it is nil.
func (a *Attempt) Ready(ctx context.Context) error {
	if a.ask == nil {
		return nil
	}
	m := a.message(model.MessageReady)
	m.Metrics = a.counted()
	answer, err := a.ask(ctx, m)
	if err != nil {
		return err
	}
	switch answer.Verdict {
	case model.VerdictPublish:
		return nil
	case model.VerdictStale:
		return mark(ErrFenceLost, withheld(answer.Verdict))
	case model.VerdictHold, model.VerdictFail:
		return mark(errors.New("not published: "+answer.Reason), withheld(answer.Verdict))
	default:
		return fmt.Errorf("read the verdict: expected publish, hold, fail or stale, found %q", answer.Verdict)
	}
}

func (a *Attempt) counted() map[string]float64 {
	metrics := map[string]float64{}
	for name, n := range a.metrics.Range {
		metrics[name.(string)] = n.(float64)
	}
	return metrics
}

// Log tells what the attempt has said, in place of what was told before: with the result the last 64 KiB of it are sent, and kept for a while.
// What looks like a secret is masked before.
func (a *Attempt) Log(text string) { a.log.Store(&text) }

func (a *Attempt) message(kind model.MessageType) message {
	return message{Type: kind, UID: a.UID, AttemptUID: a.AttemptUID, owner: a.owner}
}

// over makes a message the last one of the attempt: with it the entry leaves the taken list. Without a type nothing is told.
func (a *Attempt) over(m message) message {
	m.owner, m.entry, m.ends = a.owner, a.entry, true
	return m
}

func decodeAttempt(raw string, wire model.Wire) (*Attempt, error) {
	e, err := wire.ParseEntry(raw)
	if err != nil {
		return nil, err
	}
	return &Attempt{
		UID: e.UID, AttemptUID: e.AttemptUID, AttemptNo: e.AttemptNo, DeadlineAt: e.DeadlineAt, PlannedAt: e.PlannedAt,
		DueAt: e.DueAt, Purpose: e.Purpose, Fence: e.Fence, Deaths: e.Deaths, Traceparent: e.Traceparent, Payload: e.Payload(), Raw: raw, entry: raw,
	}, nil
}

// Try runs a handler for one attempt without a pool and without Redis, and returns what a pool would tell about it, as the poller
// reads it: the first and the last status, and how it ended. It is for tests of handlers. The error says that the poller would
// reject a message.
func Try(ctx context.Context, handler Handler, attempt *Attempt) ([]model.Message, error) {
	var sent []message
	attempt.status = &status{every: math.MaxInt64, send: func(m message) { sent = append(sent, m) }}
	config := Config{}.WithDefaults()
	e := &execution{Attempt: attempt, ctx: ctx}
	m, wanted := e.ending(e.call(handler, &config))
	attempt.status.end(wanted)
	if wanted {
		sent = append(sent, m)
	}
	read := make([]model.Message, len(sent))
	for i, m := range sent {
		var err error
		if read[i], err = (model.Wire{}).DecodeMessage([]byte(m.encode(model.Wire{}))); err != nil {
			return read, fmt.Errorf("read messages: %w", err)
		}
	}
	return read, nil
}
