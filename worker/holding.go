package worker

import (
	"sync"

	"github.com/refreshd/refreshd/internal/store"
)

// holding is what a session knows to stand in its taken list: every entry from its arrival until Redis has its answer.
//
// An owner that was forgotten never comes back: the session goes on under another name, so that nothing that is still under way
// about the old one can be mistaken for news of the new one.
type holding struct {
	mu      sync.Mutex
	owner   string         // guarded by mu
	known   bool           // guarded by mu: Redis has heard of owner
	doubt   bool           // guarded by mu: a reply was lost, so more may stand in the list
	entries map[string]int // guarded by mu: how often each stands in the list
	count   int            // guarded by mu: entries in all
	gone    map[string]int // guarded by mu: entries released since the last ask, which its reply may still list
}

func newHolding() *holding {
	return &holding{owner: store.NewOwner(), entries: map[string]int{}, gone: map[string]int{}}
}

// name returns the owner; false: Redis has not heard of it yet.
func (h *holding) name() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.owner, h.known
}

// is reports whether owner is still the name of the session.
func (h *holding) is(owner string) bool {
	name, _ := h.name()
	return name == owner
}

// ask is the next request for entries. To know of too many is harmless, so an answer that is under way may still count here.
func (h *holding) ask(most int) store.TakeRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = map[string]int{}
	taking := store.TakeRequest{Owner: h.owner, New: !h.known, Most: most, Known: h.count}
	if h.doubt {
		taking.Known = -1
	}
	return taking
}

// doubted notes that a reply was lost.
func (h *holding) doubted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doubt = true
}

// receive notes what has come and returns the entries that are new, at most as many as were asked for. Those beyond stay in the
// list, and come again when there is room.
func (h *holding) receive(taking store.TakeRequest, taken store.Taken) (fresh []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.owner != taking.Owner {
		return nil
	}
	h.known, h.doubt = true, false
	seen := map[string]int{}
	for _, entry := range taken.Entries {
		seen[entry]++
		if old := taken.Whole && seen[entry] <= h.entries[entry]+h.gone[entry]; !old && len(fresh) < taking.Most {
			fresh = append(fresh, entry)
		}
	}
	for _, entry := range fresh {
		h.entries[entry]++
	}
	h.count += len(fresh)
	return fresh
}

// release forgets entries that Redis has removed.
func (h *holding) release(answered []message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range answered {
		if !m.ends || m.owner != h.owner || h.entries[m.entry] == 0 {
			continue
		}
		h.count--
		h.gone[m.entry]++
		if h.entries[m.entry]--; h.entries[m.entry] == 0 {
			delete(h.entries, m.entry)
		}
	}
}

// lose drops everything with the name of owner; false: that was done before.
func (h *holding) lose(owner string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.owner != owner {
		return false
	}
	h.owner, h.known, h.doubt, h.entries, h.count = store.NewOwner(), false, false, map[string]int{}, 0
	return true
}
