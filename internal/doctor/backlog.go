package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model"
)

const (
	// manyNotices is a backlog that no notifier is working on.
	manyNotices = 1000
	// maxLateness is after how long a running dispatcher would have started or ended something.
	maxLateness = time.Minute
)

// backlog checks what waits, and whether anybody works on it.
func (c *checker) backlog(ctx context.Context) error {
	b, err := c.store.Backlog(ctx)
	if err != nil {
		return err
	}
	k := c.store.Keys
	late := func(at time.Time) bool { return !at.IsZero() && c.now.Sub(at) > maxLateness }
	if late(b.OldestDeadline) {
		c.note(dispatcherLate, k.Running(), "one of "+model.FormatTime(b.OldestDeadline))
	} else if late(b.OldestDue) {
		c.note(dueLate, k.Due(), fmt.Sprintf("one due since %s, and %d attempts that no worker has taken", model.FormatTime(b.OldestDue), b.Input))
	}
	if b.Messages > 0 && c.now.Sub(c.lastPoller) > maxLateness {
		found := "none"
		if !c.lastPoller.IsZero() {
			found = "silence since " + model.FormatTime(c.lastPoller)
		}
		c.note(pollerLate.wanting(fmt.Sprintf("%d messages", b.Messages)), k.Output(), found)
	}
	if b.Outbox > 0 {
		kind := outbox
		if b.Outbox > manyNotices {
			kind = outboxLong
		}
		c.note(kind, k.Outbox(), fmt.Sprintf("%d that wait, the oldest of %s", b.Outbox, model.FormatTime(b.OldestNotice)))
	}
	if b.Rejected > 0 && !c.wrongType[k.Rejected()] {
		reason, err := c.store.LastRejected(ctx)
		if err != nil {
			return err
		}
		c.note(rejected, k.Rejected(), fmt.Sprintf("%d that could not, the last: %s", b.Rejected, reason))
	}
	if b.Wake > 1 {
		f := wakeLong.at(k.Wake(), fmt.Sprint(b.Wake))
		if err := c.repair(f, func() error { return c.store.TrimWake(ctx) }); err != nil {
			return err
		}
	}
	if !c.brakeReadable() {
		return nil
	}
	brake, err := c.store.Brake(ctx)
	if err == nil && brake.Engaged {
		c.note(brakeEngaged, k.Brake(), "one engaged since "+brake.EngagedAt+": final failures are held back")
	}
	return err
}
