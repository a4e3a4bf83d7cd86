package faults

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
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

// refusals is how many pushes Redis has refused.
func (r *workerRecord) refusals() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
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
	timer := time.NewTimer(5 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		d.record.ran(attempt.AttemptUID)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// foreignWorker is a worker that knows two lists and JSON: BLPOP, work, RPUSH until Redis says yes. An entry whose reply is lost is
// gone, and costs a deadline.
func (d *drill) foreignWorker(ctx context.Context) error {
	clients, store := d.connect(d.address)
	defer func() { _ = clients.Close() }()
	for ctx.Err() == nil {
		entry, err := pop(ctx, clients.Block, store.Keys.Input)
		switch {
		case errors.Is(err, redis.Nil):
		case err != nil:
			pause(ctx)
		default:
			d.record.ran(entry.AttemptUID)
			d.say(ctx, clients.Write, store.Keys.Output, entry)
		}
	}
	return nil
}

// pop takes an entry out of the input list for good.
func pop(ctx context.Context, client redis.UniversalClient, input string) (entry fixture.Entry, err error) {
	popped, err := client.BLPop(context.WithoutCancel(ctx), time.Second, input).Result()
	if err != nil {
		return entry, err
	}
	return entry, json.Unmarshal([]byte(popped[1]), &entry)
}

// say pushes a success until Redis says yes.
func (d *drill) say(ctx context.Context, client redis.UniversalClient, output string, entry fixture.Entry) {
	whole := context.WithoutCancel(ctx)
	for {
		err := client.RPush(whole, output, fixture.Result("success", entry.UID, entry.AttemptUID)).Err()
		d.record.pushed(err, 1, entry.AttemptUID)
		if err == nil || ctx.Err() != nil {
			return
		}
		pause(ctx)
	}
}

// pause is what a worker does after an error of Redis.
func pause(ctx context.Context) {
	timer := time.NewTimer(50 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
