package dashboard

import (
	"crypto/rand"
	"sync"
)

// telling is what became of an action, in words.
type telling struct {
	Text   string
	Failed bool
}

// mostTellings is how many are kept that nobody has read.
const mostTellings = 100

// tellings are kept here and not in an address, in which anybody could write one. It is safe for concurrent use.
type tellings struct {
	mu    sync.Mutex
	order []string           // guarded by mu: ids, oldest first
	byID  map[string]telling // guarded by mu
}

// keep returns the id by which one page shows it.
func (t *tellings) keep(told telling) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = map[string]telling{}
	}
	if len(t.order) == mostTellings {
		delete(t.byID, t.order[0])
		t.order = t.order[1:]
	}
	id := rand.Text()
	t.order, t.byID[id] = append(t.order, id), told
	return id
}

// take returns a telling, once; nil: there is none.
func (t *tellings) take(id string) *telling {
	t.mu.Lock()
	defer t.mu.Unlock()
	told, is := t.byID[id]
	if !is {
		return nil
	}
	delete(t.byID, id)
	return &told
}
