package worker

import (
	"context"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
)

// share keeps the attempts that ask one host from filling all slots. Those beyond the share of their host are put back at the tail
// of the input list: there every pool finds them, and one that nobody begins until its deadline is withdrawn, which is not counted.
type share struct {
	host  func(*Attempt) string // nil: no attempt asks one
	most  int                   // attempts in flight for one host
	every time.Duration         // the longest rest

	mu       sync.Mutex
	held     map[string]int // guarded by mu: attempts in flight by host
	searches []*search      // guarded by mu
}

// search looks in one input list for attempts that may begin.
type search struct {
	share     *share
	freed     chan struct{} // ends a rest
	fruitless int           // takeAll only: looks in a row that began nothing and put something back
}

func newShare(c *Config) *share {
	return &share{host: c.Host, most: c.PerHost, every: c.FenceEvery, held: map[string]int{}}
}

func (s *share) newSearch() *search {
	s.mu.Lock()
	defer s.mu.Unlock()
	search := &search{share: s, freed: make(chan struct{}, 1)}
	s.searches = append(s.searches, search)
	return search
}

// admit notes that an attempt begins; false: its host has its share already.
func (s *share) admit(f *flight) bool {
	if s.host == nil {
		return true
	}
	f.host = s.host(f.Attempt)
	if f.host == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[f.host] >= s.most {
		return false
	}
	s.held[f.host]++
	return true
}

// release notes that an attempt which was admitted has ended.
func (s *share) release(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[f.host]--; s.held[f.host] <= 0 {
		delete(s.held, f.host)
	}
	for _, search := range s.searches {
		backoff.Signal(search.freed)
	}
}

// farthest is how many entries are taken at once, at most, to find one that may begin behind those that may not.
const farthest = 100

// leastRest is the rest after the first look that began nothing.
const leastRest = 10 * time.Millisecond

// look is how many entries to take with so many free slots: twice as many after each look that began nothing.
func (s *search) look(free int) int { return max(free, min(free<<min(s.fruitless, 10), farthest)) }

// looked notes what came of a look.
func (s *search) looked(began, back int) {
	if began > 0 || back == 0 {
		s.fruitless = 0
	} else {
		s.fruitless++
	}
}

// rest is how long to let the list be: what was put back comes again.
func (s *search) rest() time.Duration {
	if s.fruitless == 0 {
		return 0
	}
	return min(leastRest<<min(s.fruitless-1, 10), s.share.every)
}

// putBack moves what may not begin to the tail of the input list, before anything else is taken: to repeat it after that could move
// what has begun meanwhile. If ctx ends while Redis fails, it is requeued when the pool leaves.
func (s *session) putBack(ctx context.Context, crowd []*flight) {
	messages, entries := make([]message, len(crowd)), make([]string, len(crowd))
	for i, f := range crowd {
		messages[i], entries[i] = f.over(message{}), f.entry
	}
	retry := s.config.retry("putting attempts back")
	for {
		_, err := s.queue.PutBack(context.WithoutCancel(ctx), crowd[0].owner, entries)
		pause := retry.After(err)
		if err == nil {
			s.holding.release(messages)
			return
		}
		if backoff.Rest(ctx, pause, nil); ctx.Err() != nil {
			return
		}
	}
}
