package faults

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/admin/doctor"
	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/worker"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

var (
	loadFlag  = flag.Int("load", long.Or(20, 50), "how many models each drill refreshes every second")
	timesFlag = flag.Int("times", 1, "how many times longer each drill keeps up its fault")
)

// The daemons of a drill share the process of the test, where go-redis would print a line for each refused connection.
func init() { redis.LogTo(nil) }

// drill is a queue under a steady load in which something is broken on purpose.
type drill struct {
	t       testing.TB
	ctx     context.Context // bounds all waiting
	address string          // how the daemons and workers reach Redis
	clients *redis.Clients
	store   *store.Store            // how the test reaches it
	clock   func() time.Time        // nil: the clock of Redis
	admin   goredis.UniversalClient // one connection, for breaking something; nil behind sentinels
	record  *workerRecord
	policy  policy.Policy

	uids        []string
	feed        string // input_url of the models
	dispatchers *daemonGroup
	workers     *daemonGroup // pollers too: they end when nothing is left to do
	elsewhere   bool         // workers are processes: what they pushed is not known
	healed      time.Time
	struck      int       // how often the fault has struck
	cut         time.Time // what Redis acknowledged after this instant may be gone; zero: nothing may
}

// newDrill prepares a queue. The test looks at it by one address, and the daemons and workers reach it by another.
func newDrill(t *testing.T, direct, address string) *drill {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), check.Limit*time.Duration(*timesFlag)+*chaosFlag)
	d := &drill{t: t, ctx: ctx, address: address, record: &workerRecord{runs: map[string]int{}}, feed: "http://feed"}
	d.policy = policy.Policy{ // each model is refreshed every second, evenly spread, and an attempt has little time
		Name: "load", Rule: "FREQ=SECONDLY", Spread: 900 * time.Millisecond, Timeout: 3 * time.Second,
		Alignment: policy.AlignPlanned, OnExhausted: policy.NextPlanned,
	}
	d.clients, d.store = d.connect(direct)
	d.dispatchers, d.workers = newDaemonGroup(ctx, t), newDaemonGroup(ctx, t)
	t.Cleanup(func() { stop(); d.dispatchers.stop(); d.workers.stop() })
	for i := range *loadFlag {
		d.uids = append(d.uids, fmt.Sprint("m", i))
	}
	return d
}

func (d *drill) connect(address string) (*redis.Clients, *store.Store) {
	d.t.Helper()
	clients, err := redis.Connect(address, redis.ConnectOptions{})
	must(d.t, err)
	d.t.Cleanup(func() { _ = clients.Close() })
	store, err := store.New(clients, store.Config{Clock: d.clock})
	must(d.t, err)
	return clients, store
}

// begin lets an application save the models and in-process daemons and workers refresh them, until each has been refreshed.
func (d *drill) begin() {
	d.t.Helper()
	d.save()
	for range 2 {
		d.dispatch()
		d.poll(poller.Config{})
		d.workers.run(d.foreignWorker(func(entry) {}))
	}
	d.pool(worker.Config{MaxBackoff: time.Second})
	d.refreshAll()
}

// save stores the policy and pushes the models as an application does.
func (d *drill) save() {
	d.t.Helper()
	d.check("store the policy", d.store.Fleet().PutPolicy(d.ctx, d.policy))
	for _, uid := range d.uids {
		command, err := json.Marshal(map[string]any{"type": "put", "uid": uid, "policy": d.policy.Name, "payload": map[string]any{"input_url": d.feed}})
		d.check("encode a command", err)
		d.check("push a command", d.clients.Write.RPush(d.ctx, d.store.Keys.Control, command).Err())
	}
}

func (d *drill) check(doing string, err error) {
	d.t.Helper()
	stopIf(d.t, err != nil, "%s: %v", doing, err)
}

