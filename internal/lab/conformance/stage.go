package conformance

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/redisurl"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// stage is where one scenario is played: a queue with daemons of its own, and a worker.
type stage struct {
	scenario
	config   *Config
	clients  *redis.Clients
	queue    *store.Queue
	app      *client.Client
	proxy    *proxy
	address  redisurl.Address
	worker   *process
	happened chan model.JournalEntry

	seen   []model.JournalEntry
	checks []Check
	cost   *Cost
	err    error // the first that keeps the scenario from being played
}

// play plays one scenario, and removes its remains in Redis.
func play(ctx context.Context, config *Config, clients *redis.Clients, address redisurl.Address, name string) (s *stage, err error) {
	s = &stage{config: config, clients: clients, address: address, happened: make(chan model.JournalEntry)}
	s.scenario = scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })] // Validate has looked
	defer func() {
		if err != nil {
			err = fmt.Errorf("scenario %s: %w", name, err)
		}
	}()
	if s.proxy, err = newProxy(address.Hosts[0], config.Clock); err != nil {
		return s, err
	}
	defer func() { // when the worker has ended
		_ = s.proxy.listener.Close()
		s.proxy.cut()
		s.proxy.restore()
		s.proxy.copying.Wait()
	}()
	if err := s.open(ctx); err != nil {
		return s, err
	}
	defer func() { _ = s.app.Close() }()
	defer func() { // no key is left
		ctx := context.WithoutCancel(ctx)
		keys, failed := store.NewKeys(s.queue.Name)
		err = errors.Join(err, failed, s.clients.Write.Del(ctx, keys.Settings).Err())
		for _, part := range s.queue.Parts {
			err = errors.Join(err, part.Report().Clear(ctx))
		}
	}()
	wait, err := s.startDaemons(ctx)
	if err != nil {
		return s, err
	}
	defer wait()
	s.startWorker(ctx)
	s.play(ctx, s)
	if s.worker != nil {
		s.worker.kill()
	}
	return s, s.err
}

// open makes the queue.
func (s *stage) open(ctx context.Context) (err error) {
	config := store.Config{Queue: "{conformance-" + s.name + "-" + strings.ToLower(rand.Text()[:8]) + "}"}
	if s.parts > 1 {
		if err := store.Create(ctx, s.clients, config, s.parts); err != nil {
			return err
		}
	}
	if s.queue, err = store.Open(ctx, s.clients, config); err != nil {
		return err
	}
	if err := s.queue.SetWire(ctx, s.wire, false); err != nil {
		return err
	}
	if s.queue, err = store.Open(ctx, s.clients, config); err != nil {
		return err
	}
	s.app, err = client.Open(ctx, s.config.Redis, config.Queue, client.Config{By: "conformance", Timeout: startup}) // it waits for our own poller, not for the worker
	return err
}

// startDaemons runs the daemons and follows the journals of all parts; the returned function ends all that.
func (s *stage) startDaemons(ctx context.Context) (wait func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	wait = func() { cancel(); running.Wait() }
	for _, part := range s.queue.Parts {
		d, err := dispatcher.New(dispatcher.RoomsOf(part), dispatcher.Config{Log: s.config.Log, Tick: lease / 12, WorkerLease: cmp.Or(s.lease, lease)})
		if err != nil {
			return wait, err
		}
		p, err := poller.New(poller.RoomsOf(part), poller.Config{Log: s.config.Log})
		if err != nil {
			return wait, err
		}
		running.Go(func() { _ = d.Run(ctx) }) // it goes on after errors, and logs them
		running.Go(func() { _ = p.Run(ctx) })
		running.Go(func() { s.follow(ctx, part) })
	}
	return wait, nil
}

// follow records the events of a part of the queue.
func (s *stage) follow(ctx context.Context, part *store.Store) {
	for after := report.TailStart; ctx.Err() == nil; {
		entries, next, err := report.Of(part).Tail(ctx, after)
		if err != nil {
			return // the daemons log it too
		}
		after = next
		for _, e := range entries {
			select {
			case s.happened <- e:
			case <-ctx.Done():
			}
		}
	}
}

// startWorker starts the worker, and waits until it asks Redis for something: no patience is spent on the start of many programs at once.
func (s *stage) startWorker(ctx context.Context) {
	through := url.URL{Scheme: "redis", Host: s.proxy.listener.Addr().String(), Path: fmt.Sprintf("/%d", s.address.DB)}
	if s.address.Username+s.address.Password != "" {
		through.User = url.UserPassword(s.address.Username, s.address.Password)
	}
	s.worker, s.err = start(s.config, s.name, []string{
		"REDIS_URL=" + through.String(), "REFRESHD_QUEUE=" + s.queue.Name, "REFRESHD_CONCURRENCY=" + strconv.Itoa(max(1, s.concurrency)),
	})
	if s.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	select {
	case <-s.proxy.begun:
	case <-s.worker.exited: // the checks report it
	case <-ctx.Done():
	}
}

