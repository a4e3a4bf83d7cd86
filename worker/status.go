package worker

import (
	"sync"
	"time"
)

// status samples the statuses of a running attempt: at most one message per interval, and always the last one.
type status struct {
	every time.Duration
	send  func(message)

	mu      sync.Mutex
	waiting *message    // guarded by mu: said since the last one was sent
	timer   *time.Timer // guarded by mu: not nil while the interval after the last one lasts
	ended   bool        // guarded by mu
}

func (s *status) report(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
	case s.timer != nil:
		s.waiting = &m
	default:
		s.send(m)
		s.timer = time.AfterFunc(s.every, s.tick)
	}
}

// tick sends the last status of the interval, or ends the interval without one.
func (s *status) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
	case s.waiting == nil:
		s.timer = nil
	default:
		s.send(*s.waiting)
		s.waiting = nil
		s.timer.Reset(s.every)
	}
}

// end sends a waiting status, when it is wanted, and drops all later ones.
func (s *status) end(wanted bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.waiting != nil && wanted && !s.ended {
		s.send(*s.waiting)
	}
	s.ended, s.waiting = true, nil
}