func (d *drill) dispatch() {
	d.t.Helper()
	_, store := d.connect(d.address)
	daemon, err := dispatcher.New(dispatcher.RoomsOf(store), dispatcher.Config{})
	d.check("open a dispatcher", err)
	d.dispatchers.run(daemon.Run)
}

func (d *drill) poll(config poller.Config) {
	d.t.Helper()
	_, store := d.connect(d.address)
	daemon, err := poller.New(poller.RoomsOf(store), config)
	d.check("open a poller", err)
	d.workers.run(daemon.Run)
}

// pool starts a worker pool of our own whose answers are counted.
func (d *drill) pool(config worker.Config) {
	d.t.Helper()
	_, store := d.connect(d.address)
	config.Concurrency = 20
	daemon, err := worker.New(counted{fixture.Whole(store), d.record}, d.handle, config)
	d.check("open a worker pool", err)
	d.workers.run(daemon.Run)
}

// until asks until a condition holds. To be unable to ask is not to hold.
func (d *drill) until(what string, holds func() (bool, error)) {
	d.t.Helper()
	d.check("wait for "+what, d.await(holds))
}

// await is until for goroutines other than the one of the test.
func (d *drill) await(holds func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var why error // as long as there was time to ask
	for {
		yes, err := holds()
		if yes && err == nil {
			return nil
		}
		if d.ctx.Err() == nil {
			why = err
		}
		select {
		case <-tick.C:
		case <-d.ctx.Done():
			return errors.Join(d.ctx.Err(), why)
		}
	}
}

// progress waits until so many more results have been applied.
func (d *drill) progress(count int) {
	d.t.Helper()
	first := -1
	d.until("progress", func() (bool, error) {
		text, err := d.clients.Read.HGet(d.ctx, d.store.Keys.Stats, "success").Int()
		if err == nil && first < 0 {
			first = text
		}
		return text >= first+count, err
	})
}

func (d *drill) counter(name string) int64 {
	d.t.Helper()
	stats, err := report.Of(d.store).Stats(d.ctx)
	d.check("read the counters", err)
	return stats.Counters[name]
}

// refreshAll waits until every model has succeeded again. So none is stuck.
func (d *drill) refreshAll() {
	d.t.Helper()
	d.refreshedAfter(d.now())
}

// now asks for the clock of Redis until it answers.
func (d *drill) now() (now time.Time) {
	d.t.Helper()
	d.until("the clock of redis", func() (ok bool, err error) { now, err = d.store.Now(d.ctx); return true, err })
	return now
}

// refreshedAfter waits until every model has succeeded after an instant.
func (d *drill) refreshedAfter(now time.Time) {
	d.t.Helper()
	d.until("a refresh of every model", func() (bool, error) {
		records, err := d.store.Load(d.ctx, d.uids)
		for _, uid := range d.uids {
			if record := records[uid]; err == nil && !record.LastSuccessAt.After(now) {
				return false, fmt.Errorf("%s is %+v", uid, record.State)
			}
		}
		return err == nil, err
	})
}

// settle is called when the fault is over. It waits until every model has been refreshed, examines the queue under load, and ends everybody when
// nothing is left to do.
func (d *drill) settle() {
	d.t.Helper()
	d.refreshAll()
	d.healed = d.now()
	d.examine()
	d.check("store the policy", d.store.Fleet().PutPolicy(d.ctx, d.unscheduled()))
	d.drain()
	d.dispatchers.stop()
	d.workers.stop()
	d.examine()
}

