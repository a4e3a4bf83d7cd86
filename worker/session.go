package worker

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/model"
)

// session is one call of Pool.Run on one queue.
type session struct {
	*Pool
	queue   Queue
	holding *holding
	sender  *sender
	overdue chan struct{} // asks for a check of the fences
	slots   *slots

	unreadable backoff.Sampler // takeAll only
	heartbeats heartbeats      // beat only

	ctx    context.Context // parent of every attempt's context
	cancel context.CancelCauseFunc

	working sync.WaitGroup
	flights sync.Map // the keys are *flight
}

func newSession(background context.Context, p *Pool, queue Queue, slots *slots) *session {
	s := &session{
		Pool:    p,
		queue:   queue,
		holding: newHolding(),
		overdue: make(chan struct{}, 1),
		slots:   slots,
	}
	s.ctx, s.cancel = context.WithCancelCause(background)
	s.sender = newSender(queue, s.holding, &p.config)
	return s
}

// takeAll takes and starts attempts until ctx ends.
func (s *session) takeAll(ctx context.Context) {
	retry := s.config.retry("taking attempts")
	answers := true
	for ctx.Err() == nil {
		s.sender.room(ctx)
		// A part that does not answer is asked outside of the turn until it does.
		found, err := false, error(nil)
		if answers || len(s.queues) == 1 {
			found, err = s.takeInTurn(ctx)
		}
		if err == nil && !found {
			_, err = s.queue.WaitInput(context.WithoutCancel(ctx))
		}
		answers = err == nil
		backoff.Rest(ctx, retry.After(err), nil)
	}
}

// takeInTurn takes what there are free slots for when the turn is this session's; false: there was nothing to take.
func (s *session) takeInTurn(ctx context.Context) (bool, error) {
	free, end := s.slots.begin(ctx)
	if free == 0 || ctx.Err() != nil {
		end()
		return true, nil
	}
	defer end()
	return s.takeOnce(ctx, free)
}

// takeOnce takes as many entries as there are free slots and starts them; false: there was none. A call that has begun is finished: an entry that
// is taken while its caller has gone would wait until the pool leaves.
func (s *session) takeOnce(ctx context.Context, free int) (found bool, err error) {
	whole := context.WithoutCancel(ctx)
	asked := s.holding.ask(free)
	taken, err := s.queue.Take(whole, asked)
	switch {
	case err != nil:
		s.holding.doubted()
		return false, err
	case taken.Forgotten:
		return true, s.forgotten(whole, asked.Owner)
	}
	entries := s.holding.receive(asked, taken)
	flights := s.decode(asked.Owner, entries)
	// Some may have been superseded while they waited in line. When that cannot be read the entry's own word counts; the
	// next check will tell.
	fences, now, err := s.fences(whole, flights)
	if err != nil {
		now = taken.Now
	}
	for i, f := range flights {
		current := f.AttemptUID
		if err == nil && fences[i].Err == nil {
			current = fences[i].AttemptUID
			f.DeadlineAt = cmp.Or(fences[i].DeadlineAt, f.DeadlineAt)
		}
		s.admit(ctx, f, current, now)
	}
	s.count(&s.stats.Taken, len(entries))
	return len(entries) > 0, nil
}

// decode drops what cannot be read: without uids nobody can be told about it. There may be a million of them, so only some are
// logged.
func (s *session) decode(owner string, entries []string) []*flight {
	flights := make([]*flight, 0, len(entries))
	for _, entry := range entries {
		attempt, err := decodeAttempt(entry, s.queue.Wire())
		if err != nil {
			s.count(&s.stats.Unreadable, 1)
			if count, tell := s.unreadable.Sample(err.Error(), time.Time{}); tell {
				s.config.Log.Error().Err(err).Int("bytes", len(entry)).Int("like_this", count).
					Msg("worker: dropped an entry that cannot be read")
			}
			s.sender.add(message{owner: owner, entry: entry, ends: true})
			continue
		}
		attempt.owner = owner
		flights = append(flights, &flight{Attempt: attempt})
	}
	return flights
}

// admit starts an attempt, unless it is over before it began: current is what the model runs now. One whose deadline passed in
// line, and that nobody has noticed yet, is handed back: no work of its own has failed.
func (s *session) admit(ctx context.Context, f *flight, current string, now time.Time) {
	switch {
	case current != f.AttemptUID:
		s.count(&s.stats.Stale, 1)
		s.sender.add(f.over(message{}))
	case isPast(f.DeadlineAt, now), ctx.Err() != nil:
		s.end(f, f.message(model.MessageInterrupted))
	default:
		s.start(f, now)
	}
}

// start begins an attempt in a slot of its own.
func (s *session) start(f *flight, now time.Time) {
	f.ctx, f.cancel = context.WithCancelCause(s.ctx)
	f.status = &status{every: s.config.StatusEvery, send: s.sender.add}
	s.slots.tokens <- struct{}{}
	s.flights.Store(f, nil)
	if !s.holding.is(f.owner) { // asked after Store: whoever forgets the owner now finds f, and who did before is found here
		f.cancel(ErrRequeued)
	}
	f.due(f.DeadlineAt, now, s.kick)
	if s.config.Trace != nil && f.Traceparent != "" {
		f.ended = s.config.Trace(f.Attempt, now)
	}
	started := f.message(model.MessageStarted)
	started.Worker = s.config.Name
	s.sender.add(started)
	s.working.Go(func() { s.work(f) })
}

func (s *session) work(f *flight) {
	err := errGone // what stays when the handler ends this goroutine
	defer func() {
		s.finish(f, err)
		f.cancel(nil)
		<-s.slots.tokens
	}()
	err = f.call(s.handler, &s.config)
}

// finish tells how an attempt ended, unless it was abandoned before.
func (s *session) finish(f *flight, err error) {
	s.flights.Delete(f)
	if !f.release() {
		return
	}
	m, wanted := f.ending(err)
	f.status.end(wanted)
	s.end(f, m)
	level := zerolog.DebugLevel
	if _, withheld := factOf[toldReason](err); withheld {
		level = zerolog.InfoLevel // it stands nowhere else
	}
	s.config.Log.WithLevel(level).Str("uid", f.UID).Str("attempt_uid", f.AttemptUID).Str("outcome", string(m.Type)).
		AnErr("cause", context.Cause(f.ctx)).Err(err).Msg("worker: attempt ended")
}

// end counts and tells how an attempt ended; without a type nothing is told.
func (s *session) end(f *flight, m message) {
	s.count(s.stats.counter(m.Type), 1)
	if f.ended != nil {
		f.ended(m.Type)
	}
	if m.Type != "" {
		m.Traceparent = f.Traceparent
	}
	s.sender.add(f.over(m))
}

// abandon hands back every attempt whose handler did not return, and says how many there are.
func (s *session) abandon() (left int) {
	for _, f := range s.inFlight() {
		if f.release() {
			left++
			f.status.end(false)
			s.end(f, f.message(model.MessageInterrupted))
		}
	}
	return left
}

func (s *session) inFlight() (flights []*flight) {
	for f := range s.flights.Range {
		flights = append(flights, f.(*flight))
	}
	return flights
}
