package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model"
)

// maxLateness is after how long a running dispatcher would have started or ended something.
const maxLateness = time.Minute

func (c *checker) parties(ctx context.Context) error {
	signs, err := c.store.Report().Liveness(ctx)
	if err != nil {
		return err
	}
	gone := make(map[model.Role]bool)
	for _, absence := range signs.Missing() {
		if absence.Certain {
			gone[absence.Role] = true
			c.absent(absence, &signs)
		}
	}
	if !gone[model.RoleDispatcher] {
		c.lateness(&signs)
	}
	return nil
}

func (c *checker) absent(absence model.Missing, signs *model.Liveness) {
	k := c.store.Keys
	switch absence.Role {
	case model.RoleDispatcher:
		waits := "attempts past their deadline since " + model.FormatTime(signs.OldestDeadline)
		if due := signs.OldestDue; !due.IsZero() && !due.After(signs.Now) {
			waits = "models that are due since " + model.FormatTime(due)
		}
		c.note(dispatcherMissing.wanting(waits), k.Dispatchers(), absence.String())
	case model.RolePoller:
		c.note(pollerMissing.wanting(fmt.Sprintf("%d messages", signs.Messages)), k.Pollers(), absence.String())
	case model.RoleWorker:
		c.note(workerMissing.wanting(fmt.Sprintf("%d attempts in line", signs.Queued)), k.Input(), absence.String())
	}
}

func (c *checker) lateness(signs *model.Liveness) {
	k := c.store.Keys
	late := func(at time.Time) bool { return !at.IsZero() && signs.Now.Sub(at) > maxLateness }
	if late(signs.OldestDeadline) {
		c.note(dispatcherLate, k.Running(), "one of "+model.FormatTime(signs.OldestDeadline))
	} else if late(signs.OldestDue) {
		c.note(dueLate, k.Due(), fmt.Sprintf("one due since %s, and %d attempts that no worker has taken", model.FormatTime(signs.OldestDue), signs.Queued))
	}
}
