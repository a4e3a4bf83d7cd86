package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

// workerRecord is what the workers of a drill know for themselves, to be compared with what Redis tells at the end.
type workerRecord struct {
	mu      sync.Mutex
	runs    map[string]int // guarded by mu: how often the work of each attempt was done
	acked   int            // guarded by mu: messages that Redis has acknowledged
	unknown int            // guarded by mu: pushes without an answer, which may have arrived
	refused int            // guarded by mu: pushes that Redis refused with an error
	ends    []end          // guarded by mu: of the acknowledged, those that end an attempt
}

// end is an acknowledged result.
type end struct {
	attemptUID string
	at         time.Time
}

func (r *workerRecord) ran(attemptUID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[attemptUID]++
}

// total is how often work was done.
func (r *workerRecord) total() (total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, count := range r.runs {
		total += count
	}
	return total
}

// pushed notes what became of messages: an error that is no answer of Redis leaves it open.
func (r *workerRecord) pushed(err error, messages int, attemptUIDs ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && store.Answered(err):
		r.refused += messages
	case err != nil:
		r.unknown += messages
	default:
		r.acked += messages
		for _, uid := range attemptUIDs {
			r.ends = append(r.ends, end{uid, time.Now()})
		}
	}
}

// counted is a queue that notes what a pool pushes.
type counted struct {
	store.Pool
	record *workerRecord
}

func (c counted) Answer(ctx context.Context, owner string, answers []store.Answer) ([]store.Code, error) {
	codes, err := c.Store.Pool().Answer(ctx, owner, answers)
	messages, ended := 0, []string{}
	for i, answer := range answers {
		if answer.Message == "" || err == nil && codes[i] != store.CodeApplied {
			continue
		}
		messages++
		var entry fixture.Entry
		if answer.Ends && json.Unmarshal([]byte(answer.Message), &entry) == nil {
			ended = append(ended, entry.AttemptUID)
		}
	}
	c.record.pushed(err, messages, ended...)
	return codes, err
}

// handle is the work of the pool: it takes a moment.
func (d *drill) handle(ctx context.Context, attempt *worker.Attempt) error {
	if rest(ctx, 5*time.Millisecond); ctx.Err() == nil {
		d.record.ran(attempt.AttemptUID)
	}
	return ctx.Err()
}

// entry is what workers read of an attempt.
type entry struct {
	fixture.Entry
	ReplyTo string `json:"reply_to"`
	Version int    `json:"version"` // of the payload
}

func (e entry) deadline() time.Time {
	at, _ := time.Parse(time.RFC3339, e.DeadlineAt)
	return at
}

// serve is a worker that knows two lists and JSON: it takes entries out of the input list for good, so many at once, and works on each until the
// context ends. An entry whose reply is lost is gone, and costs a deadline.
func serve(ctx context.Context, client redis.UniversalClient, input string, most int64, work func(entry)) error {
	for ctx.Err() == nil {
		_, taken, err := client.BLMPop(context.WithoutCancel(ctx), time.Second, "left", most, input).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			pause(ctx)
		}
		for _, raw := range taken {
			var e entry
			if err := json.Unmarshal([]byte(raw), &e); err != nil {
				return fmt.Errorf("read entry %s: %w", raw, err)
			}
			work(e)
		}
	}
	return nil
}

// push pushes a result until Redis says yes, and notes what Redis says.
func push(ctx context.Context, client redis.UniversalClient, output string, event model.Event, e entry, note func(begun time.Time, err error)) {
	for {
		begun := time.Now()
		err := client.RPush(context.WithoutCancel(ctx), output, fixture.Result(string(event), e.UID, e.AttemptUID)).Err()
		note(begun, err)
		if err == nil || ctx.Err() != nil {
			return
		}
		pause(ctx)
	}
}

// foreignWorker succeeds with whatever it takes, after it has waited for what it is told to.
func (d *drill) foreignWorker(wait func(entry)) func(context.Context) error {
	return func(ctx context.Context) error {
		clients, store := d.connect(d.address)
		defer func() { _ = clients.Close() }()
		return serve(ctx, clients.Block, store.Keys.Input, 1, func(e entry) {
			wait(e)
			d.record.ran(e.AttemptUID)
			d.say(ctx, clients.Write, e)
		})
	}
}

// say pushes a success until Redis says yes.
func (d *drill) say(ctx context.Context, client redis.UniversalClient, e entry) {
	push(ctx, client, d.store.Keys.Output, model.EventSuccess, e, func(_ time.Time, err error) { d.record.pushed(err, 1, e.AttemptUID) })
}

// pause is what a worker does after an error of Redis.
func pause(ctx context.Context) { rest(ctx, 50*time.Millisecond) }

// rest waits for a while, unless the context ends before.
func rest(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
