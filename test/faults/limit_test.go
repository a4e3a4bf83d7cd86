package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/internal/trials/bench"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/poller"
)

// hosts is the other side: what runs on each host at a time, as workers see it.
type hosts struct {
	mu      sync.Mutex
	running map[string]int
	most    map[string]int
	done    map[string]int
	freed   map[string][]time.Time     // when places became free that nobody has taken since
	unused  map[string][]time.Duration // for how long places were free that somebody has taken
}

func (h *hosts) begin(host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[host]++
	h.most[host] = max(h.most[host], h.running[host])
	if freed := h.freed[host]; len(freed) > 0 {
		h.freed[host], h.unused[host] = freed[1:], append(h.unused[host], time.Since(freed[0]))
	}
}

func (h *hosts) end(host string) (all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[host]--
	h.done[host]++
	h.freed[host] = append(h.freed[host], time.Now())
	for _, done := range h.done {
		all += done
	}
	return all
}

// crowd is a fleet of which no more than so many models of a host may run.
type crowd struct {
	*fleet
	hosts
	count, each int
	policy      policy.Policy
	slow        string        // the host that takes four times as long
	length      time.Duration // of the work of an attempt
	told        chan struct{} // not nil: the slow host answers nothing until this is closed
	taken       chan struct{} // a worker that is behind has taken an attempt
	finished    chan struct{}
}

const (
	perHost = 4
	aWhile  = 50 * time.Millisecond // that a worker works on an attempt
)

func newCrowd(t testing.TB, count, each, running int) *crowd {
	t.Helper()
	return newCrowdOf(t, count, each, running, time.Minute)
}

// newCrowdOf is newCrowd with another timeout than the usual one.
func newCrowdOf(t testing.TB, count, each, running int, timeout time.Duration) *crowd {
	t.Helper()
	c := &crowd{
		fleet: newFleet(t), count: count, each: each, slow: "h000", length: aWhile, taken: make(chan struct{}, 1), finished: make(chan struct{}),
		hosts: hosts{
			running: map[string]int{}, most: map[string]int{}, done: map[string]int{},
			freed: map[string][]time.Time{}, unused: map[string][]time.Duration{},
		},
	}
	key, _ := policy.ParseKey("{host(input_url)}")
	p := policy.Default()
	p.Name, p.Timeout, p.Limits = "polite", timeout, []policy.Limit{{Key: key, Running: running}}
	if err := c.Store.Fleet().PutPolicy(c.ctx, p); err != nil {
		t.Fatal(err)
	}
	c.policy = p
	c.save(0, each)
	return c
}

// save saves models that are due, so many of each host behind each other: the worst order.
func (c *crowd) save(from, to int) {
	c.t.Helper()
	now, err := c.Store.Now(c.ctx)
	for host := 0; host < c.count && err == nil; host++ {
		var transitions []*store.Transition
		for i := from; i < to; i++ {
			record := &store.Record{Model: model.Model{UID: fmt.Sprintf("h%03d/m%03d", host, i)}}
			definition := model.Definition{UID: record.UID, Payload: fmt.Sprintf(`{"input_url":"http://h%03d/x"}`, host), PolicyName: c.policy.Name}
			decision, _, putErr := record.Put(definition, c.policy, false, now)
			if putErr != nil {
				c.t.Fatal(putErr)
			}
			transitions = append(transitions, record.Decide(decision, now))
		}
		c.Commit(now, transitions...)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// take starts a worker for each attempt at once: only the limits keep them from being too many. It pops what there is together, or it would be
// what is measured.
func (c *crowd) take(ctx context.Context) error {
	client := c.Server.Client(c.t)
	var working sync.WaitGroup
	defer working.Wait()
	for ctx.Err() == nil {
		_, entries, err := client.BLMPop(ctx, time.Second, "left", 100, c.Store.Keys.Input).Result()
		if err != nil {
			continue // nothing to do yet, or the end
		}
		for _, raw := range entries {
			var entry fixture.Entry
			if err := json.Unmarshal([]byte(raw), &entry); err != nil {
				return fmt.Errorf("read entry %s: %w", raw, err)
			}
			working.Go(func() { c.answer(ctx, client, entry) })
		}
	}
	return nil
}

// takeLate is take of workers that are behind: every other wave is taken shortly before its deadlines, which pass while it is worked on.
func (c *crowd) takeLate(ctx context.Context) error {
	client := c.Server.Client(c.t)
	var working sync.WaitGroup
	defer working.Wait()
	for ctx.Err() == nil {
		next := 5 * time.Millisecond // until something waits
		raw, err := client.LIndex(ctx, c.Store.Keys.Input, 0).Result()
		if err == nil {
			next = readEntry(raw).patience() - c.length/2
		}
		if next > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(next):
			}
			continue // another may stand there now
		}
		if raw, err = client.LPop(ctx, c.Store.Keys.Input).Result(); err == nil {
			select {
			case c.taken <- struct{}{}:
			default: // it is told already
			}
			working.Go(func() { c.answer(ctx, client, readEntry(raw).Entry) })
		}
	}
	return nil
}

