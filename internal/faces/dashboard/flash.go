package dashboard

import (
	"crypto/rand"
	"sync"
)

// flash is a message about an action, which one page shows.
type flash struct {
	Text   string
	Failed bool
}

// maxFlashes bounds those that nobody has read.
const maxFlashes = 100

// flashes are kept here and not in an address, in which anybody could write one. It is safe for concurrent use.
type flashes struct {
	mu    sync.Mutex
	order []string         // guarded by mu: ids, oldest first
	byID  map[string]flash // guarded by mu
}

func newFlashes() *flashes { return &flashes{byID: map[string]flash{}} }

// keep returns the id by which one page shows it.
func (f *flashes) keep(one flash) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.order) == maxFlashes {
		delete(f.byID, f.order[0])
		f.order = f.order[1:]
	}
	id := rand.Text()
	f.order, f.byID[id] = append(f.order, id), one
	return id
}

// take returns a flash once; nil: there is none.
func (f *flashes) take(id string) *flash {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, found := f.byID[id]
	if !found {
		return nil
	}
	delete(f.byID, id)
	return &one
}
