package worker

import (
	"context"
	"errors"

	"github.com/refreshd/refreshd/internal/store"
)

// ManualPool is a pool that acts only when its methods are called, by one goroutine. It is for tests on a virtual clock, as in package
// refreshdtest: a Pool acts each second, too often for a year.
type ManualPool struct {
	session *session
	stopped error // ErrStopped, as soon as an operator has asked for it
}

// ErrStopped says that an operator asked the pool to stop (refreshd worker stop).
var ErrStopped = errors.New("worker: expected to go on, but an operator asked this pool to stop")

// NewManualPool returns such a pool for one queue. It gives a heartbeat only when it takes, so no other pool may serve the queue.
func NewManualPool(ctx context.Context, queue Queue, handler Handler, config Config) (*ManualPool, error) {
	pool, err := New(queue, handler, config)
	if err != nil {
		return nil, err
	}
	r := &ManualPool{}
	slots := newSlots(&pool.config, func() { r.stopped = ErrStopped }) // its holder stops it
	r.session = newSession(context.WithoutCancel(ctx), pool, queue, store.NewOwner(pool.config.Clock), slots)
	return r, nil
}

// Free is how many slots are free.
func (r *ManualPool) Free() int { return cap(r.session.slots.tokens) - len(r.session.slots.tokens) }

// Take takes the oldest entry of the input list, if there is one, and begins with it. There must be a free slot. It is ErrStopped if the pool is to stop.
func (r *ManualPool) Take(ctx context.Context) error {
	_, err := r.session.takeOnce(ctx, 1)
	return errors.Join(err, r.stopped)
}

// Send pushes the messages of handlers, and compares the attempts in hand with Redis. It returns the number of messages.
func (r *ManualPool) Send(ctx context.Context) (sent int, err error) {
	s := r.session
	for sent = s.sender.len(); s.sender.len() > 0 && err == nil; {
		err = s.sender.pushOnce(ctx)
	}
	return sent, errors.Join(err, s.checkOnce(ctx))
}

// Wait waits until ctx ends, a handler has a message, or the deadline of an attempt has passed.
func (r *ManualPool) Wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-r.session.sender.news:
	case <-r.session.overdue:
	}
}

// Stop ends the contexts of all handlers, waits until they have returned, and hands back the unfinished attempts.
func (r *ManualPool) Stop(ctx context.Context) error {
	r.session.cancel(ErrShutdown)
	r.session.working.Wait()
	defer r.session.resign(ctx)
	return r.session.sender.flush(ctx)
}
