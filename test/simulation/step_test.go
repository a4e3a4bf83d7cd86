package simulation

import (
	"slices"
)

// step lets one actor come to its next call, or lets something happen to the world.
func (w *world) step() error {
	w.steps++
	if w.rng.IntN(100) < w.temper.mishaps {
		w.mishap()
		return w.broken
	}
	a := w.pick()
	if a == nil {
		return w.broken
	}
	f := w.temper.fate(w.rng, a.at)
	if _, pool := a.role.(*poolRole); pool && a.at != nil && f == answered && w.rng.IntN(1000) < w.temper.deaf {
		f = unheard
	}
	if w.temper.waits && works(a) && w.rng.IntN(3) == 0 {
		a.until = w.steps + 10 + w.rng.IntN(30)
		w.note("%s rests", a.name)
		return nil
	}
	if w.rng.IntN(100) < w.temper.freezes {
		a.until = w.steps + 20 + w.rng.IntN(60)
		w.note("%s freezes", a.name)
		return nil
	}
	w.note("%s at %s: %s", a.name, a.at, f)
	w.resume(a, f)
	return w.bury(a)
}

// works reports whether an actor is a worker.
func works(a *actor) bool {
	switch a.role.(type) {
	case *workerRole, *poolRole:
		return true
	default:
		return false
	}
}

// pick chooses who has the baton next.
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
func (w *world) bury(a *actor) error {
	if w.broken != nil || !a.ended {
		return w.broken
	}
	w.actors = slices.DeleteFunc(w.actors, func(other *actor) bool { return other == a })
	if a.role == w.operator {
		orders, brought := w.operator.orders, w.operator.brought
		w.operator = w.newOperator(w.operator.spare)
		w.operator.orders, w.operator.brought = orders, brought
		w.births++
		w.spawn("operator", w.operator)
		return nil
	}
	return w.bear(a.name[:1])
}
