package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model"
)

// maxLateness is after how long a running dispatcher would have started or ended something.
const maxLateness = time.Minute

func (c *checker) processes(ctx context.Context) error {
	liveness, err := c.store.Report().Liveness(ctx)
	if err != nil {
		return err
	}
	gone := make(map[model.Role]bool)
	for _, missing := range liveness.Missing() {
		if missing.Certain {
			gone[missing.Role] = true
			c.absent(missing, &liveness)
		}
	}
	if !gone[model.RoleDispatcher] {
		c.lateness(&liveness)
	}
	return nil
}

func (c *checker) absent(missing model.Missing, liveness *model.Liveness) {
	k := c.store.Keys
	switch missing.Role {
	case model.RoleDispatcher:
		waits := "attempts past their deadline since " + model.FormatTime(liveness.OldestDeadline)
		if due := liveness.OldestDue; !due.IsZero() && !due.After(liveness.Now) {
			waits = "models that are due since " + model.FormatTime(due)
		}
		c.note(dispatcherMissing.wanting(waits), k.Dispatchers, missing.String())
	case model.RolePoller:
		c.note(pollerMissing.wanting(fmt.Sprintf("%d messages", liveness.Messages)), k.Pollers, missing.String())
	case model.RoleWorker:
		c.note(workerMissing.wanting(fmt.Sprintf("%d attempts in line", liveness.Queued)), k.Input, missing.String())
	}
}

func (c *checker) lateness(liveness *model.Liveness) {
	k := c.store.Keys
	late := func(at time.Time) bool { return !at.IsZero() && liveness.Now.Sub(at) > maxLateness }
	if late(liveness.OldestDeadline) {
		c.note(dispatcherLate, k.Running, "one of "+model.FormatTime(liveness.OldestDeadline))
	} else if late(liveness.OldestDue) {
		c.note(dueLate, k.Due, fmt.Sprintf("one due since %s, and %d attempts that no worker has taken", model.FormatTime(liveness.OldestDue), liveness.Queued))
	}
}
