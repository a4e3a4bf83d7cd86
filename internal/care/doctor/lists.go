package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/store/inspect"
	"github.com/refreshd/refreshd/model"
)

// maxHeartbeatAge is after how long others should have taken over from the owner of a list, whatever their lease.
const maxHeartbeatAge = time.Minute

// ownedLists are lists that each belong to one process. What stands in one whose owner nobody knows is handled by nobody.
type ownedLists struct {
	key            func(owner string) string
	owners         string // the set in which the owners stand
	orphan, lapsed kind
	adopt          func(ctx context.Context, owner string) error // makes others handle what stands in an orphan
}

func (c *checker) claimed(ctx context.Context, owners []string) error {
	return c.ownedLists(ctx, owners, ownedLists{c.store.Keys.Claimed, c.store.Keys.Pollers, claimedOrphan, claimedLapsed, inspect.Of(c.store).AddExpiredPoller})
}

func (c *checker) taken(ctx context.Context, owners []string) error {
	leave := func(ctx context.Context, owner string) error { _, err := c.store.Pool().Leave(ctx, owner); return err }
	return c.ownedLists(ctx, owners, ownedLists{c.store.Keys.Taken, c.store.Keys.Workers, takenOrphan, takenLapsed, leave})
}

func (c *checker) ownedLists(ctx context.Context, owners []string, lists ownedLists) error {
	for _, owner := range owners {
		where := lists.key(owner)
		list, err := inspect.Of(c.store).OwnedList(ctx, where, lists.owners, owner)
		if err != nil {
			return err
		}
		switch {
		case list.Entries == 0:
		case !list.Known:
			f := lists.orphan.at(where, fmt.Sprintf("%d entries of an owner that is not known", list.Entries))
			if err := c.repair(f, func() error { return lists.adopt(ctx, owner) }); err != nil {
				return err
			}
		case c.now.Sub(list.LastHeartbeat) > maxHeartbeatAge:
			c.note(lists.lapsed, where, fmt.Sprintf("%d entries of an owner silent since %s", list.Entries, model.FormatTime(list.LastHeartbeat)))
		}
	}
	return nil
}
