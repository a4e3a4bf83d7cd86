package simulation

import (
	"flag"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refreshd/refreshd/internal/testkit/long"
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

func report(t *testing.T, planted bug, first uint64, n int) {
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
	report(t, bug{}, 1, long.Or(15, 500))
}

func TestSoak(t *testing.T) {
	if *seedsFlag == 0 {
		t.Skip("run as: go test ./test/simulation -run TestSoak -v -timeout 0 -seeds 1000000")
	}
	report(t, bug{}, *firstFlag, *seedsFlag)
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
		for seed := range uint64(long.Or(2, 10)) {
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
