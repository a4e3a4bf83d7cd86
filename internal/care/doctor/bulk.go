package doctor

import (
	"context"

	"github.com/refreshd/refreshd/internal/store/inspect"
)

// bulk checks a bulk of which the walk came by: one that is not over and does not stand in the set is carried out by nobody.
func (c *checker) bulk(ctx context.Context, id string) error {
	if c.wrongType[c.store.Keys.Bulks] {
		return nil
	}
	bulk, there, open, err := c.store.Fleet().FindBulk(ctx, id)
	switch {
	case err != nil:
		return err
	case there && bulk.EndedAt.IsZero() && !open:
		return c.repair(bulkLost.at(c.store.Keys.Bulk(id), "none, and it is not over"), func() error { return c.store.Fleet().ListBulk(ctx, bulk) })
	case there && bulk.EndedAt.IsZero() && bulk.Problem != "":
		c.note(bulkUnreadable, id, bulk.Problem)
	}
	return nil
}

func (c *checker) bulkSet(ctx context.Context) error {
	key := c.store.Keys.Bulks
	if c.wrongType[key] {
		return nil
	}
	listed := each(func(ctx context.Context, id string) error {
		bulk, there, open, err := c.store.Fleet().FindBulk(ctx, id)
		if err != nil || !open || there && bulk.EndedAt.IsZero() {
			return err
		}
		found := "none"
		if there {
			found = "one that is over, " + id
		}
		return c.repair(bulkOrphan.at(key+" "+id, found), func() error {
			bulk.Cancelled = true
			_, err := c.store.MoveBulk(ctx, &bulk, c.now)
			return err
		})
	})
	return inspect.Of(c.store).EachMember(ctx, key, func(ids []string) error { return listed(ctx, ids) })
}
