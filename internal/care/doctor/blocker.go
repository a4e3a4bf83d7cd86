package doctor

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/store/inspect"
	"github.com/refreshd/refreshd/model"
)

// maxGateLateness is by how much later than a gate opens dispatchers look at it at most: they look at some by themselves from time to time only,
// and leave one to a dispatcher that has died for a lease.
const maxGateLateness = 5 * time.Minute

func (c *checker) blockers(ctx context.Context, names []string) error {
	if err := c.index(store.KeyGate, "zset")(ctx, names); err != nil {
		return err
	}
	if c.wrongType[c.store.Keys.Gates] {
		return nil
	}
	return each(c.blocker)(ctx, names)
}

func (c *checker) blocker(ctx context.Context, name string) error {
	gate := model.Blocker(name)
	now, err := c.store.Now(ctx)
	if err != nil || c.wrongType[c.store.Keys.ParkedBy(name)] {
		return err
	}
	state, err := inspect.Of(c.store).BlockerState(ctx, gate, now)
	if err != nil || state.Parked == 0 {
		return err
	}
	var f Finding
	switch {
	case !state.Listed:
		f = gateLost.at(string(gate), "none, and models that wait for it")
	case state.Look.After(state.Opens.Add(maxGateLateness)):
		f = gateForgotten.wanting(model.FormatTime(state.Opens)).at(string(gate), "at "+model.FormatTime(state.Look))
	default:
		return nil
	}
	return c.repair(f, func() error { return inspect.Of(c.store).RecheckBlocker(ctx, gate, now) })
}

func (c *checker) rechecks(ctx context.Context) error {
	if c.wrongType[c.store.Keys.Gates] {
		return nil
	}
	gate, at, found, err := inspect.Of(c.store).OldestRecheck(ctx)
	if err == nil && found && c.now.Sub(at) > maxGateLateness {
		c.note(gateLate, c.store.Keys.Gates, string(gate)+", to be looked at "+model.FormatTime(at))
	}
	return err
}

// circuits checks that each probe of a circuit is made: otherwise no model ever starts again.
func (c *checker) circuits(ctx context.Context, names []string) error {
	lost, err := inspect.Of(c.store).LostProbes(ctx, names)
	if err != nil {
		return err
	}
	for name, uid := range lost {
		f := probeLost.at(c.store.Keys.Circuit(name), "probe "+uid+", which does not")
		if err := c.repairUnless("it changed", f, func() (bool, error) { return inspect.Of(c.store).DropProbe(ctx, name, uid, c.now) }); err != nil {
			return err
		}
	}
	return nil
}
