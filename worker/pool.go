package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker/lease"
)

// Queue is a pool's view of a queue. Open makes one of Redis.
type Queue interface {
	// Take moves entries into the taken list of the pool; it may be repeated after an error.
	Take(ctx context.Context, taking lease.TakeRequest) (lease.Taken, error)
	// WaitInput waits a moment for an entry, without taking it.
	WaitInput(ctx context.Context) (bool, error)
	// Answer pushes messages and removes the entries that they end from the taken list; it may be repeated after an error.
	Answer(ctx context.Context, owner string, answers []lease.Answer) ([]bool, error)
	// Fences reads the running attempt of each of the models, and the clock.
	Fences(ctx context.Context, uids []string) ([]lease.Fence, time.Time, error)
	// Heartbeat is a heartbeat. Forgotten: the pool has lost its attempts.
	Heartbeat(ctx context.Context, owner string) (lease.Taken, error)
	// Leave forgets the pool itself and requeues its attempts.
	Leave(ctx context.Context, owner string) (int, error)
	// ReplyList is the list of the replies under a name, and TakeReply waits a moment for one; empty: none came.
	ReplyList(name string) string
	TakeReply(ctx context.Context, name string) (string, error)
	// Wire is how the messages of the queue are written.
	Wire() model.Wire
}

// Handler does the work of one attempt. It must return soon after its context has ended.
type Handler func(ctx context.Context, attempt *Attempt) error

// Pool runs a handler for every attempt that it takes. It is safe for concurrent use.
type Pool struct {
	queues  []Queue
	handler Handler
	config  Config

	clients *redis.Clients // opened by Open; nil: the caller owns the clients

	statsMu sync.Mutex
	stats   Stats // guarded by statsMu
}

// Open connects to the Redis at an address, such as redis://127.0.0.1:6379 (docs/cli.md has all forms), and returns a pool that serves a queue with all
// its parts. Close ends the connections, when Run has returned.
func Open(ctx context.Context, address, queue string, handler Handler, config Config) (*Pool, error) {
	opened, clients, err := store.Dial(ctx, address, store.Config{Queue: queue})
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	pool, err := NewForParts(opened.Pools(), handler, config)
	if err != nil {
		return nil, errors.Join(err, clients.Close())
	}
	pool.clients = clients
	return pool, nil
}

// Close ends the connections of a pool that Open has returned.
func (p *Pool) Close() error {
	if p.clients == nil {
		return nil
	}
	return p.clients.Close()
}

// New returns a pool. It opens nothing: the caller closes the connections of the queue.
func New(queue Queue, handler Handler, config Config) (*Pool, error) {
	return NewForParts([]Queue{queue}, handler, config)
}

// NewForParts returns a pool that serves all parts of a queue with the same slots. Parts that have something to take do so in turn.
func NewForParts[Q Queue](parts []Q, handler Handler, config Config) (*Pool, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, err
	}
	queues := make([]Queue, len(parts))
	for i, part := range parts {
		queues[i] = part
	}
	if len(queues) == 0 || slices.Contains(queues, nil) || handler == nil {
		return nil, errors.New("worker: expected a queue and a handler, found nil")
	}
	return &Pool{queues: queues, handler: handler, config: config}, nil
}

// Run works until ctx ends, or an operator stops the pool (refreshd worker stop), and then stops in two steps: it takes nothing more and gives the work in hand the grace to finish;
// then, or as soon as Hurry is closed, it ends the contexts with ErrShutdown and hands back the unfinished attempts. It returns when
// Redis has all of that. Errors of Redis are logged and waited out, for ever.
//
// An attempt is in a list of the pool in Redis until it is answered, and the pool gives a heartbeat every Heartbeat. When a
// pool dies, a dispatcher returns its attempts to the head of the input list, under the same attempt uids and not
// counted again, about a Lease later. Two things remain possible. An attempt may run twice, one after the other, so a
// handler must bear to begin anew. And a pool that is cut off from Redis while others are not works on until it reaches Redis again
// or the deadline passes; then its contexts end with ErrRequeued. Only the pool that has the entry can end the attempt, so
// messages of the other change nothing.
//
// The error says how many handlers ignored their context and were abandoned, and how many messages could not be pushed. Run
// may be called again, also while another call is running.
func (p *Pool) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	slots, owner := newSlots(&p.config, stop), store.NewOwner(p.config.Clock) // one name in all parts, so that operators see one pool
	errs := make([]error, len(p.queues))
	var sessions sync.WaitGroup
	for i, queue := range p.queues {
		s := newSession(context.WithoutCancel(ctx), p, queue, owner, slots)
		sessions.Go(func() { errs[i] = s.run(ctx) })
	}
	sessions.Wait()
	return errors.Join(errs...)
}

