package doctor

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// maxRecheckLateness is the longest time from when a blocker opens until it is rechecked: some are rechecked only from time to time, and one that a
// dead dispatcher has taken waits for its lease.
const maxRecheckLateness = 5 * time.Minute

func (c *checker) blockers(ctx context.Context, names []string) error {
	if err := c.index(store.KeyBlocker)(ctx, names); err != nil || c.wrongType[c.store.Keys.Blockers] {
		return err
	}
	for _, name := range names {
		blocker := model.Blocker(name)
		now, err := c.store.Now(ctx)
		if err != nil {
			return err
		}
		state, err := c.in.BlockerState(ctx, blocker, now)
		if err != nil {
			return err
		}
		f := blockerLost.at(string(blocker), "none, and models that wait for it")
		if state.Listed {
			f = blockerForgotten.wanting(model.FormatTime(state.Opens)).at(string(blocker), "at "+model.FormatTime(state.Look))
		}
		if state.Parked == 0 || state.Listed && !state.Look.After(state.Opens.Add(maxRecheckLateness)) {
			continue
		}
		if err := c.repair(f, func() error { return c.in.RecheckBlocker(ctx, blocker, now) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) rechecks(ctx context.Context) error {
	blocker, at, found, err := c.in.OldestRecheck(ctx)
	if err == nil && found && c.now.Sub(at) > maxRecheckLateness {
		c.note(blockerLate, c.store.Keys.Blockers, string(blocker)+", to be looked at "+model.FormatTime(at))
	}
	return err
}

// circuits checks that each probe of a circuit is made: otherwise no model ever starts again.
func (c *checker) circuits(ctx context.Context, names []string) error {
	lost, err := c.in.LostProbes(ctx, names)
	if err != nil {
		return err
	}
	for name, uid := range lost {
		f := probeLost.at(c.store.Keys.Circuit(name), "probe "+uid+", which does not")
		if err := c.repairUnless("it changed", f, func() (bool, error) { return c.in.DropProbe(ctx, name, uid, c.now) }); err != nil {
			return err
		}
	}
	return nil
}

// bulk checks a bulk that the walk has met. If it is not over and not in the set, nobody carries it out.
func (c *checker) bulk(ctx context.Context, id string) error {
	if c.wrongType[c.store.Keys.Bulks] {
		return nil
	}
	bulk, there, open, err := flow.Inspect(c.store).FindBulk(ctx, id)
	switch {
	case err != nil:
		return err
	case there && bulk.EndedAt.IsZero() && !open:
		return c.repair(bulkLost.at(c.store.Keys.Bulk(id), "none, and it is not over"), func() error { return flow.Inspect(c.store).ListBulk(ctx, bulk) })
	case there && bulk.EndedAt.IsZero() && bulk.Problem != "":
		c.note(bulkUnreadable, id, bulk.Problem)
	}
	return nil
}

func (c *checker) bulkSet(ctx context.Context) error {
	key := c.store.Keys.Bulks
	listed := each(func(ctx context.Context, id string) error {
		bulk, there, open, err := flow.Inspect(c.store).FindBulk(ctx, id)
		if err != nil || !open || there && bulk.EndedAt.IsZero() {
			return err
		}
		found := "none"
		if there {
			found = "one that is over, " + id
		}
		return c.repair(bulkOrphan.at(key+" "+id, found), func() error {
			bulk.Cancelled = true
			_, err := flow.Of(c.store).MoveBulk(ctx, &bulk, c.now)
			return err
		})
	})
	return c.in.EachMember(ctx, key, true, func(ids []string) error { return listed(ctx, ids) })
}
