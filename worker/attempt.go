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
	AttemptUID string    // the fence: its writes may be stale as soon as the context has ended
	AttemptNo  int       // 1 is the first run since the last success; 0: unknown
	DeadlineAt time.Time // as it was when the attempt was taken; see Deadline for the current one. Zero: unknown
	PlannedAt  time.Time // the next planned refresh; zero: none
	DueAt      time.Time // the time that the attempt is for; zero: unknown
	// Purpose is the reason for the attempt, the field "for" of the entry. Empty: unknown.
	Purpose model.Purpose
	// Fence grows with each attempt of the model. If writes elsewhere are conditional on it, no frozen worker replaces newer data: see
	// docs/publish.md. 0: unknown.
	Fence int64
	// Deaths is how many workers have died over this attempt. From 2 on it is worked on alone.
	Deaths int
	// Traceparent is the part of the trace that the work belongs to, in the form of W3C Trace Context, for calls of the handler. Empty: not traced.
	Traceparent string
	// Payload is the model's own part of the entry: a JSON object.
	Payload json.RawMessage
	// Raw is the whole entry as it came.
	Raw string

	owner, entry string // its place in Redis; entry is Raw, which a handler may change
	unchanged    atomic.Bool
	metrics      sync.Map                                      // of float64 by name
	log          atomic.Pointer[string]                        // nil: there is none
	status       *status                                       // nil outside a pool
	ask          func(context.Context, message) (reply, error) // likewise
	signs        *status                                       // of life; nil: none are announced
	unguarded    atomic.Bool                                   // Redis has answered that no guard may withhold the result
	deadline     atomic.Pointer[time.Time]                     // nil: DeadlineAt
}

// Deadline is the deadline as Redis had it last: it moves when the poller has applied `started`. The context follows it. Zero: unknown. It may be
// called from any goroutine.
func (a *Attempt) Deadline() time.Time {
	if at := a.deadline.Load(); at != nil {
		return *at
	}
	return a.DeadlineAt
}

// Status shows the owner the progress. percent is 0 to 100; negative: unknown. Call it as often as you like, from any goroutine: only some are
// sent, and always the last.
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

// Alive is a sign of life, if Config.SignsEvery announces some. So is Status. Call it when the work proceeds, not by a timer: else work that hangs
// looks alive. Call it as often as you like, from any goroutine.
func (a *Attempt) Alive() {
	if a.signs != nil {
		a.signs.report(a.message(model.MessageStatus))
	}
}

// Unchanged makes the success that follows say that the refresh found nothing new.
func (a *Attempt) Unchanged() { a.unchanged.Store(true) }

// Metric adds a number to the following success, such as its rows, for the guards of a policy: finite, under a name of small letters, digits and _.
// At most 16 are kept; the last one of a name counts. It may be called from any goroutine.
func (a *Attempt) Metric(name string, n float64) {
	if !math.IsNaN(n) && !math.IsInf(n, 0) {
		a.metrics.Store(name, n)
	}
}

// Guarded reports whether a guard of the policy may refuse the result, or that is unknown: then call Ready first. It may be called from any
// goroutine.
func (a *Attempt) Guarded() bool { return a.ask != nil && !a.unguarded.Load() }

// Ready asks the guards of the policy about the numbers so far, before the handler publishes. Nil: publish. Return any other error without
// publishing: the attempt ends as the verdict says. It waits for a poller until ctx or the attempt ends. Without a pool it is nil.
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

// Log replaces the log of the attempt. Its last 64 KiB are sent with the result, without what looks like a secret, and kept for a while.
func (a *Attempt) Log(text string) { a.log.Store(&text) }

func (a *Attempt) message(kind model.MessageType) message {
	return message{Type: kind, UID: a.UID, AttemptUID: a.AttemptUID, owner: a.owner}
}

// over makes a message the last one of the attempt: with it the entry leaves the taken list. Without a type nothing is sent.
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

// Try runs a handler for one attempt without a pool and without Redis, for tests. It returns the messages of a pool as the poller reads them: the
// first and the last status, and the result. The error says that the poller would reject a message.
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