// lateEntry is an entry with its deadline.
type lateEntry struct {
	fixture.Entry
	deadline time.Time
}

// patience is for how long a worker lets an attempt wait: that of every other wave until its deadline.
func (e lateEntry) patience() time.Duration {
	_, name, _ := strings.Cut(e.UID, "/m")
	if number, _ := strconv.Atoi(name); number/perHost%2 == 1 {
		return 0
	}
	return time.Until(e.deadline)
}

func readEntry(raw string) (e lateEntry) {
	_ = json.Unmarshal([]byte(raw), &e.Entry) // refreshd wrote it
	e.deadline, _ = time.Parse(time.RFC3339, e.DeadlineAt)
	return e
}

func (c *crowd) answer(ctx context.Context, client redis.UniversalClient, entry fixture.Entry) {
	at, _ := url.Parse(entry.InputURL)
	c.begin(at.Host)
	length := c.length
	switch {
	case at.Host == c.slow && c.told != nil:
		length = testkit.Limit
	case at.Host == c.slow:
		length *= 4
	}
	timer := time.NewTimer(length) // the work itself
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-c.told:
	case <-timer.C:
	}
	all := c.end(at.Host) // before anybody can start another
	client.RPush(context.WithoutCancel(ctx), c.Store.Keys.Output, fixture.Result("success", entry.UID, entry.AttemptUID))
	if all == c.count*c.each {
		close(c.finished)
	}
}

// TestNeverAFifthRunsOnAnyHostWhateverIsKilled looks from the side of the workers: while dispatchers and pollers are killed, at most four
// attempts of a host run at a time, each model is refreshed once, and no slot leaks.
func TestNeverAFifthRunsOnAnyHostWhateverIsKilled(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, long.Or(10, 200), long.Or(20, 100), perHost)
	commands := [][]string{{"dispatcher"}, {"dispatcher"}, {"poller", "--lease", "1s", "--tick", "100ms"}, {"poller", "--lease", "1s", "--tick", "100ms"}}
	processes := make([]*testkit.Process, len(commands))
	start := func(i int) {
		processes[i] = testkit.Refreshd(t, append([]string{commands[i][0], "--redis", "redis://" + c.Server.Addr, "--log-level", "error"}, commands[i][1:]...)...)
	}
	for i := range commands {
		start(i)
	}
	c.run(c.take)
	for round := range long.Or(4, 20) {
		c.await((round + 1) * c.count * c.each / (2 * long.Or(4, 20)))
		victim := round % len(commands)
		processes[victim].Kill()
		processes[victim].Wait()
		start(victim)
	}
	testkit.Await(t, c.finished, "all models refreshed")
	c.rest()
	for _, process := range processes {
		process.Ask()
	}
	for _, process := range processes {
		process.Wait()
	}
	c.checkNoFifth()
}

// TestNeverAFifthRunsThoughWorkersTakeLateSayNothingAndDispatchersFreeze lets attempts wait in line until just before their deadlines, and workers never
// say that they begin. So all deadlines pass while somebody works, other models have become due, and three dispatchers were frozen: they find all
// that at once.
func TestNeverAFifthRunsThoughWorkersTakeLateSayNothingAndDispatchersFreeze(t *testing.T) {
	t.Parallel()
	c, waves := newCrowdOf(t, 5, perHost, perHost, 3*time.Second), long.Or(2, 20)
	c.length, c.each = 400*time.Millisecond, waves*perHost
	start := func(command string) *testkit.Process {
		return testkit.Refreshd(t, command, "--redis", "redis://"+c.Server.Addr, "--log-level", "error")
	}
	dispatchers, p := []*testkit.Process{start("dispatcher"), start("dispatcher"), start("dispatcher")}, start("poller")
	c.run(c.takeLate)
	for wave := 1; wave < waves; wave += 2 {
		select {
		case <-c.taken:
		case <-c.ctx.Done():
			t.Fatal("want attempts taken late")
		}
		for _, d := range dispatchers {
			d.Freeze()
		}
		c.save(wave*perHost, (wave+1)*perHost)
		testkit.Eventually(t, "all deadlines passed", func() bool {
			now, err := c.Store.Now(c.ctx)
			running, late := c.Redis.ZCard(c.ctx, c.Store.Keys.Running).Val(), c.Redis.ZCount(c.ctx, c.Store.Keys.Running, "-inf", fmt.Sprint(now.UnixMilli())).Val()
			return err == nil && running == late
		})
		for _, d := range dispatchers {
			d.Thaw()
		}
		c.await((wave + 1) * c.count * perHost)
		select {
		case <-c.taken: // of this wave
		default:
		}
		c.save((wave+1)*perHost, min(waves, wave+2)*perHost)
	}
	testkit.Await(t, c.finished, "all models refreshed")
	c.rest()
	if c.Stats()["taken"] == 0 {
		t.Errorf("want attempts with a new deadline, got %v", c.Stats())
	}
	for _, process := range append(dispatchers, p) {
		process.Ask()
	}
	for _, process := range append(dispatchers, p) {
		process.Wait()
	}
	c.checkNoFifth()
}

