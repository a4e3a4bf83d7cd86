package simulation

import (
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// turbulence is how many steps of a run have faults.
const turbulence = 200

// run simulates one seed; the error is a broken promise.
func (r *server) simulate(seed uint64, planted bug, lines func(string)) (w *world, err error) {
	err = flawOf(func() {
		w = newWorld(r, seed, planted, lines)
		defer w.close()
		steps := turbulence
		if w.temper.pools {
			steps *= 2 // a lease takes many of them
		}
		if w.temper.away {
			steps /= 4 // what matters is played behind them
		}
		if w.temper.steers {
			steps *= 2 // holds, limits and circuits take some to matter
		}
		for range steps {
			w.step()
		}
		w.settle()
	})
	return w, err
}

// runSeeds runs seeds on as many servers as there are cores, until one fails. It returns how many it ran and the first failure.
func runSeeds(t testing.TB, planted bug, first uint64, n, cores int) (ran int64, failed uint64, err error) {
	t.Helper()
	var next, done atomic.Int64
	var mu sync.Mutex
	var running sync.WaitGroup
	for range cores {
		r := newServer(t, planted)
		running.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				seed := first + uint64(i)
				_, broken := r.simulate(seed, planted, nil)
				done.Add(1)
				if broken == nil {
					continue
				}
				next.Store(int64(n))
				mu.Lock()
				if err == nil || seed < failed {
					failed, err = seed, broken
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return done.Load(), failed, err
}

func reportOn(t *testing.T, planted bug, first uint64, n int) {
	t.Helper()
	begin := time.Now()
	ran, failed, err := runSeeds(t, planted, first, n, 2)
	took := time.Since(begin)
	t.Logf("%d seeds in %s, %.0f a second", ran, took.Round(time.Millisecond), float64(ran)/took.Seconds())
	if err != nil {
		t.Fatalf("%v\nreplay it with: %s", err, replayCommand(failed, planted))
	}
}

func replayCommand(seed uint64, planted bug) string {
	command := fmt.Sprintf("go test ./test/simulation -run TestReplay -v -seed %d", seed)
	if planted.name != "" {
		command += fmt.Sprintf(" -bug %q", planted.name)
	}
	return command
}

func TestNothingIsLostDoubledOrStuckWhateverHappens(t *testing.T) {
	reportOn(t, bug{}, 1, long.Or(8, 60))
}

func TestSoak(t *testing.T) {
	if *seedsFlag == 0 {
		t.Skip("run as: go test ./test/simulation -run TestSoak -v -timeout 0 -seeds 1000000")
	}
	reportOn(t, bug{}, *firstFlag, *seedsFlag)
}

func TestReplay(t *testing.T) {
	if *seedFlag == 0 {
		t.Skip("run as: go test ./test/simulation -run TestReplay -v -seed 1")
	}
	planted := bug{}
	for _, l := range bugs {
		if l.name == *bugFlag {
			planted = l
		}
	}
	if _, err := newServer(t, planted).simulate(*seedFlag, planted, func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
}

func TestASeedDecidesEverything(t *testing.T) {
	sums := make([][]uint64, 2)
	for i := range sums {
		r := newServer(t, bug{})
		for seed := range uint64(long.Or(1, 5)) {
			w, err := r.simulate(1000+seed, bug{}, func(string) {})
			if err != nil {
				t.Fatalf("%v\nreplay it with: %s", err, replayCommand(1000+seed, bug{}))
			}
			sums[i] = append(sums[i], w.sum)
		}
	}
	for seed := range sums[0] {
		if sums[0][seed] != sums[1][seed] {
			t.Errorf("seed %d took two different courses", 1000+seed)
		}
	}
}

var (
	seedFlag  = flag.Uint64("seed", 0, "replay one seed with a trace (TestReplay)")
	seedsFlag = flag.Int("seeds", 0, "how many seeds TestSoak runs")
	firstFlag = flag.Uint64("first", 1, "the first seed of TestSoak")
	bugFlag   = flag.String("bug", "", "the planted bug that TestReplay runs with, by its name in bugs")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // short runs of many small values: memory is cheaper than time
	goleak.VerifyTestMain(m)
}

// explorer visits every place of the small scope down to a depth, depth first. A place that was reached before, in no more moves,
// has been explored from there.
type explorer struct {
	limit  int
	moves  atomic.Int64
	failed atomic.Bool

	mu      sync.Mutex
	seen    map[[16]byte]int // guarded by mu: digest -> the fewest moves that it took
	problem error            // guarded by mu
}

// reach notes a place. It reports whether the place is news: not seen before in so few moves.
func (e *explorer) reach(digest [16]byte, moves int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	known, found := e.seen[digest]
	if found && known <= moves {
		return false
	}
	e.seen[digest] = moves
	return true
}

// visit explores a place that took path to reach.
func (e *explorer) visit(s *scope, at *place, path []move) error {
	if !e.reach(at.digest(), len(path)) || len(path) == e.limit {
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

// explore visits everything to a depth with one explorer per core; each begins with another move.
func explore(scopes []*scope, firsts []*place, limit int) *explorer {
	e := &explorer{limit: limit, seen: map[[16]byte]int{}}
	var next atomic.Int64
	var running sync.WaitGroup
	for i, s := range scopes {
		running.Go(func() {
			moves := firsts[i].moves()
			for n := next.Add(1) - 1; n < int64(len(moves)); n = next.Add(1) - 1 {
				at, err := s.play(firsts[i], moves[n])
				if err == nil {
					err = e.visit(s, at, []move{moves[n]})
				}
				if err != nil {
					e.mu.Lock()
					e.problem = fmt.Errorf("%w\nbehind the move: %s", err, moves[n])
					e.mu.Unlock()
					e.failed.Store(true)
				}
			}
		})
	}
	running.Wait()
	return e
}

// deepen explores one depth after the other from a shallow one down to the deepest, and returns how many places that one has.
func deepen(t *testing.T, planted bug, open func(*scope) (*place, error), cores, shallow, deepest int) (places int, err error) {
	t.Helper()
	var scopes []*scope
	var firsts []*place
	for range cores {
		s := &scope{server: newServer(t, planted), schedules: &schedule.Cache{}, policies: map[string]policy.Policy{}, known: map[step]result{}}
		first, err := open(s)
		if err != nil {
			return 0, err
		}
		scopes, firsts = append(scopes, s), append(firsts, first)
	}
	for limit := shallow; limit <= deepest; limit++ {
		begin := time.Now()
		e := explore(scopes, firsts, limit)
		if e.problem != nil {
			return 0, e.problem
		}
		places = len(e.seen)
		t.Logf("depth %d: all places visited: %d, by %d moves in %s", limit, places, e.moves.Load(), time.Since(begin).Round(time.Millisecond))
	}
	return places, nil
}

// TestEveryInterleavingOfASmallScopeKeepsThePromises asserts how many places there are at least: an explorer that stops early has found
// nothing. The number is the same on every machine, and another one when a daemon asks Redis for something else. The deepest visits the less deep
// states too: to begin there costs a third less, and only a broken promise is then reported with more moves than it takes.
func TestEveryInterleavingOfASmallScopeKeepsThePromises(t *testing.T) {
	for name, opening := range map[string]struct {
		open            func(*scope) (*place, error)
		deepest, places int
	}{
		"from the start":         {(*scope).open, long.Or(6, 8), long.Or(3_000, 25_000)},
		"from a passed deadline": {(*scope).later, long.Or(6, 8), long.Or(13_000, 100_000)},
		"from an unheard answer": {(*scope).unheard, long.Or(5, 8), long.Or(500, 3_500)},
	} {
		t.Run(name, func(t *testing.T) {
			places, err := deepen(t, bug{}, opening.open, 2, opening.deepest, opening.deepest)
			if err != nil {
				t.Fatal(err)
			}
			if places < opening.places {
				t.Errorf("want at least %d places down to depth %d, visited %d", opening.places, opening.deepest, places)
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
			if _, err := deepen(t, bugs[at], (*scope).later, 1, 4, 10); err == nil {
				t.Fatal("not found")
			} else {
				t.Logf("%.600v", err)
			}
		})
	}
}
