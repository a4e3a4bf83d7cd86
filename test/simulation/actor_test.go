package simulation

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/worker"
)

// actor is one process. Its goroutine runs only while it holds the baton: from one call to Redis to the next.
type actor struct {
	name  string
	role  role
	world *world
	ctx   context.Context

	baton   chan fate
	at      *call // the call at which it waits for the baton; nil: between two rounds
	ended   bool
	inside  bool // a call to Redis is under way
	dying   bool // what its clients still send, to let go of what they watch, is no step
	loading bool // its last call has loaded a script
	until   int  // frozen until this step
	began   moment
}

type actorKey struct{}

type role interface {
	// round does a round of work, with errors that a daemon would log and wait out.
	round(ctx context.Context) error
	// resign ends the process in order.
	resign(ctx context.Context)
}

// spawn starts an actor; it waits between two rounds.
func (w *world) spawn(name string, role role) *actor {
	a := &actor{name: name, role: role, world: w, baton: make(chan fate)}
	a.ctx = context.WithValue(context.Background(), actorKey{}, a)
	w.actors = append(w.actors, a)
	go a.live()
	return a
}

// live does rounds until the process dies. The baton goes back at the end whatever ends it.
func (a *actor) live() {
	defer func() {
		a.ended = true
		a.world.back <- struct{}{}
	}()
	for f := <-a.baton; f != killed; f = a.wait(nil) {
		if f == resigned {
			a.role.resign(a.ctx)
			return
		}
		if err := a.role.round(a.ctx); err != nil {
			a.world.note("%s: round failed: %v", a.name, err)
		}
	}
}

// call is where an actor meets the wire.
func (a *actor) call(c *call) error {
	return a.suffer(c, a.wait(c))
}

// die ends the process in the middle of its round.
func (a *actor) die() {
	a.dying = true
	runtime.Goexit()
}

// wait hands the baton back and waits for it.
func (a *actor) wait(c *call) fate {
	a.at = c
	a.world.back <- struct{}{}
	return <-a.baton
}

// resume lets an actor run to its next call.
func (w *world) resume(a *actor, f fate) {
	if a.at == nil {
		a.began = moment{since: w.steps, looks: a.began.looks, clock: []time.Time{w.now}, queueCircuits: []map[string]string{w.before.queueCircuit}, shared: []string{w.before.policies[sharedPolicy]}, fronts: [][]string{w.before.front}, circuits: []map[string]map[string]string{w.before.circuits}}
	}
	a.baton <- f
	<-w.back
}

// queue is all that daemons need of Redis. fixture.Part is one, and so is one with a planted bug.
type queue interface {
	dispatcher.Store
	dispatcher.Flow
	NoteSample(ctx context.Context, now time.Time) error
	TrimOutbox(ctx context.Context) (unread int, err error)
	poller.Store
	poller.Flow
	worker.Queue
}

type dispatcherRole struct{ *dispatcher.Dispatcher }

func (d dispatcherRole) round(ctx context.Context) error {
	_, err := d.RunOnce(ctx)
	return err
}

func (dispatcherRole) resign(context.Context) {}

type pollerRole struct {
	*poller.Poller
	queue queue
	owner string
}

func (p pollerRole) round(ctx context.Context) error {
	_, err := p.RunOnce(ctx)
	return err
}

// resign does what poller.Run does at its end.
func (p pollerRole) resign(ctx context.Context) { _ = p.queue.Resign(ctx, p.owner) }

// crowded lets each dispatcher see all that is due, as if it were alone.
type crowded struct{ queue }

func (c crowded) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	asked.Owner = ""
	return c.queue.ReadDue(ctx, asked)
}

// noSamples notes no sample and no zone data: no decision reads them, and their calls would but make more places to visit.
type noSamples struct{ queue }

// noNotes notes no zone data, likewise.
type noNotes struct{ poller.Store }

func (noNotes) NoteZones(context.Context, string) (time.Time, error) { return time.Time{}, nil }

func (noSamples) NoteZones(context.Context, string) (time.Time, error) { return time.Time{}, nil }

func (noSamples) NoteSample(context.Context, time.Time) error { return nil }

func newDispatcher(q queue, config dispatcher.Config) (role, error) {
	d, err := dispatcher.New(dispatcher.Rooms{Store: noSamples{q}, Flow: q, Report: noSamples{q}, Outbox: q}, config)
	return dispatcherRole{d}, err
}

