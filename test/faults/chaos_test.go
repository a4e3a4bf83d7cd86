package faults

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

var (
	chaosFlag = flag.Duration("chaos", long.Or(0, time.Minute), "how long the chaos drill goes on; 0: not at all")
	seedFlag  = flag.Uint64("seed", 0, "what the plan of the chaos drill is made from; 0: anything")
)

type strike struct {
	fault  string
	target int           // which daemon, for those that hit one
	length time.Duration // of a freeze
	rest   time.Duration // until the next one
	order  []int         // of litter
}

// faults are the faults that strike, the frequent ones more than once.
var faults = []string{"kill", "kill", "kill", "freeze", "freeze", "flush", "crash", "litter", "litter"}

// lease is the lease of each daemon in the chaos drill. A freeze is longer.
const lease = time.Second

// plan returns the strikes of a seed, one after the other: always the same.
func plan(seed uint64, targets int) func() strike {
	random := rand.New(rand.NewPCG(seed, 0))
	between := func(least, most time.Duration) time.Duration {
		return (least + time.Duration(random.Int64N(int64(most-least)))).Round(time.Millisecond)
	}
	return func() strike {
		return strike{
			fault: faults[random.IntN(len(faults))], target: random.IntN(targets), length: between(lease*3/2, lease*5/2),
			rest: between(50*time.Millisecond, 500*time.Millisecond), order: random.Perm(40),
		}
	}
}

// chaos is a drill in which many faults strike at random while workers and an application write down what they see.
type chaos struct {
	*daemonProcesses
	server *testkit.Server
	ledger *ledger
	storm  *storm
	told   *tally       // what the journal says, to be compared with the ledger
	late   *daemonGroup // workers that wait until their attempt is over
	calm   atomic.Bool  // the chaos has not begun, or is over

	strikes          map[string]int
	strewn, doubtful map[string]int // litter by its counter: acknowledged, or without an answer
}

func newChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	d, server := on(t, "--appendonly", "yes", "--appendfsync", "always")
	// Ten seconds, so that a result that came at once is applied in time, no matter which process is killed or frozen.
	d.policy.Timeout, d.policy.Retries, d.elsewhere = 10*time.Second, policy.Delays{0, 0, 0}, true
	c := &chaos{
		server: server, ledger: &ledger{attempts: map[string]*worked{}}, storm: newStorm(100, seed), told: newTally(),
		late: newDaemonGroup(d.ctx, t), strikes: map[string]int{}, strewn: map[string]int{}, doubtful: map[string]int{},
	}
	c.daemonProcesses = &daemonProcesses{drill: d}
	c.calm.Store(true)
	poller := []string{"poller", "--lease", lease.String(), "--tick", "100ms"}
	worker := []string{"worker", "--http", c.listener().URL, "--worker-lease", lease.String(), "--concurrency", "4"}
	c.daemonProcesses = d.startProcesses(testkit.Binary(d.t), []string{"dispatcher"}, []string{"dispatcher"}, poller, poller, poller, worker, worker)
	for range 2 {
		d.workers.run(c.foreign)
	}
	return c
}

// strike lets one fault happen. Each makes sure that it has.
func (c *chaos) strike(s strike) {
	c.t.Helper()
	c.strikes[s.fault]++
	switch s.fault {
	case "kill":
		c.kill(s.target)
	case "freeze":
		c.freeze(s.target, s.length)
	case "flush":
		c.until("scripts to forget", func() (bool, error) { return c.info("memory", "number_of_cached_scripts") > 0, nil })
		c.forgetScripts()
	case "crash":
		c.crash(c.server)
	case "litter":
		c.strew(s.order)
	}
	c.read(c.told)
	rest(c.ctx, s.rest)
}

// freeze stops a daemon for longer than its lease.
func (c *chaos) freeze(i int, length time.Duration) {
	c.t.Helper()
	process := c.processes[i]
	freeze(process)
	check.Eventually(c.t, "the process stands still", func() bool {
		frozen, told := isFrozen(process)
		return frozen || !told
	})
	rest(c.ctx, length)
	thaw(process)
}

// TestNothingIsLostDoubledStuckOrOutOfOrderInChaos lasts for as long as -chaos says, a minute with the long tests.
func TestNothingIsLostDoubledStuckOrOutOfOrderInChaos(t *testing.T) {
	if *chaosFlag == 0 {
		long.Only(t)
	}
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("plan: -seed %d", seed)
	c := newChaos(t, seed)
	storms := newDaemonGroup(c.ctx, t)
	t.Cleanup(storms.stop)
	c.save()
	c.refreshAll()
	c.calm.Store(false)
	storms.run(c.rage)
	next, struck := plan(seed, len(c.commands)), []string{}
	for began := time.Now(); time.Since(began) < *chaosFlag; {
		s := next()
		struck = append(struck, fmt.Sprintf("%s of %d for %s, rest %s", s.fault, s.target, s.length, s.rest))
		c.strike(s)
	}
	storms.stop()
	c.conclude()
	if t.Failed() {
		t.Logf("the plan was:\n%s", strings.Join(struck, "\n"))
	}
}

