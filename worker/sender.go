package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker/lease"
)

// sender collects the messages of all attempts and pushes them, as many as have come together while the last push was under
// way. It keeps their sequence, and every message until Redis has it. A message without a type, which only takes an entry out of the
// taken list, goes the same way.
type sender struct {
	queue  Queue
	taken  *takenList
	config *Config
	retry  *backoff.Backoff

	mu      sync.Mutex
	waiting []message // guarded by mu; memory is bounded because nothing is taken while a full batch is held
	pushing int       // guarded by mu; how many of them are being pushed
	news    chan struct{}
	drained chan struct{}
}

func newSender(queue Queue, taken *takenList, config *Config) *sender {
	return &sender{
		queue: queue, taken: taken, config: config, retry: config.retry("pushing messages"),
		news: make(chan struct{}, 1), drained: make(chan struct{}, 1),
	}
}

// add takes a message over; it never waits. A status, or a question, replaces the one of the same attempt that has not been pushed yet.
func (s *sender) add(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer backoff.Signal(s.news)
	if m.Type == model.MessageStatus || m.Type == model.MessageReady {
		later := s.waiting[s.pushing:]
		if i := slices.IndexFunc(later, func(older message) bool {
			return older.Type == m.Type && older.AttemptUID == m.AttemptUID && older.ReplyTo == m.ReplyTo
		}); i >= 0 {
			later[i] = m
			return
		}
	}
	s.waiting = append(s.waiting, m)
}

// len is how many messages Redis does not surely have.
func (s *sender) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

func (s *sender) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.news:
		}
		s.drain(ctx, context.WithoutCancel(ctx)) // half of a push would leave its end unknown
	}
}

// drain pushes until nothing waits or ctx ends. Repeating a push that did arrive is harmless: what has ended an attempt ends no
// other.
func (s *sender) drain(ctx, pushing context.Context) {
	for s.len() > 0 && ctx.Err() == nil {
		backoff.Rest(ctx, s.retry.After(s.pushOnce(pushing)), nil)
	}
}

func (s *sender) pushOnce(ctx context.Context) error {
	messages := s.take()
	answers := make([]lease.Answer, len(messages))
	for i, m := range messages {
		answers[i] = lease.Answer{Ends: m.ends, Entry: m.entry}
		if m.Type != "" {
			answers[i].Message = m.encode(s.queue.Wire())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.FlushTimeout)
	defer cancel()
	_, err := s.queue.Answer(ctx, messages[0].owner, answers)
	if err == nil {
		s.taken.release(messages)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.waiting = s.waiting[s.pushing:]
		backoff.Signal(s.drained)
	}
	s.pushing = 0
	return err
}

// take returns the next messages to push together, which are all of one owner. They wait on until they are pushed.
func (s *sender) take() []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pushing = min(s.config.PushBatch, len(s.waiting))
	if other := slices.IndexFunc(s.waiting[:s.pushing], func(m message) bool { return m.owner != s.waiting[0].owner }); other > 0 {
		s.pushing = other
	}
	return slices.Clone(s.waiting[:s.pushing])
}

// flush is the last drain: it gives up in time and says how much it leaves behind.
func (s *sender) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.FlushTimeout)
	defer cancel()
	s.drain(ctx, ctx)
	if left := s.len(); left > 0 {
		return fmt.Errorf("push what is left: %d messages did not reach redis within %s", left, s.config.FlushTimeout)
	}
	return nil
}
