package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

const inputPart = 200

func (c *checker) input(ctx context.Context) error {
	for from := int64(0); ; {
		entries, err := c.store.InputPart(ctx, from, inputPart)
		if err != nil || len(entries) == 0 {
			return err
		}
		dropped, err := c.inputEntries(ctx, entries, from)
		if err != nil {
			return err
		}
		from += int64(len(entries) - dropped)
	}
}

// inputEntries checks entries, which were read from a place of the list on, and returns how many of them were removed.
func (c *checker) inputEntries(ctx context.Context, entries []store.InputEntry, from int64) (dropped int, err error) {
	fences, _, err := c.store.Pool().Fences(ctx, redis.Map(entries, func(entry store.InputEntry) string { return entry.UID }))
	if err != nil {
		return 0, err
	}
	var stale []store.InputEntry
	for i, entry := range entries {
		switch {
		case entry.UID == "" || entry.AttemptUID == "":
			c.note(inputUnreadable, c.store.Keys.Input, document.Found(entry.Raw))
		case fences[i].Err == nil && fences[i].AttemptUID != entry.AttemptUID:
			stale = append(stale, entry)
		}
	}
	if len(stale) == 0 {
		return 0, nil
	}
	// An entry that was taken and answered before its model was read looks stale too, but has left the list: re-read the list, with room
	// for entries to have moved.
	again, err := c.store.InputPart(ctx, max(0, from-2*inputPart), 5*inputPart)
	if err != nil {
		return 0, err
	}
	for _, entry := range stale {
		if !slices.Contains(again, entry) {
			continue
		}
		f := inputStale.at(entry.UID, "one of attempt "+document.Found(entry.AttemptUID)+", which is over")
		err := c.repair(f, func() error {
			n, err := c.in.DropInput(ctx, entry.Raw)
			dropped += n
			return err
		})
		if err != nil {
			return dropped, fmt.Errorf("repair the input list: %w", err)
		}
	}
	return dropped, nil
}

// maxHeartbeatAge is the time after which others should have taken over from the owner of a list, with any lease.
const maxHeartbeatAge = time.Minute

// ownedLists are lists that each belong to one process. If nobody knows the owner of a list, nobody handles its entries.
type ownedLists struct {
	key            func(owner string) string
	owners         string // the set of the owners
	orphan, lapsed kind
	adopt          func(ctx context.Context, owner string) error // makes others handle the entries of an orphan
}

func (c *checker) owned(lists ownedLists) func(context.Context, []string) error {
	return each(func(ctx context.Context, owner string) error {
		where := lists.key(owner)
		entries, heartbeat, known, err := c.in.OwnedList(ctx, where, lists.owners, owner)
		switch {
		case err != nil || entries == 0:
			return err
		case !known:
			f := lists.orphan.at(where, fmt.Sprintf("%d entries of an owner that is not known", entries))
			return c.repair(f, func() error { return lists.adopt(ctx, owner) })
		case c.now.Sub(heartbeat) > maxHeartbeatAge:
			c.note(lists.lapsed, where, fmt.Sprintf("%d entries of an owner silent since %s", entries, model.FormatTime(heartbeat)))
		}
		return nil
	})
}
