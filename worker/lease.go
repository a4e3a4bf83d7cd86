package worker

import (
	"context"
	"sync"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/worker/lease"
)

// beat gives heartbeats until ctx ends, also while all slots are busy.
func (s *session) beat(ctx context.Context) {
	s.every(ctx, s.config.Heartbeat, nil, "giving a sign of life", func(ctx context.Context) error {
		owner, known := s.taken.name()
		if !known {
			return nil // nothing has been taken under this name
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Heartbeat)
		defer cancel()
		taken, err := s.queue.Heartbeat(ctx, owner)
		switch {
		case err != nil:
			return err
		case taken.Forgotten:
			return s.forgotten(ctx, owner)
		}
		s.hear(taken.Order)
		return nil
	})
}

// hear follows the order of an operator. Redis gives nothing to a quiet pool, so the session of the first part only logs it for all.
func (s *session) hear(order lease.Order) {
	if s.order.Swap(order) == order {
		return
	}
	text, logs := "takes no new attempts", s.queue == s.queues[0]
	switch order.Verb {
	case "":
		text = "takes attempts again"
	case lease.Stop:
		text, logs = "stops", false
		s.slots.stopped.Do(func() { logs = true; s.slots.stop() }) // whichever hears first: the others end before they do
	}
	if logs {
		s.config.Log.Info().Str("by", order.By).Msgf("worker: %s, as an operator asked", text)
	}
}

// forgotten ends all work that was taken under a name that is forgotten: by now it is in the hands of others.
func (s *session) forgotten(ctx context.Context, owner string) error {
	if !s.taken.forget(owner) {
		return nil
	}
	for _, e := range s.executing() {
		if e.owner == owner {
			e.cancel(ErrRequeued)
		}
	}
	s.config.Log.Warn().Str("owner", owner).Msg("worker: was silent for too long: its attempts were handed back")
	// Usually nothing is left there. But if Redis has lost the name only, nobody else would find the list.
	_, err := s.queue.Leave(ctx, owner)
	return err
}

// resign ends the session in Redis; if Redis does not hear it, the lease runs out instead.
func (s *session) resign(ctx context.Context) {
	owner, known := s.taken.name()
	if !known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Heartbeat)
	defer cancel()
	if left, err := s.queue.Leave(ctx, owner); err != nil || left > 0 {
		s.config.Log.Warn().Err(err).Int("attempts", left).Msg("worker: left with attempts that are not answered")
	}
}

// takenList is a session's view of its taken list: each entry until Redis has its answer. After an owner was forgotten, the session takes
// another name: so late news of the old one cannot be mistaken.
type takenList struct {
	mu      sync.Mutex
	owner   string         // guarded by mu
	known   bool           // guarded by mu: Redis has heard of owner
	doubt   bool           // guarded by mu: a reply was lost, so the list may have more
	entries map[string]int // guarded by mu: how often each is in the list
	count   int            // guarded by mu: entries in all
	gone    map[string]int // guarded by mu: entries released since the last ask, which its reply may still list
}

func newTakenList(owner string) *takenList {
	return &takenList{owner: owner, entries: map[string]int{}, gone: map[string]int{}}
}

// name returns the owner; false: Redis has not heard of it yet.
func (l *takenList) name() (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owner, l.known
}

// ask is the next request for entries. To know of too many is harmless, so an answer that is under way may still count here.
func (l *takenList) ask(most int) lease.TakeRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = map[string]int{}
	taking := lease.TakeRequest{Owner: l.owner, New: !l.known, Most: most, Known: l.count}
	if l.doubt {
		taking.Known = -1
	}
	return taking
}

func (l *takenList) doubted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubt = true
}

// receive notes entries and returns the new ones, at most as many as were asked for. The others stay in the list until there is room.
func (l *takenList) receive(taking lease.TakeRequest, taken lease.Taken) (fresh []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner != taking.Owner {
		return nil
	}
	l.known, l.doubt = true, false
	seen := map[string]int{}
	for _, entry := range taken.Entries {
		seen[entry]++
		if old := taken.Whole && seen[entry] <= l.entries[entry]+l.gone[entry]; !old && len(fresh) < taking.Most {
			fresh = append(fresh, entry)
		}
	}
	for _, entry := range fresh {
		l.entries[entry]++
	}
	l.count += len(fresh)
	return fresh
}

func (l *takenList) release(answered []message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range answered {
		if !m.ends || m.owner != l.owner || l.entries[m.entry] == 0 {
			continue
		}
		l.count--
		l.gone[m.entry]++
		if l.entries[m.entry]--; l.entries[m.entry] == 0 {
			delete(l.entries, m.entry)
		}
	}
}

// forget drops everything with the name of owner; false: that was done before.
func (l *takenList) forget(owner string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner != owner {
		return false
	}
	l.owner, l.known, l.doubt, l.entries, l.count = store.NextOwner(owner), false, false, map[string]int{}, 0
	return true
}