func (s *session) run(ctx context.Context) error {
	// Work outlives the end of ctx, and pushing and watching outlive the work.
	background := context.WithoutCancel(ctx)
	defer s.cancel(ErrShutdown)
	stopBeating := during(background, s.beat)
	stopPushing := during(background, s.sender.run)
	stopWatching := during(background, s.watch)
	taken := async(func() { s.takeAll(ctx) })

	<-ctx.Done()
	abandoned := s.stop(taken)
	ending, cancel := context.WithTimeout(background, s.config.FlushTimeout)
	defer cancel()
	stopWatching()
	stopPushing()
	unpushed := s.sender.flush(ending)
	leaving, cancel := context.WithTimeout(background, s.config.Heartbeat)
	defer cancel()
	stopBeating()
	if unpushed == nil { // else Redis may not answer: the last heartbeat and this call have one bound
		leaving = background
	}
	s.resign(leaving)
	return errors.Join(abandoned, unpushed)
}

func (s *session) stop(taken <-chan struct{}) error {
	idle := async(func() {
		<-taken
		s.working.Wait()
	})
	if within(idle, s.config.Grace, s.config.Hurry) {
		return nil
	}
	s.cancel(ErrShutdown)
	if within(idle, s.config.Linger, nil) {
		return nil
	}
	// Taking ends by itself: a call to Redis that is under way has a time limit. Its attempts are handed back.
	<-taken
	left := 0
	for _, e := range s.executing() {
		if e.release() {
			left++
			e.status.end(false)
			e.signs.end(false)
			s.end(e, e.message(model.MessageInterrupted))
		}
	}
	if left > 0 {
		return fmt.Errorf("stop the work in hand: abandoned %d handlers that ignore their context", left)
	}
	return nil
}

// during runs do until the returned function is called, which ends its context and waits until it has returned.
func during(ctx context.Context, do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := async(func() { do(ctx) })
	return func() {
		cancel()
		<-ended
	}
}

// async runs do in a goroutine and returns a channel that is closed when it has ended.
func async(do func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	return done
}

// within waits for done, but no longer than d and not when there is hurry.
func within(done <-chan struct{}, d time.Duration, hurry <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-hurry:
	case <-timer.C:
	}
	return false
}

// Stats counts the work of a pool since it was made.
type Stats struct {
	Taken       int64 // entries taken from the input list, but for those put back
	Unreadable  int64 // of these, entries dropped because they hold no uids
	Stale       int64 // superseded while they waited in line: not worked on
	Succeeded   int64
	Failed      int64
	Postponed   int64
	Interrupted int64 // handed back: at a stop, or because the deadline passed in line
	Cancelled   int64 // deadline passed or fence lost during the work: nothing was sent
}

// Stats returns the counters at one instant.
func (p *Pool) Stats() Stats {
	p.statsMu.Lock()
	defer p.statsMu.Unlock()
	return p.stats
}

func (p *Pool) count(counter *int64, n int) {
	p.statsMu.Lock()
	defer p.statsMu.Unlock()
	*counter += int64(n)
}

// counter is the counter for the end of an attempt; without a type nothing was sent.
func (s *Stats) counter(kind model.MessageType) *int64 {
	switch kind {
	case model.MessageSuccess:
		return &s.Succeeded
	case model.MessageFailure:
		return &s.Failed
	case model.MessagePostponed:
		return &s.Postponed
	case model.MessageInterrupted:
		return &s.Interrupted
	default:
		return &s.Cancelled
	}
}
