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

// sender collects the messages of all attempts and pushes them, as many as have come together while the last push was under
// way. It keeps their sequence, and every message until Redis has it. A message without a type, which only takes an entry out of the
// taken list, goes the same way.
type sender struct {
	queue   Queue
	holding *holding
	batch   int
	retry   *backoff.Backoff

	mu      sync.Mutex
	waiting []message // guarded by mu; memory is bounded because nothing is taken while a full batch is held
	pushing int       // guarded by mu; how many of them are being pushed
	news    chan struct{}
	drained chan struct{}
}

func newSender(queue Queue, holding *holding, config *Config) *sender {
	return &sender{
		queue: queue, holding: holding, batch: config.PushBatch, retry: config.retry("pushing messages"),
		news: make(chan struct{}, 1), drained: make(chan struct{}, 1),
	}
}

// add takes a message over; it never waits. A status replaces the one of the same attempt that has not been pushed yet.
func (s *sender) add(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer backoff.Signal(s.news)
	if m.Type == model.MessageStatus {
		later := s.waiting[s.pushing:]
		if i := slices.IndexFunc(later, func(older message) bool { return older.Type == m.Type && older.AttemptUID == m.AttemptUID }); i >= 0 {
			later[i] = m
			return
		}
	}
	s.waiting = append(s.waiting, m)
}

// room waits until less than a batch is held, or ctx ends.
func (s *sender) room(ctx context.Context) {
	for s.len() >= s.batch {
		select {
		case <-ctx.Done():
			return
		case <-s.drained:
		}
	}
}

// len is how many messages Redis does not surely have.
func (s *sender) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// run pushes until ctx ends.
func (s *sender) run(ctx context.Context, timeout time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.news:
		}
		s.drain(ctx, timeout)
	}
}

// drain pushes until nothing waits or ctx ends. Each push may take as long as timeout; repeating one that did arrive is
// harmless: what has ended an attempt ends no other. It is not cut off by the end of ctx, because half of a push would leave its end unknown.
func (s *sender) drain(ctx context.Context, timeout time.Duration) {
	for s.len() > 0 && ctx.Err() == nil {
		backoff.Rest(ctx, s.retry.After(s.pushOnce(ctx, timeout)), nil)
	}
}

func (s *sender) pushOnce(ctx context.Context, timeout time.Duration) error {
	messages := s.take()
	answers := make([]scripts.Answer, len(messages))
	for i, m := range messages {
		answers[i] = m.answer()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	_, err := s.queue.Answer(ctx, messages[0].owner, answers)
	if err == nil {
		s.holding.release(messages)
	}
	s.pushed(err == nil)
	return err
}

// take returns the next messages to push together, which are all of one owner. They wait on until they are pushed.
func (s *sender) take() []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pushing = min(s.batch, len(s.waiting))
	if other := slices.IndexFunc(s.waiting[:s.pushing], func(m message) bool { return m.owner != s.waiting[0].owner }); other > 0 {
		s.pushing = other
	}
	return slices.Clone(s.waiting[:s.pushing])
}

// pushed ends a push.
func (s *sender) pushed(arrived bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if arrived {
		s.waiting = s.waiting[s.pushing:]
		backoff.Signal(s.drained)
	}
	s.pushing = 0
}

// flush is the last drain: it gives up after timeout and says how much it leaves behind.
func (s *sender) flush(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s.drain(ctx, timeout)
	if left := s.len(); left > 0 {
		return fmt.Errorf("push what is left: %d messages did not reach redis within %s", left, timeout)
	}
	return nil
}
