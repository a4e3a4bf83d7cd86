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

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/lab/bench"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/policy"
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
	return h.refreshed()
}

// refreshed is how many models were refreshed. The caller holds the lock.
func (h *hosts) refreshed() (all int) {
	for _, done := range h.done {
		all += done
	}
	return all
}

// crowd is a fleet. No more than so many models of a host may run.
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

// newCrowd saves so many models on so many hosts, whose attempts have a while each.
func newCrowd(t testing.TB, count, each, running int, timeout time.Duration) *crowd {
	t.Helper()
	c := &crowd{
		fleet: newFleet(t), count: count, each: each, slow: "h000", length: aWhile, taken: make(chan struct{}, 1), finished: make(chan struct{}),
		hosts: hosts{
			running: map[string]int{}, most: map[string]int{}, done: map[string]int{},
			freed: map[string][]time.Time{}, unused: map[string][]time.Duration{},
		},
	}
	key, _ := policy.ParseKey("{host(input_url)}")
	c.policy = policy.Default()
	c.policy.Name, c.policy.Timeout, c.policy.Limits = "polite", timeout, []policy.Limit{{Key: key, Running: running}}
	must(t, c.Store.Fleet().PutPolicy(c.ctx, c.policy))
	c.saveEach(0, each)
	return c
}

// saveEach saves models that are due, so many of each host behind each other: the worst order.
func (c *crowd) saveEach(from, to int) {
	c.t.Helper()
	for host := range c.count {
		var uids []string
		for i := from; i < to; i++ {
			uids = append(uids, fmt.Sprintf("h%03d/m%03d", host, i))
		}
		c.save(c.policy, fmt.Sprintf("http://h%03d/x", host), uids)
	}
}

// take starts a worker for each attempt at once: only the limits keep them from being too many. It pops all there are together; otherwise it
// would limit them itself.
func (c *crowd) take(ctx context.Context) error {
	client := c.Server.Client(c.t)
	var working sync.WaitGroup
	defer working.Wait()
	return serve(ctx, client, c.Store.Keys.Input, 100, func(e entry) { working.Go(func() { c.answer(ctx, client, e) }) })
}

// takeLate is take of workers that are behind: every other wave is taken shortly before its deadlines, which pass while it is worked on.
func (c *crowd) takeLate(ctx context.Context) error {
	client := c.Server.Client(c.t)
	var working sync.WaitGroup
	defer working.Wait()
	for ctx.Err() == nil {
		next := 5 * time.Millisecond // until something waits
		raw, err := client.LIndex(ctx, c.Store.Keys.Input, 0).Result()
		var e entry
		if err == nil && json.Unmarshal([]byte(raw), &e) == nil {
			next = e.patience() - c.length/2
		}
		if next > 0 {
			rest(ctx, next)
			continue // another may be there now
		}
		if raw, err = client.LPop(ctx, c.Store.Keys.Input).Result(); err == nil {
			select {
			case c.taken <- struct{}{}:
			default: // it was reported already
			}
			_ = json.Unmarshal([]byte(raw), &e)
			working.Go(func() { c.answer(ctx, client, e) })
		}
	}
	return nil
}

// patience is for how long a worker lets an attempt wait: every other wave until its deadline.
func (e entry) patience() time.Duration {
	_, name, _ := strings.Cut(e.UID, "/m")
	if number, _ := strconv.Atoi(name); number/perHost%2 == 1 {
		return 0
	}
	return time.Until(e.deadline())
}

func (c *crowd) answer(ctx context.Context, client redis.UniversalClient, e entry) {
	at, _ := url.Parse(e.InputURL)
	c.begin(at.Host)
	length := c.length
	switch {
	case at.Host == c.slow && c.told != nil:
		length = check.Limit
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
	client.RPush(context.WithoutCancel(ctx), c.Store.Keys.Output, fixture.Result("success", e.UID, e.AttemptUID))
	if all == c.count*c.each {
		close(c.finished)
	}
}

// TestNeverAFifthRunsOnAnyHostWhateverIsKilled looks from the side of the workers: while dispatchers and pollers are killed, at most four
// attempts of a host run at a time, each model is refreshed once, and no slot leaks.
func TestNeverAFifthRunsOnAnyHostWhateverIsKilled(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, long.Or(10, 40), long.Or(12, 60), perHost, time.Minute)
	commands := []string{"dispatcher", "dispatcher", "poller", "poller"}
	processes := make([]*testkit.Process, len(commands))
	start := func(i int) {
		args := map[string][]string{"poller": {"--lease", "1s", "--tick", "100ms"}}[commands[i]]
		processes[i] = c.start(commands[i], args...)
	}
	for i := range commands {
		start(i)
	}
	c.run(c.take)
	for round := range long.Or(4, 12) {
		c.await((round + 1) * c.count * c.each / (2 * long.Or(4, 12)))
		victim := round % len(commands)
		processes[victim].Kill()
		start(victim)
	}
	c.finish(processes...)
	for host, done := range c.done {
		failIf(t, done != c.each, "%s: want %d refreshed, got %d", host, c.each, done)
	}
}

