package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker/lease"
)

// session is one call of Pool.Run on one queue.
type session struct {
	*Pool
	queue   Queue
	taken   *takenList
	sender  *sender
	overdue chan struct{} // asks for a check of the fences
	slots   *slots

	unreadable backoff.Sampler // takeAll only
	quiet      bool            // takeAll only: the last take brought an order
	order      atomic.Value    // the lease.Order that was heard last

	ctx    context.Context // parent of every attempt's context
	cancel context.CancelCauseFunc

	working    sync.WaitGroup
	executions sync.Map // the keys are *execution
}

// slots are shared by all sessions of a call of Pool.Run: room for so many attempts, and the turn to fill it.
type slots struct {
	tokens chan struct{} // holds one for each execution
	turn   chan struct{} // holds one while a session takes: the longest waiting is next
	stop   func()        // ends the call

	stopped sync.Once // an operator has asked for it
}

func newSlots(c *Config, stop func()) *slots {
	return &slots{tokens: make(chan struct{}, c.Concurrency), turn: make(chan struct{}, 1), stop: stop}
}

// idle waits until all slots are free, or ctx ends. The caller has the turn, so nobody else fills them.
func (s *slots) idle(ctx context.Context) {
	filled := 0
	for filled < cap(s.tokens) && ctx.Err() == nil {
		select {
		case s.tokens <- struct{}{}:
			filled++
		case <-ctx.Done():
		}
	}
	for range filled {
		<-s.tokens
	}
}

func newSession(background context.Context, p *Pool, queue Queue, owner string, slots *slots) *session {
	s := &session{Pool: p, queue: queue, taken: newTakenList(owner), overdue: make(chan struct{}, 1), slots: slots}
	s.order.Store(lease.Order{})
	s.ctx, s.cancel = context.WithCancelCause(background)
	s.sender = newSender(queue, s.taken, &p.config)
	return s
}

// takeAll takes and starts attempts until ctx ends, but none while a full batch of messages waits.
func (s *session) takeAll(ctx context.Context) {
	retry := s.config.retry("taking attempts")
	answers := true
	for ctx.Err() == nil {
		for s.sender.len() >= s.config.PushBatch && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-s.sender.drained:
			}
		}
		// A part that does not answer is asked outside of the turn until it does.
		found, err := false, error(nil)
		if answers || len(s.queues) == 1 {
			found, err = s.takeInTurn(ctx)
		}
		switch {
		case err != nil || found:
		case s.quiet: // the next take hears whether it still is
			backoff.Rest(ctx, s.config.Heartbeat, nil)
		default:
			_, err = s.queue.WaitInput(context.WithoutCancel(ctx))
		}
		answers = err == nil
		backoff.Rest(ctx, retry.After(err), nil)
	}
}

// takeInTurn waits for the turn and for a free slot, and takes as much as there are free slots, which nobody else fills meanwhile; false: there was
// nothing to take.
func (s *session) takeInTurn(ctx context.Context) (found bool, err error) {
	select {
	case <-ctx.Done():
		return true, nil
	case s.slots.turn <- struct{}{}:
		defer func() { <-s.slots.turn }()
	}
	select {
	case <-ctx.Done():
	case s.slots.tokens <- struct{}{}:
		<-s.slots.tokens
	}
	if ctx.Err() != nil {
		return true, nil
	}
	return s.takeOnce(ctx, cap(s.slots.tokens)-len(s.slots.tokens))
}

// takeOnce takes as many entries as there are free slots and starts them; false: there was none. A call that has begun is finished: an entry that
// is taken while its caller has gone would wait until the pool leaves.
func (s *session) takeOnce(ctx context.Context, free int) (found bool, err error) {
	whole := context.WithoutCancel(ctx)
	asked := s.taken.ask(free)
	taken, err := s.queue.Take(whole, asked)
	switch {
	case err != nil:
		s.taken.doubted()
		return false, err
	case taken.Forgotten:
		return true, s.forgotten(whole, asked.Owner)
	}
	s.hear(taken.Order)
	s.quiet = taken.Order.Verb != ""
	entries := s.taken.receive(asked, taken)
	executions := s.decode(asked.Owner, entries)
	s.begin(ctx, slices.DeleteFunc(slices.Clone(executions), (*execution).kills), taken.Now, 1)
	for _, e := range executions {
		if e.kills() { // nothing else is in hand, and could be lost with it
			s.slots.idle(ctx)
			s.begin(ctx, []*execution{e}, taken.Now, cap(s.slots.tokens))
		}
	}
	s.count(&s.stats.Taken, len(entries))
	return len(entries) > 0, nil
}

// begin starts the executions that still count, each in so many slots.
func (s *session) begin(ctx context.Context, executions []*execution, takenAt time.Time, slots int) {
	// Some may have been superseded while they were queued. When that cannot be read the entry's own word counts,
	// until the next check.
	fences, now, err := s.fences(context.WithoutCancel(ctx), executions)
	if err != nil {
		now = takenAt
	}
	for i, e := range executions {
		current := e.AttemptUID
		if err == nil && fences[i].Err == nil {
			current = fences[i].AttemptUID
			e.DeadlineAt = cmp.Or(fences[i].DeadlineAt, e.DeadlineAt)
			e.unguarded.Store(!fences[i].Guarded)
		}
		switch {
		case current != e.AttemptUID:
			s.count(&s.stats.Stale, 1)
			s.sender.add(e.over(message{}))
		case isPast(e.DeadlineAt, now), ctx.Err() != nil: // in line, and nobody has noticed yet: no work of its own has failed
			s.end(e, e.message(model.MessageInterrupted))
		default:
			s.start(e, now, slots)
		}
	}
}