// checkNoFifth checks what the workers have seen.
func (c *crowd) checkNoFifth() {
	c.t.Helper()
	for host, most := range c.most {
		if most > perHost {
			c.t.Errorf("%s: want at most %d at a time, got %d", host, perHost, most)
		}
		if c.done[host] != c.each {
			c.t.Errorf("%s: want %d refreshed, got %d", host, c.each, c.done[host])
		}
	}
}

// serve starts a dispatcher and a poller in this process, and the workers.
func (c *crowd) serve(config dispatcher.Config) {
	c.t.Helper()
	d, err := dispatcher.New(c.Store, config)
	if err != nil {
		c.t.Fatal(err)
	}
	p, err := poller.New(c.Store, poller.Config{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.run(c.take)
	c.run(d.Run)
	c.run(p.Run)
}

// TestAHostThatNeverAnswersHoldsUpNoOther lets a host answer nothing, whose models stand before all others and fill more than a page: all others
// are refreshed while its four places are taken, and none of its other models is handed out.
func TestAHostThatNeverAnswersHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 5, 30, perHost)
	c.told = make(chan struct{})
	c.serve(dispatcher.Config{Batch: 10})
	c.await((c.count - 1) * c.each)
	c.mu.Lock()
	if running, done := c.running[c.slow], c.done[c.slow]; running != perHost || done != 0 {
		t.Errorf("%s: want %d running and none refreshed, got %d and %d", c.slow, perHost, running, done)
	}
	c.mu.Unlock()
	if parked := c.Scores(c.Store.Keys.ParkedBy("limit:host=" + c.slow)); len(parked) != c.each-perHost {
		t.Errorf("%s: want %d parked, got %d", c.slow, c.each-perHost, len(parked))
	}
	close(c.told)
	testkit.Await(t, c.finished, "all models refreshed")
	c.rest()
}

// await waits until so many models are refreshed.
func (c *crowd) await(count int) {
	c.t.Helper()
	testkit.Eventually(c.t, fmt.Sprintf("%d models refreshed", count), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		all := 0
		for _, done := range c.done {
			all += done
		}
		return all >= count
	})
}

// rest waits until nothing is left of what the models took: no attempt, no place at a gate, no slot of a key.
func (c *crowd) rest() {
	c.t.Helper()
	k := c.Store.Keys
	keys := []string{k.Due, k.Urgent, k.Running, k.Parked, k.Gates, k.Limit("host=h000"), k.Limit("host=h001"), k.ParkedBy("limit:host=h000")}
	testkit.Eventually(c.t, "nothing left of what the models took", func() bool {
		left, err := c.Redis.Exists(c.ctx, keys...).Result()
		return err == nil && left == 0
	})
}

// BenchmarkFourAHost says how near a fleet comes to what its limits allow: four attempts of each host at a time, one behind the other. Beside it
// the same fleet without a limit: what these machines do at most.
func BenchmarkFourAHost(b *testing.B) {
	for _, fleet := range []struct{ hosts, each int }{{10, 500}, {40, 300}, {200, 100}} {
		b.Run(fmt.Sprintf("hosts=%d", fleet.hosts), func(b *testing.B) {
			ideal := float64(fleet.each) / perHost * aWhile.Seconds()
			b.ReportMetric(ideal/crowded(b, fleet.hosts, fleet.each, perHost), "of-ideal")
		})
	}
	b.Run("hosts=200,unlimited", func(b *testing.B) { crowded(b, 200, 100, 100_000) })
}

// crowded returns how many seconds a crowd takes on an average until all its models are refreshed.
func crowded(b *testing.B, count, each, running int) (perOp float64) {
	for b.Loop() {
		b.StopTimer()
		c := newCrowd(b, count, each, running)
		c.slow = ""
		b.StartTimer()
		c.serve(dispatcher.Config{})
		<-c.finished
		b.StopTimer()
		c.stop()
		c.daemon.Wait()
		b.StartTimer()
	}
	perOp = b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(float64(count*each)/perOp, "attempts/s")
	return perOp
}

// BenchmarkFreedPlace says for how long a place that a worker has freed is not used while other models of its host wait for one.
func BenchmarkFreedPlace(b *testing.B) {
	for _, slow := range []string{"none", "h000"} {
		b.Run("slow="+slow, func(b *testing.B) {
			var unused []time.Duration
			for b.Loop() {
				c := newCrowd(b, 10, 100, perHost)
				c.slow = slow
				c.serve(dispatcher.Config{})
				<-c.finished
				c.stop()
				c.daemon.Wait()
				delete(c.unused, "h000") // whether slow or not, so that both tell of the same hosts
				unused = slices.Concat(unused, slices.Concat(slices.Collect(maps.Values(c.unused))...))
			}
			spread := bench.NewSpread(unused)
			b.ReportMetric(spread.P50, "ms-unused-p50")
			b.ReportMetric(spread.P99, "ms-unused-p99")
			b.ReportMetric(0, "ns/op")
		})
	}
}