func (c *chaos) conclude() {
	c.t.Helper()
	c.auditCommands()
	c.uids = append(c.uids, c.storm.living()...)
	c.calm.Store(true)
	c.refreshAll()
	c.late.running.Wait() // until the last late answer
	c.settle()
	c.untilTheDeadAreForgotten()
	stopAll(c.t, c.processes...)
	c.read(c.told)
	c.sum(c.told)
	c.checkCounters(c.told)
	c.checkModels()
	c.auditAttempts()
	c.auditTurns()
	c.auditLitter()
	c.auditKeys()
	c.t.Logf("strikes %v; %s; %d commands in %d gusts", c.strikes, c.ledger, c.storm.commands, c.storm.gusts)
	c.t.Logf("attempts started %d, results applied %d, stale %d, longest stall %s", c.told.events[model.EventStart], c.told.results,
		c.told.stats["stale"]+c.told.stats["duplicate"], c.told.stall.Round(10*time.Millisecond))
}

// ledger is the workers' own log: what they got, what they pushed, and what Redis said to that. Nothing in it comes from
// the journal, the counters or the hash of a model.
type ledger struct {
	mu       sync.Mutex
	attempts map[string]*worked // guarded by mu; by attempt uid
}

type worked struct {
	uid      string
	version  int       // of the payload
	deadline time.Time // from the entry
	pops     int       // by foreign workers
	asked    []time.Time
	said     []saying
}

// saying is one message about an attempt, or about something that looks like one.
type saying struct {
	event model.Event
	begun time.Time // before the push
	acked time.Time // zero: without an answer, it may have arrived
}

// of returns the page of an attempt. The caller holds the lock.
func (l *ledger) of(attemptUID string) *worked {
	if l.attempts[attemptUID] == nil {
		l.attempts[attemptUID] = &worked{}
	}
	return l.attempts[attemptUID]
}

// got writes down an entry that a foreign worker has popped.
func (l *ledger) got(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.of(e.AttemptUID)
	w.uid, w.version, w.deadline = e.UID, e.Version, e.deadline()
	w.pops++
}

// pushed writes down what became of a message. What Redis refused has not arrived.
func (l *ledger) pushed(attemptUID string, event model.Event, begun time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := saying{event: event, begun: begun}
	switch {
	case err == nil:
		s.acked = time.Now()
	case redis.Answered(err):
		return
	}
	w := l.of(attemptUID)
	w.said = append(w.said, s)
}

// listener is the service that the worker processes post to. It always answers yes.
func (c *chaos) listener() *httptest.Server {
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.ledger.mu.Lock()
		defer c.ledger.mu.Unlock()
		w := c.ledger.of(r.Header.Get("Refreshd-Attempt-Uid"))
		w.uid, w.asked = r.Header.Get("Refreshd-Uid"), append(w.asked, time.Now())
	}))
	c.t.Cleanup(service.Close)
	return service
}

// foreign is a worker that knows two lists and JSON, and is not always at its best.
func (c *chaos) foreign(ctx context.Context) error {
	clients, store := c.connect(c.address)
	defer func() { _ = clients.Close() }()
	return serve(ctx, clients.Block, store.Keys.Input, 1, func(e entry) {
		c.ledger.got(e)
		c.answer(ctx, clients, e)
	})
}

// answer is a foreign worker's answer to an entry: mostly it succeeds, and always when the chaos is over.
func (c *chaos) answer(ctx context.Context, clients *redis.Clients, e entry) {
	mood := rand.IntN(100)
	switch {
	case c.calm.Load():
		mood = 100
	case *chaosFlag < c.policy.Timeout: // there is no time to wait for deadlines
		mood = max(mood, 4)
	}
	switch {
	case mood < 2: // it dies
	case mood < 4: // it answers when its attempt is over
		c.late.run(func(context.Context) error {
			c.outwait(e)
			c.say(ctx, c.clients, model.EventSuccess, e)
			return nil
		})
	case mood < 8: // it mistakes another attempt for its own
		other := e
		other.AttemptUID += "x"
		c.say(ctx, clients, model.EventSuccess, other)
		c.say(ctx, clients, model.EventSuccess, e)
	case mood < 16:
		c.say(ctx, clients, model.EventFailure, e)
	case mood < 20: // it stutters
		c.say(ctx, clients, model.EventSuccess, e)
		fallthrough
	default:
		c.say(ctx, clients, model.EventSuccess, e)
	}
}

// say pushes a result until Redis says yes.
func (c *chaos) say(ctx context.Context, clients *redis.Clients, event model.Event, e entry) {
	push(ctx, clients.Write, c.store.Keys.Output, event, e, func(begun time.Time, err error) { c.ledger.pushed(e.AttemptUID, event, begun, err) })
}
