package simulation

import (
	"context"
	"time"
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
	loading bool // its last call has loaded a script
	until   int  // frozen until this step
	began   moment
}

type actorKey struct{}

// role is what an actor does.
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

// wait hands the baton back and waits for it.
func (a *actor) wait(c *call) fate {
	a.at = c
	a.world.back <- struct{}{}
	return <-a.baton
}

// resume lets an actor run to its next call.
func (w *world) resume(a *actor, f fate) {
	if a.at == nil {
		a.began = moment{since: w.steps, clock: []time.Time{w.now}, queueCircuits: []map[string]string{w.before.queueCircuit}, shared: []string{w.before.policies[sharedPolicy]}, fronts: [][]string{w.before.front}, circuits: []map[string]map[string]string{w.before.circuits}}
	}
	a.baton <- f
	<-w.back
}
