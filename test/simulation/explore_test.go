package simulation

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// explorer visits every place of the small scope down to a depth, depth first. A place that was reached before, in no more moves,
// has been explored from there.
type explorer struct {
	limit   int
	seen    sync.Map // digest -> the fewest moves that it took
	places  atomic.Int64
	moves   atomic.Int64
	failed  atomic.Bool
	mu      sync.Mutex
	problem error
}

func newScope(t testing.TB, planted bug) *scope {
	return &scope{server: newServer(t, planted), schedules: &schedule.Cache{}, policies: map[string]policy.Policy{}, known: map[step]result{}}
}

// visit explores a place that took path to reach.
func (e *explorer) visit(s *scope, at *place, path []move) error {
	key := at.digest()
	if known, found := e.seen.Load(key); found && known.(int) <= len(path) {
		return nil
	} else if !found {
		e.places.Add(1)
	}
	e.seen.Store(key, len(path))
	if len(path) == e.limit {
		return nil
	}
	for _, m := range at.moves() {
		if e.failed.Load() {
			return nil
		}
		e.moves.Add(1)
		next, err := s.play(at, m)
		here := append(path[:len(path):len(path)], m)
		if err != nil {
			return fmt.Errorf("%w\nby the moves: %s", err, strings.Trim(fmt.Sprint(here), "[]"))
		}
		if err := e.visit(s, next, here); err != nil {
			return err
		}
	}
	return nil
}

// explore visits everything to a depth with one explorer per core, each of which begins with another move.
func explore(scopes []*scope, firsts []*place, limit int) *explorer {
	e := &explorer{limit: limit}
	var next atomic.Int64
	var running sync.WaitGroup
	for i, s := range scopes {
		running.Go(func() {
			moves := firsts[i].moves()
			for n := next.Add(1) - 1; n < int64(len(moves)); n = next.Add(1) - 1 {
				if err := e.begin(s, firsts[i], moves[n]); err != nil {
					e.fail(err)
				}
			}
		})
	}
	running.Wait()
	return e
}

func (e *explorer) begin(s *scope, first *place, m move) error {
	at, err := s.play(first, m)
	if err != nil {
		return fmt.Errorf("%w\nby the move: %s", err, m)
	}
	return e.visit(s, at, []move{m})
}

func (e *explorer) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.problem = err
	e.failed.Store(true)
}

// deepen explores one depth after the other down to the deepest.
func deepen(t *testing.T, planted bug, open func(*scope) (*place, error), cores, deepest int) error {
	t.Helper()
	var scopes []*scope
	var firsts []*place
	for range cores {
		s := newScope(t, planted)
		first, err := open(s)
		if err != nil {
			return err
		}
		scopes, firsts = append(scopes, s), append(firsts, first)
	}
	for limit := 4; limit <= deepest; limit++ {
		begin := time.Now()
		e := explore(scopes, firsts, limit)
		if e.problem != nil {
			return e.problem
		}
		t.Logf("depth %d: all places visited: %d, by %d moves in %s", limit, e.places.Load(), e.moves.Load(), time.Since(begin).Round(time.Millisecond))
	}
	return nil
}

func TestEveryInterleavingOfASmallScopeKeepsThePromises(t *testing.T) {
	for name, opening := range map[string]struct {
		open    func(*scope) (*place, error)
		deepest int
	}{
		"from the start":         {(*scope).open, long.Or(7, 10)},
		"from a passed deadline": {(*scope).later, long.Or(7, 11)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := deepen(t, bug{}, opening.open, 2, opening.deepest); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestTheSmallScopeFindsPlantedBugs(t *testing.T) {
	for name, deep := range map[string]bool{ // whether it takes seconds to get there
		"rev and uid are not compared": true, "the entry to take back is not looked for": false,
		"the claimed entry is removed before the checks": true, "a claim trims before it is applied": false,
	} {
		t.Run(name, func(t *testing.T) {
			at := slices.IndexFunc(bugs, func(b bug) bool { return b.name == name })
			t.Parallel()
			if deep {
				long.Only(t)
			}
			if err := deepen(t, bugs[at], (*scope).later, 1, 10); err == nil {
				t.Fatal("not found")
			} else {
				t.Logf("%.600v", err)
			}
		})
	}
}