// decode drops unreadable entries: without uids nobody can report them. There may be a million of them, so only some are
// logged.
func (s *session) decode(owner string, entries []string) []*execution {
	executions := make([]*execution, 0, len(entries))
	for _, entry := range entries {
		attempt, err := decodeAttempt(entry, s.queue.Wire())
		if err != nil {
			s.count(&s.stats.Unreadable, 1)
			if count, picked := s.unreadable.Sample(err.Error(), time.Time{}); picked {
				s.config.Log.Error().Err(err).Int("bytes", len(entry)).Int("like_this", count).
					Msg("worker: dropped an entry that cannot be read")
			}
			s.sender.add(message{owner: owner, entry: entry, ends: true})
			continue
		}
		attempt.owner = owner
		executions = append(executions, &execution{Attempt: attempt})
	}
	return executions
}

func (s *session) start(e *execution, now time.Time, slots int) {
	e.ctx, e.cancel = context.WithCancelCause(s.ctx)
	e.ask = func(ctx context.Context, m message) (reply, error) { return s.ask(ctx, e, m) }
	e.status = &status{every: s.config.StatusEvery, send: s.sender.add}
	if s.config.SignsEvery > 0 {
		e.signs = &status{every: s.config.SignsEvery, send: s.sender.add}
	}
	for range slots {
		s.slots.tokens <- struct{}{}
	}
	s.executions.Store(e, nil)
	// Asked after Store: a later loss of the owner finds e, and an earlier one is found here.
	if owner, _ := s.taken.name(); owner != e.owner {
		e.cancel(ErrRequeued)
	}
	e.due(e.DeadlineAt, now, s.kick)
	if s.config.Trace != nil && e.Traceparent != "" {
		e.ended = s.config.Trace(e.Attempt, now)
	}
	started := e.message(model.MessageStarted)
	started.Worker, started.SignsEvery = s.config.Name, s.config.SignsEvery.Seconds()
	s.sender.add(started)
	s.working.Go(func() {
		err := errGone // stays when the handler ends this goroutine
		defer func() {
			s.finish(e, err)
			e.cancel(nil)
			for range slots {
				<-s.slots.tokens
			}
		}()
		err = e.call(s.handler, &s.config)
	})
}

// reply is a poller's answer to the numbers of a `ready`.
type reply struct {
	Verdict model.Verdict
	Reason  string
}

// askAgain is after how many seconds without a reply a `ready` is repeated: it may have been lost.
const askAgain = 10

// ask pushes a `ready`, and waits for the reply until ctx or the attempt ends.
func (s *session) ask(ctx context.Context, e *execution, m message) (answer reply, err error) {
	name, retry := rand.Text(), s.config.retry("waiting for a verdict")
	m.ReplyTo = s.queue.ReplyList(name)
	for silent := 0; ctx.Err() == nil && e.ctx.Err() == nil; silent++ {
		if silent%askAgain == 0 {
			s.sender.add(m)
		}
		text, err := s.queue.TakeReply(context.WithoutCancel(ctx), name)
		switch {
		case text != "":
			err = json.Unmarshal([]byte(text), &answer)
			return answer, err
		case redis.Refused(err):
			return answer, err
		case err != nil:
			silent = -1 // the reply may be lost: it is asked for at once
		}
		backoff.Rest(e.ctx, retry.After(err), nil)
	}
	return answer, cmp.Or(context.Cause(e.ctx), context.Cause(ctx))
}

// finish reports how an attempt ended, unless it was abandoned before.
func (s *session) finish(e *execution, err error) {
	s.executions.Delete(e)
	if !e.release() {
		return
	}
	m, wanted := e.ending(err)
	e.status.end(wanted)
	e.signs.end(false)
	s.end(e, m)
	level := zerolog.DebugLevel
	if _, withheld := factOf[toldReason](err); withheld {
		level = zerolog.InfoLevel // nothing else reports it
	}
	if err != nil {
		err = errors.New(model.Masked(err.Error()))
	}
	s.config.Log.WithLevel(level).Str("uid", e.UID).Str("attempt_uid", e.AttemptUID).Str("outcome", string(m.Type)).
		AnErr("cause", context.Cause(e.ctx)).Err(err).Msg("worker: attempt ended")
}

// end counts and reports how an attempt ended; without a type it reports nothing.
func (s *session) end(e *execution, m message) {
	s.count(s.stats.counter(m.Type), 1)
	if e.ended != nil {
		e.ended(m.Type)
	}
	if m.Type != "" {
		m.Traceparent = e.Traceparent
	}
	s.sender.add(e.over(m))
}

func (s *session) executing() (executions []*execution) {
	for e := range s.executions.Range {
		executions = append(executions, e.(*execution))
	}
	return executions
}