// lease is how long the pollers of a simulation may go without a heartbeat.
const lease = 10 * time.Second

func newPoller(q queue, config poller.Config) (role, error) {
	config.Lease = lease
	p, err := poller.New(poller.Rooms{Store: noSamples{q}, Flow: q}, config)
	return pollerRole{p, q, config.Owner}, err
}

type delayed struct {
	pipeline [][]any
	began    moment // of its caller's round
}

// delay keeps a request whose caller has given up; it is executed later.
func (w *world) delay(a *actor, c *call) {
	late := delayed{began: a.began}
	for _, command := range c.commands {
		late.pipeline = append(late.pipeline, slices.Clone(command.Args()))
	}
	w.delayed = append(w.delayed, late)
}

func (w *world) deliver() {
	at := w.rng.IntN(len(w.delayed))
	pipeline, began := w.delayed[at].pipeline, w.delayed[at].began
	w.delayed = slices.Delete(w.delayed, at, at+1)
	ctx := context.Background()
	pipe := w.server.write.Pipeline()
	for _, args := range pipeline {
		pipe.Do(ctx, args...)
	}
	c := &call{began: began}
	c.execute = func() error { var err error; c.commands, err = pipe.Exec(ctx); return err }
	for _, args := range pipeline {
		c.commands = append(c.commands, redis.NewCmd(ctx, args...))
	}
	w.note("delivered late: %s", c)
	_ = w.execute(nil, c)
}

// judge fails when the last deed has broken a promise.
func (w *world) judge() {
	must(w.broken)
}

// step lets one actor come to its next call, or lets something happen to the world.
func (w *world) step() {
	w.steps++
	if w.rng.IntN(100) < w.temper.mishaps {
		w.mishap()
		w.judge()
		return
	}
	a := w.pick()
	if a == nil {
		return
	}
	f := w.temper.fate(w.rng, a.at)
	if _, pool := a.role.(*poolRole); pool && a.at != nil && f == answered && w.rng.IntN(1000) < w.temper.deaf {
		f = unheard
	}
	if w.temper.waits && works(a) && w.rng.IntN(3) == 0 {
		a.until = w.steps + 10 + w.rng.IntN(30)
		w.note("%s rests", a.name)
		return
	}
	if w.rng.IntN(100) < w.temper.freezes {
		a.until = w.steps + 20 + w.rng.IntN(60)
		w.note("%s freezes", a.name)
		return
	}
	w.note("%s at %s: %s", a.name, a.at, f)
	w.resume(a, f)
	w.bury(a)
}

func works(a *actor) bool {
	switch a.role.(type) {
	case *workerRole, *poolRole:
		return true
	default:
		return false
	}
}

func (w *world) pick() *actor {
	if victim := w.victim(); victim != nil && w.rng.IntN(3) > 0 {
		victim.until = 0
		return victim
	}
	ready := make([]*actor, 0, len(w.actors))
	for _, a := range w.actors {
		if a.until > w.steps && !w.forgotten(a) {
			continue
		}
		ready = append(ready, a)
		if _, pool := a.role.(*poolRole); pool && w.temper.pools {
			ready = append(ready, a, a, a)
		}
		if a.role == w.operator && w.temper.steers {
			ready = append(ready, a)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return ready[w.rng.IntN(len(ready))]
}

// forgotten reports whether others have requeued what a worker pool had taken.
func (w *world) forgotten(a *actor) bool {
	pool, ok := a.role.(*poolRole)
	_, listed := w.before.workers[ownerOf(a)]
	return ok && pool.known && !listed
}

// victim is whose messages or attempts another one is about to take over: just then it may come back.
func (w *world) victim() *actor {
	for _, a := range w.actors {
		owner := takenOver(w.server.store.Keys, a.at)
		for _, other := range w.actors {
			if other != a && owner != "" && ownerOf(other) == owner {
				return other
			}
		}
	}
	return nil
}

// bury replaces an actor that has died by a new one of its kind.
func (w *world) bury(a *actor) {
	if w.judge(); !a.ended {
		return
	}
	w.actors = slices.DeleteFunc(w.actors, func(other *actor) bool { return other == a })
	if a.role == w.operator {
		w.operator = &operatorRole{world: w, spare: w.operator.spare, orders: w.operator.orders, brought: w.operator.brought}
		w.births++
		w.spawn("operator", w.operator)
		return
	}
	w.bear(a.name[:1])
}
