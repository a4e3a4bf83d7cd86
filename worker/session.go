package worker

import (
	"context"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// session is one call of Pool.Run.
type session struct {
	*Pool
	holding *holding
	outbox  *outbox
	watch   *watch
	lease   *lease
	slots   chan struct{} // holds one token per attempt in hand

	unreadable backoff.Sampler // takeAll only

	ctx    context.Context // parent of every attempt's context
	cancel context.CancelCauseFunc

	working sync.WaitGroup
	mu      sync.Mutex
	flights map[*flight]struct{} // guarded by mu
}

func newSession(background context.Context, p *Pool) *session {
	holding := newHolding()
	s := &session{
		Pool:    p,
		holding: holding,
		outbox:  newOutbox(p.queue, holding, &p.config),
		slots:   make(chan struct{}, p.config.Concurrency),
		flights: map[*flight]struct{}{},
	}
	s.ctx, s.cancel = context.WithCancelCause(background)
	s.watch = newWatch(s, &p.config)
	s.lease = newLease(s, &p.config)
	return s
}

// takeAll takes and starts attempts until ctx ends.
func (s *session) takeAll(ctx context.Context) {
	retry := s.config.retry("taking attempts")
	for ctx.Err() == nil {
		s.outbox.room(ctx)
		free := s.reserve(ctx)
		if ctx.Err() != nil {
			return
		}
		found, err := s.takeOnce(ctx, free)
		if err == nil && !found {
			_, err = s.queue.WaitInput(context.WithoutCancel(ctx))
		}
		rest(ctx, retry.After(err))
	}
}

// reserve waits for a free slot and returns how many there are. Only this goroutine fills them, so they stay free.
func (s *session) reserve(ctx context.Context) int {
	select {
	case <-ctx.Done():
	case s.slots <- struct{}{}:
		<-s.slots
	}
	return cap(s.slots) - len(s.slots)
}

// takeOnce takes as many entries as there are free slots and starts them; false: there was none. A call that has begun is
// finished: an entry that is taken while its caller has gone would wait until the pool leaves.
func (s *session) takeOnce(ctx context.Context, free int) (bool, error) {
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
	attempts := s.decode(asked.Owner, entries)
	fences, now := s.look(whole, attempts, taken.Now)
	for i, attempt := range attempts {
		s.admit(ctx, attempt, fences[i], now)
	}
	return len(entries) > 0, nil
}

// decode drops what cannot be read: without uids nobody can be told about it.
func (s *session) decode(owner string, entries []string) []*Attempt {
	attempts := make([]*Attempt, 0, len(entries))
	for _, entry := range entries {
		s.counts.taken.Add(1)
		attempt, err := decodeAttempt(entry)
		if err != nil {
			s.counts.unreadable.Add(1)
			s.warn(entry, err)
			s.outbox.add(message{owner: owner, entry: entry, ends: true})
			continue
		}
		attempt.owner = owner
		attempts = append(attempts, attempt)
	}
	return attempts
}

// warn tells of an entry that cannot be read. There may be a million of them.
func (s *session) warn(entry string, err error) {
	if count, tell := s.unreadable.Sample(err.Error(), time.Time{}); tell {
		s.config.Log.Error().Err(err).Int("bytes", len(entry)).Int("like_this", count).Msg("worker: dropped an entry that cannot be read")
	}
}

// look reads the fences of fresh attempts, because some may have been superseded while they waited in line. When that fails
// the entries' own word counts; the next check will tell.
func (s *session) look(ctx context.Context, attempts []*Attempt, now time.Time) ([]scripts.Fence, time.Time) {
	uids := make([]string, len(attempts))
	told := make([]scripts.Fence, len(attempts))
	for i, a := range attempts {
		uids[i] = a.UID
		told[i] = scripts.Fence{AttemptUID: a.AttemptUID, DeadlineAt: a.DeadlineAt}
	}
	if len(attempts) == 0 {
		return told, now
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.FenceEvery)
	defer cancel()
	fences, at, err := s.queue.Fences(ctx, uids)
	if err != nil {
		return told, now
	}
	for i, fence := range fences {
		if fence.Err == nil {
			told[i].AttemptUID = fence.AttemptUID
			if !fence.DeadlineAt.IsZero() {
				told[i].DeadlineAt = fence.DeadlineAt
			}
		}
	}
	return told, at
}

// admit starts an attempt, unless it is over before it began. One whose deadline passed in line, and that nobody has noticed
// yet, is handed back: no work of its own has failed.
func (s *session) admit(ctx context.Context, a *Attempt, fence scripts.Fence, now time.Time) {
	late := !fence.DeadlineAt.IsZero() && !now.IsZero() && !fence.DeadlineAt.After(now)
	switch {
	case fence.AttemptUID != a.AttemptUID:
		s.counts.stale.Add(1)
		s.outbox.add(a.over(message{}))
	case late, ctx.Err() != nil:
		s.counts.interrupted.Add(1)
		s.outbox.add(a.over(a.message(model.MessageInterrupted)))
	default:
		a.DeadlineAt = fence.DeadlineAt
		s.start(a, now)
	}
}

// start begins an attempt in a slot of its own.
func (s *session) start(a *Attempt, now time.Time) {
	f := &flight{Attempt: a}
	f.ctx, f.cancel = context.WithCancelCause(s.ctx)
	a.status = &status{every: s.config.StatusEvery, send: s.outbox.add}
	s.slots <- struct{}{}
	s.enter(f)
	if !s.holding.is(a.owner) { // asked after enter: whoever forgets the owner now finds f, and who did before is found here
		f.cancel(ErrHandedBack)
	}
	f.due(a.DeadlineAt, now, s.watch.kick)
	started := a.message(model.MessageStarted)
	started.Worker = s.config.Name
	s.outbox.add(started)
	s.working.Go(func() { s.work(f) })
}

func (s *session) work(f *flight) {
	err := errGone // what stays when the handler ends this goroutine
	defer func() {
		s.finish(f, err)
		f.cancel(nil)
		<-s.slots
	}()
	err = f.call(s.handler, &s.config)
}

// finish tells how an attempt ended, unless it was abandoned before.
func (s *session) finish(f *flight, err error) {
	s.leave(f)
	if !f.release() {
		return
	}
	m, wanted := f.ending(err)
	f.status.end(wanted)
	s.outbox.add(f.over(m))
	s.counts.count(m.Type)
	s.config.Log.Debug().Str("uid", f.UID).Str("attempt_uid", f.AttemptUID).Str("outcome", string(m.Type)).
		AnErr("cause", context.Cause(f.ctx)).Err(err).Msg("worker: attempt ended")
}

// abandon hands back every attempt whose handler did not return, and says how many there are.
func (s *session) abandon() (left int) {
	for _, f := range s.inHand() {
		if f.release() {
			left++
			f.status.end(false)
			s.counts.interrupted.Add(1)
			s.outbox.add(f.over(f.message(model.MessageInterrupted)))
		}
	}
	return left
}

func (s *session) enter(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flights[f] = struct{}{}
}

func (s *session) leave(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.flights, f)
}

func (s *session) inHand() []*flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	flights := make([]*flight, 0, len(s.flights))
	for f := range s.flights {
		flights = append(flights, f)
	}
	return flights
}