// unscheduled is the policy without a schedule, under which everything comes to an end.
func (d *drill) unscheduled() policy.Policy {
	once := d.policy
	once.Rule, once.Spread, once.Retries = "", 0, policy.Delays{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	return once
}

func (d *drill) drain() {
	d.t.Helper()
	d.until("an empty queue", func() (bool, error) {
		stats, err := report.Of(d.store).Stats(d.ctx)
		return stats.Due+stats.Waiting+stats.Running+stats.Input+stats.Output+stats.Control+stats.Claimed == 0, err
	})
}

// conclude is a whole drill: models are refreshed, a fault strikes, and when all has settled the guarantees are checked. It logs the numbers.
func (d *drill) conclude(fault func()) *tally {
	d.t.Helper()
	d.begin()
	fault()
	d.settle()
	return d.audit()
}

func (d *drill) examine() {
	d.t.Helper()
	report, err := doctor.Check(d.ctx, &store.Queue{Parts: []*store.Store{d.store}}, doctor.Options{})
	d.check("examine the queue", err)
	failIf(d.t, report.Total(doctor.Error) > 0 || report.Models != len(d.uids),
		"want %d models and no broken invariant, got %d and %+v", len(d.uids), report.Models, report.Findings)
}

type daemonGroup struct {
	t       testing.TB
	ctx     context.Context
	stop    func()
	running sync.WaitGroup
}

func newDaemonGroup(ctx context.Context, t testing.TB) *daemonGroup {
	ctx, stop := context.WithCancel(ctx)
	g := &daemonGroup{t: t, ctx: ctx}
	g.stop = func() { stop(); g.running.Wait() }
	return g
}

func (g *daemonGroup) run(daemon func(context.Context) error) {
	g.running.Go(func() {
		err := daemon(g.ctx)
		failIf(g.t, err != nil, "%v", err)
	})
}

// listener is the service that worker processes post to; it notes every attempt that was worked on.
func (d *drill) listener() *httptest.Server {
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		d.record.ran(r.Header.Get("Refreshd-Attempt-Uid"))
	}))
	d.t.Cleanup(service.Close)
	return service
}

// daemonProcesses is one process of each kind, started again as soon as it was killed.
type daemonProcesses struct {
	*drill
	program   string
	commands  [][]string
	processes []*testkit.Process
	kills     int
}

// startProcesses starts a program, which is refreshd of this or another version.
func (d *drill) startProcesses(program string, commands ...[]string) *daemonProcesses {
	d.t.Helper()
	g := &daemonProcesses{drill: d, program: program, commands: commands}
	for i := range commands {
		g.processes = append(g.processes, g.start(i))
	}
	return g
}

func (g *daemonProcesses) start(i int) *testkit.Process {
	g.t.Helper()
	command := g.commands[i]
	return testkit.Start(g.t, g.program, append([]string{command[0], "--redis", g.address}, command[1:]...)...)
}

// kill kills one process in the middle of its work and starts it anew.
func (g *daemonProcesses) kill(i int) {
	g.t.Helper()
	g.processes[i].Kill()
	code := g.processes[i].Wait()
	failIf(g.t, code != -1, "the fault did not strike: want %v ended by a signal, got exit code %d", g.commands[i], code)
	g.kills++
	g.processes[i] = g.start(i)
}

// TestDaemonsThatAreKilledAgainAndAgainLoseNothing gives each attempt an hour: what a dead worker had taken has to be handed back, as
// no deadline would help within the time of the test.
func TestDaemonsThatAreKilledAgainAndAgainLoseNothing(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.policy.Timeout, d.elsewhere = time.Hour, true
	service := d.listener()
	worker := []string{"worker", "--http", service.URL, "--worker-lease", "1s", "--concurrency", "8"}
	poller := []string{"poller", "--lease", "1s", "--tick", "100ms"}
	g := d.startProcesses(testkit.Binary(t), []string{"dispatcher"}, poller, poller, worker, worker)
	d.save()
	d.refreshAll()
	for round := range 8 * *timesFlag {
		for i := range g.commands {
			if (round+i)%2 == 0 { // half of them at once
				g.kill(i)
			}
		}
		d.progress(20)
	}
	d.settle()
	stopAll(t, g.processes...)
	y := d.audit()
	failIf(t, y.events["timeout"] > 0, "want no attempt ended by its deadline, got %d", y.events["timeout"])
	t.Logf("%d processes were killed", g.kills)
}
