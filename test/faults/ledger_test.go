package faults

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
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
	no       int       // 0: only processes of ours had it
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
func (l *ledger) got(raw string, entry fixture.Entry) {
	var payload struct{ Version int }
	_ = json.Unmarshal([]byte(raw), &payload)
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.of(entry.AttemptUID)
	w.uid, w.no, w.version = entry.UID, entry.AttemptNo, payload.Version
	w.deadline, _ = time.Parse(time.RFC3339, entry.DeadlineAt)
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
	for ctx.Err() == nil {
		popped, err := clients.Block.BLPop(context.WithoutCancel(ctx), time.Second, store.Keys.Input).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			pause(ctx)
			continue
		}
		var entry fixture.Entry
		if err := json.Unmarshal([]byte(popped[1]), &entry); err != nil {
			return err
		}
		c.ledger.got(popped[1], entry)
		c.answer(ctx, clients, entry)
	}
	return nil
}

// answer is what a foreign worker does with an entry: mostly it succeeds, and always when the chaos is over.
func (c *chaos) answer(ctx context.Context, clients *store.Clients, entry fixture.Entry) {
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
		c.late.run(func(context.Context) error { return c.answerLate(ctx, entry) })
	case mood < 8: // it mistakes another attempt for its own
		other := entry
		other.AttemptUID += "x"
		c.say(ctx, clients, model.EventSuccess, other)
		c.say(ctx, clients, model.EventSuccess, entry)
	case mood < 16:
		c.say(ctx, clients, model.EventFailure, entry)
	case mood < 20: // it stutters
		c.say(ctx, clients, model.EventSuccess, entry)
		c.say(ctx, clients, model.EventSuccess, entry)
	default:
		c.say(ctx, clients, model.EventSuccess, entry)
	}
}

func (c *chaos) answerLate(ctx context.Context, entry fixture.Entry) error {
	_ = c.await(func() (bool, error) {
		uid, err := c.clients.Read.HGet(c.ctx, c.store.Keys.Model(entry.UID), "attempt_uid").Result()
		return uid != entry.AttemptUID, ignoreNil(err)
	})
	c.say(ctx, c.clients, model.EventSuccess, entry)
	return nil
}

// say pushes a result until Redis says yes.
func (c *chaos) say(ctx context.Context, clients *store.Clients, event model.Event, entry fixture.Entry) {
	for {
		begun := time.Now()
		message := fixture.Result(string(event), entry.UID, entry.AttemptUID)
		err := clients.Write.RPush(context.WithoutCancel(ctx), c.store.Keys.Output, message).Err()
		c.ledger.pushed(entry.AttemptUID, event, begun, err)
		if err == nil || ctx.Err() != nil {
			return
		}
		pause(ctx)
	}
}