// lease is the lease of the worker: three of its heartbeats, so that a test waits little for it.
const lease = 3 * time.Second

// startup is how long the start of a worker may take, and our own answers.
const startup = time.Minute

// fail notes why the scenario cannot be played.
func (s *stage) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// get reads a model.
func (s *stage) get(ctx context.Context, uid string) (m model.Model) {
	m, err := s.app.Get(ctx, uid)
	s.fail(err)
	return m
}

// work is the payload of a model: the instructions for the worker under test.
type work map[string]any

func (s *stage) put(ctx context.Context, uid string, todo work) { s.putFor(ctx, uid, todo, "1h") }

func (s *stage) putFor(ctx context.Context, uid string, todo work, timeout string) {
	s.putUnder(ctx, uid, todo, map[string]any{"timeout": timeout, "retries": []any{}, "on_exhausted": "give_up"})
}

func (s *stage) putUnder(ctx context.Context, uid string, todo work, policy map[string]any) {
	if s.err == nil {
		_, s.err = s.app.Put(ctx, client.Definition{UID: uid, Payload: todo, Policy: policy})
	}
}

func (s *stage) push(ctx context.Context, entry string) {
	if s.err == nil {
		s.err = s.clients.Write.RPush(ctx, s.queue.Parts[0].Keys.Input, entry).Err()
	}
}

func (s *stage) times(uid string, event model.Event) (n int) {
	for _, e := range s.seen {
		if e.UID == uid && e.Event == event {
			n++
		}
	}
	return n
}

// until waits until something has happened to a model; false: not within the patience.
func (s *stage) until(ctx context.Context, uid string, events ...model.Event) bool {
	return s.within(ctx, s.config.Patience, func() bool {
		return slices.ContainsFunc(events, func(event model.Event) bool { return s.times(uid, event) > 0 })
	})
}

// succeeds puts a model and waits for its success.
func (s *stage) succeeds(ctx context.Context, uid string, todo work) bool {
	s.put(ctx, uid, todo)
	return s.until(ctx, uid, model.EventSuccess)
}

// within waits until a condition holds; false: not within the patience, or a second after the worker has ended.
func (s *stage) within(ctx context.Context, patience time.Duration, holds func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond) // no event says that a worker has taken an entry
	defer ticker.Stop()
	var exited chan struct{}
	if s.worker != nil {
		exited = s.worker.exited
	}
	for s.err == nil && !holds() {
		select {
		case e := <-s.happened:
			s.seen = append(s.seen, e)
		case <-ticker.C:
		case <-exited: // its last message may be on its way
			exited = nil
			ctx, cancel = context.WithTimeout(ctx, min(time.Second, patience))
			defer cancel()
		case <-ctx.Done():
			return false
		}
	}
	return s.err == nil
}

// inHand waits until the worker has taken the attempt of a model and said so, or a moment if it does not say so.
func (s *stage) inHand(ctx context.Context, uid string) {
	s.taken(ctx, uid)
	s.within(ctx, 3*time.Second, func() bool { return s.times(uid, model.EventStarted) > 0 })
}

// taken waits until the worker has taken the attempt of a model; false: not within the patience.
func (s *stage) taken(ctx context.Context, uid string) bool {
	return s.until(ctx, uid, model.EventStart) && s.within(ctx, s.config.Patience, func() bool { return s.inLine(ctx)[uid] == 0 })
}

// inLine counts the entries of each model that no worker has taken, in a queue of one part.
func (s *stage) inLine(ctx context.Context) map[string]int {
	entries, err := s.queue.Parts[0].InputPart(ctx, 0, 1000)
	if ctx.Err() == nil {
		s.fail(err)
	}
	waiting := map[string]int{}
	for _, e := range entries {
		waiting[e.UID]++
	}
	return waiting
}

func (s *stage) counter(ctx context.Context, names ...string) (sum int64) {
	for _, part := range s.queue.Parts {
		stats, err := report.Of(part).Stats(ctx)
		s.fail(err)
		for _, name := range names {
			sum += stats.Counters[name]
		}
	}
	return sum
}

func (s *stage) must(text string, holds bool, found string) { s.check(Must, text, holds, found) }

func (s *stage) should(text string, holds bool, found string) { s.check(Should, text, holds, found) }

// check notes a check. A failed one reports what was found instead, and how the worker has ended if it has.
func (s *stage) check(level Level, text string, holds bool, found string) {
	c := Check{Scenario: s.name, Level: level, Text: text, Holds: holds}
	if !holds {
		c.Found = found
		if s.worker != nil && s.worker.ended() != "" {
			c.Found += "; the worker has ended: " + s.worker.ended()
		}
	}
	s.checks = append(s.checks, c)
}
