package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/zonedata"
	"github.com/refreshd/refreshd/model"
)

// maxLateness is after how long a running dispatcher would have started or ended something.
const maxLateness = time.Minute

func (c *checker) processes(ctx context.Context) error {
	liveness, err := c.store.Report().Liveness(ctx)
	if err != nil {
		return err
	}
	k, dispatched := c.store.Keys, true
	for _, missing := range liveness.Missing() {
		switch {
		case !missing.Certain:
		case missing.Role == model.RoleDispatcher:
			dispatched = false
			waits := "attempts past their deadline since " + model.FormatTime(liveness.OldestDeadline)
			if due := liveness.OldestDue; !due.IsZero() && !due.After(liveness.Now) {
				waits = "models that are due since " + model.FormatTime(due)
			}
			c.note(dispatcherMissing.wanting(waits), k.Dispatchers, missing.String())
		case missing.Role == model.RolePoller:
			c.note(pollerMissing.wanting(fmt.Sprintf("%d messages", liveness.Messages)), k.Pollers, missing.String())
		case missing.Role == model.RoleWorker:
			c.note(workerMissing.wanting(fmt.Sprintf("%d attempts in line", liveness.Queued)), k.Input, missing.String())
		}
	}
	late := func(at time.Time) bool { return dispatched && !at.IsZero() && liveness.Now.Sub(at) > maxLateness }
	if late(liveness.OldestDeadline) {
		c.note(dispatcherLate, k.Running, "one of "+model.FormatTime(liveness.OldestDeadline))
	} else if late(liveness.OldestDue) {
		c.note(dueLate, k.Due, fmt.Sprintf("one due since %s, and %d attempts that no worker has taken", model.FormatTime(liveness.OldestDue), liveness.Queued))
	}
	return nil
}

// zoneData reports the daemons, or hosts, whose zone data differ from the queue's.
func (c *checker) zoneData(ctx context.Context) error {
	doubts, err := store.ZoneDoubts(ctx, c.store.Report(), zonedata.Here())
	for _, doubt := range doubts {
		c.note(zoneData, c.store.Keys.Zones, doubt)
	}
	return err
}

// heartbeats checks that no heartbeat lies in the future, as it does after the clock was set back. Others take over from its owner all
// the same, but none may be there.
func (c *checker) heartbeats(ctx context.Context) error {
	heartbeats, now, err := c.store.Report().Heartbeats(ctx)
	if err != nil {
		return err
	}
	for _, h := range heartbeats {
		if h.At.Sub(now) <= maxSkew {
			continue
		}
		f := heartbeatAhead.at(h.Key, fmt.Sprintf("one of %q at %s, %s ahead", h.Owner, model.FormatTime(h.At), h.At.Sub(now).Round(time.Second)))
		if err := c.repair(f, func() error { return c.in.SetBack(ctx, h, now) }); err != nil {
			return err
		}
	}
	return nil
}