// finish waits until all models are refreshed and nothing is left of what they took, and checks what the workers have seen.
func (c *crowd) finish(processes ...*testkit.Process) {
	c.t.Helper()
	check.Await(c.t, c.finished, "all models refreshed")
	k := c.Store.Keys
	keys := []string{k.Due, k.Urgent, k.Running, k.Parked, k.Blockers, k.Limit("host=h000"), k.Limit("host=h001"), k.ParkedBy("limit:host=h000")}
	check.Eventually(c.t, "nothing left of what the models took", func() bool {
		left, err := c.Redis.Exists(c.ctx, keys...).Result()
		return err == nil && left == 0
	})
	stopAll(c.t, processes...)
	lost := c.Stats()["timeout"] // on a busy machine: such an attempt has no place any more, though its worker goes on
	for host, most := range c.most {
		failIf(c.t, most > perHost+lost || c.done[host] < c.each,
			"%s: want at most %d at a time, as %d timed out, and %d refreshed, got %d and %d", host, perHost+lost, lost, c.each, most, c.done[host])
	}
}

// TestNeverAFifthRunsThoughWorkersTakeLateSayNothingAndDispatchersFreeze lets attempts wait in line until just before their deadlines, and workers never
// say that they begin. So all deadlines pass while somebody works, other models have become due, and three dispatchers were frozen: they find all
// that at once.
func TestNeverAFifthRunsThoughWorkersTakeLateSayNothingAndDispatchersFreeze(t *testing.T) {
	t.Parallel()
	c, waves := newCrowd(t, 5, perHost, perHost, 3*time.Second), long.Or(2, 6)
	c.length, c.each = 400*time.Millisecond, waves*perHost
	dispatchers := []*testkit.Process{c.start("dispatcher"), c.start("dispatcher"), c.start("dispatcher")}
	processes := append(slices.Clip(dispatchers), c.start("poller"))
	c.run(c.takeLate)
	for wave := 1; wave < waves; wave += 2 {
		check.Await(t, c.taken, "attempts taken late")
		for _, d := range dispatchers {
			freeze(d)
		}
		c.saveEach(wave*perHost, (wave+1)*perHost)
		check.Eventually(t, "all deadlines passed", func() bool {
			now, err := c.Store.Now(c.ctx)
			running, late := c.Redis.ZCard(c.ctx, c.Store.Keys.Running).Val(), c.Redis.ZCount(c.ctx, c.Store.Keys.Running, "-inf", fmt.Sprint(now.UnixMilli())).Val()
			return err == nil && running == late
		})
		for _, d := range dispatchers {
			thaw(d)
		}
		c.await((wave + 1) * c.count * perHost)
		select {
		case <-c.taken: // of this wave
		default:
		}
		c.saveEach((wave+1)*perHost, min(waves, wave+2)*perHost)
	}
	c.finish(processes...) // on a busy machine an attempt may have timed out, and its model is refreshed once more
	failIf(t, c.Stats()["taken"] == 0, "want attempts with a new deadline, got %v", c.Stats())
}

// TestAHostThatNeverAnswersHoldsUpNoOther lets a host answer nothing, whose models precede all others and fill more than a page: all others
// are refreshed while its four places are taken, and none of its other models is handed out.
func TestAHostThatNeverAnswersHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 5, 20, perHost, time.Minute)
	c.told = make(chan struct{})
	c.run(c.take)
	c.runDaemons(dispatcher.Config{Batch: 10})
	c.await((c.count - 1) * c.each)
	c.mu.Lock()
	running, done := c.running[c.slow], c.done[c.slow]
	failIf(t, running != perHost || done != 0, "%s: want %d running and none refreshed, got %d and %d", c.slow, perHost, running, done)
	c.mu.Unlock()
	parked := c.Scores(c.Store.Keys.ParkedBy("limit:host=" + c.slow))
	failIf(t, len(parked) != c.each-perHost, "%s: want %d parked, got %d", c.slow, c.each-perHost, len(parked))
	close(c.told)
	c.finish()
}

func (c *crowd) await(count int) {
	c.t.Helper()
	check.Eventually(c.t, fmt.Sprintf("%d models refreshed", count), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.refreshed() >= count
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

// exhaust refreshes all models; the models of one host take four times as long.
func (c *crowd) exhaust(slow string) {
	c.slow = slow
	c.run(c.take)
	c.runDaemons(dispatcher.Config{})
	<-c.finished
}

// crowded returns how many seconds a crowd takes on an average until all its models are refreshed.
func crowded(b *testing.B, count, each, running int) (perOp float64) {
	for b.Loop() {
		b.StopTimer()
		c := newCrowd(b, count, each, running, time.Minute)
		b.StartTimer()
		c.exhaust("")
		b.StopTimer()
		c.stop()
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
				c := newCrowd(b, 10, 100, perHost, time.Minute)
				c.exhaust(slow)
				c.stop()
				delete(c.unused, "h000") // whether slow or not, so that both have the same hosts
				unused = slices.Concat(unused, slices.Concat(slices.Collect(maps.Values(c.unused))...))
			}
			spread := bench.NewSpread(unused)
			b.ReportMetric(spread.P50, "ms-unused-p50")
			b.ReportMetric(spread.P99, "ms-unused-p99")
			b.ReportMetric(0, "ns/op")
		})
	}
}
