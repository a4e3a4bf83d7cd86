package faults

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// ledger is the workers' own log: what they got, what they pushed, and what Redis said to that. Nothing in it comes from
// the journal, the counters or the hash of a model.
type ledger struct {
	mu       sync.Mutex
	attempts map[string]*worked // guarded by mu; by attempt uid
}

// worked is what the workers know of one attempt.
type worked struct {
	uid      string
	version  int       // of the payload
	deadline time.Time // as the entry told it
	pops     int       // by foreign workers
	asked    []time.Time
	said     []saying
}

// saying is one message about an attempt, or about something that looks like one.
type saying struct {
	event model.Event
	begun time.Time // before the push
	acked time.Time // zero: without an answer, it may have arrived
}

// of returns the page of an attempt. The caller holds the lock.
func (l *ledger) of(attemptUID string) *worked {
	if l.attempts[attemptUID] == nil {
		l.attempts[attemptUID] = &worked{}
	}
	return l.attempts[attemptUID]
}

// got writes down an entry that a foreign worker has popped.
func (l *ledger) got(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.of(e.AttemptUID)
	w.uid, w.version, w.deadline = e.UID, e.Version, e.deadline()
	w.pops++
}

// pushed writes down what became of a message. What Redis refused has not arrived.
func (l *ledger) pushed(attemptUID string, event model.Event, begun time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := saying{event: event, begun: begun}
	switch {
	case err == nil:
		s.acked = time.Now()
	case store.Answered(err):
		return
	}
	w := l.of(attemptUID)
	w.said = append(w.said, s)
}

// listener is the service that the worker processes post to. It always answers yes.
func (c *chaos) listener() *httptest.Server {
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.ledger.mu.Lock()
		defer c.ledger.mu.Unlock()
		w := c.ledger.of(r.Header.Get("Refreshd-Attempt-Uid"))
		w.uid, w.asked = r.Header.Get("Refreshd-Uid"), append(w.asked, time.Now())
	}))
	c.t.Cleanup(service.Close)
	return service
}

// foreign is a worker that knows two lists and JSON, and is not always at its best.
func (c *chaos) foreign(ctx context.Context) error {
	clients, store := c.connect(c.address)
	defer func() { _ = clients.Close() }()
	return serve(ctx, clients.Block, store.Keys.Input, 1, func(e entry) {
		c.ledger.got(e)
		c.answer(ctx, clients, e)
	})
}

// answer is what a foreign worker does with an entry: mostly it succeeds, and always when the chaos is over.
func (c *chaos) answer(ctx context.Context, clients *store.Clients, e entry) {
	mood := rand.IntN(100)
	switch {
	case c.calm.Load():
		mood = 100
	case *chaosFlag < c.policy.Timeout: // there is no time to wait for deadlines
		mood = max(mood, 4)
	}
	switch {
	case mood < 2: // it dies
	case mood < 4: // it answers when its attempt is over
		c.late.run(func(context.Context) error {
			c.outwait(e)
			c.say(ctx, c.clients, model.EventSuccess, e)
			return nil
		})
	case mood < 8: // it mistakes another attempt for its own
		other := e
		other.AttemptUID += "x"
		c.say(ctx, clients, model.EventSuccess, other)
		c.say(ctx, clients, model.EventSuccess, e)
	case mood < 16:
		c.say(ctx, clients, model.EventFailure, e)
	case mood < 20: // it stutters
		c.say(ctx, clients, model.EventSuccess, e)
		fallthrough
	default:
		c.say(ctx, clients, model.EventSuccess, e)
	}
}

// say pushes a result until Redis says yes.
func (c *chaos) say(ctx context.Context, clients *store.Clients, event model.Event, e entry) {
	push(ctx, clients.Write, c.store.Keys.Output, event, e, func(begun time.Time, err error) { c.ledger.pushed(e.AttemptUID, event, begun, err) })
}
