package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// outbox collects the messages of all attempts and pushes them, as many as have come together while the last push was under
// way. It keeps their order, and every message until Redis has it. A message that ends an attempt and one without words, which only
// takes the entry out of the taken list, go the same way.
type outbox struct {
	queue   Queue
	holding *holding
	batch   int
	retry   *backoff.Backoff

	mu      sync.Mutex
	waiting []message // guarded by mu; memory is bounded because nothing is taken while a full batch is held
	pushing int       // guarded by mu; messages of the push under way: Redis does not surely have them
	news    chan struct{}
	drained chan struct{}
}

func newOutbox(queue Queue, holding *holding, config *Config) *outbox {
	return &outbox{
		queue: queue, holding: holding, batch: config.PushBatch, retry: config.retry("pushing messages"),
		news: make(chan struct{}, 1), drained: make(chan struct{}, 1),
	}
}

// add takes a message over; it never waits. A status replaces the one of the same attempt that has not been pushed yet.
func (o *outbox) add(m message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer signal(o.news)
	if m.Type == model.MessageStatus {
		for i, older := range o.waiting {
			if older.Type == m.Type && older.AttemptUID == m.AttemptUID {
				o.waiting[i] = m
				return
			}
		}
	}
	o.waiting = append(o.waiting, m)
}

// room waits until less than a batch is held, or ctx ends.
func (o *outbox) room(ctx context.Context) {
	for o.len() >= o.batch {
		select {
		case <-ctx.Done():
			return
		case <-o.drained:
		}
	}
}

// len is how many messages Redis does not surely have.
func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting) + o.pushing
}

// run pushes until ctx ends.
func (o *outbox) run(ctx context.Context, timeout time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.news:
		}
		o.drain(ctx, timeout)
	}
}

// drain pushes until nothing waits or ctx ends. Each push may take as long as timeout; repeating one that did arrive is
// harmless: what has ended an attempt ends no other. It is not cut off by the end of ctx, because half of a push would leave its end unknown.
func (o *outbox) drain(ctx context.Context, timeout time.Duration) {
	for o.len() > 0 && ctx.Err() == nil {
		err := o.pushOnce(ctx, timeout)
		rest(ctx, o.retry.After(err))
	}
}

func (o *outbox) pushOnce(ctx context.Context, timeout time.Duration) error {
	messages := o.take()
	answers := make([]scripts.Answer, len(messages))
	for i, m := range messages {
		answers[i] = m.answer()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if _, err := o.queue.Answer(ctx, messages[0].owner, answers); err != nil {
		o.putBack(messages)
		return err
	}
	o.holding.release(messages)
	o.putBack(nil)
	signal(o.drained)
	return nil
}

// take returns the next messages to push together, which are all of one owner.
func (o *outbox) take() []message {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(o.batch, len(o.waiting))
	if other := slices.IndexFunc(o.waiting[:n], func(m message) bool { return m.owner != o.waiting[0].owner }); other > 0 {
		n = other
	}
	messages := o.waiting[:n:n]
	o.waiting, o.pushing = o.waiting[n:], n
	return messages
}

// putBack ends a push: with what Redis may not have, which goes to the head again.
func (o *outbox) putBack(messages []message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pushing = 0
	o.waiting = append(messages, o.waiting...)
}

// flush is the last drain: it gives up after timeout and says how much it leaves behind.
func (o *outbox) flush(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o.drain(ctx, timeout)
	if left := o.len(); left > 0 {
		return fmt.Errorf("push what is left: %d messages did not reach redis within %s", left, timeout)
	}
	return nil
}

func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default: // a signal is waiting already
	}
}
