package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/model"
)

// A backlog that no notifier is working on: so many notices, or one that waits so long.
const (
	manyNotices = 1000
	noticeWaits = time.Hour
)

// summary says of how many notices a recipient only gets a number.
func (c *checker) summary(ctx context.Context, recipient string) error {
	counted, err := outbox.Of(c.store).Counted(ctx, recipient)
	if err == nil && counted > 0 {
		c.note(noticesFull, c.store.Keys.Summary(recipient), fmt.Sprintf("a full one, and %d beyond", counted))
	}
	return err
}

func (c *checker) backlog(ctx context.Context) error {
	b, err := report.Of(c.store).Stats(ctx)
	if _, wrong := redis.WrongType(err); err != nil && !wrong { // the checks of keys report that
		return err
	}
	k := c.store.Keys
	lengths, err := c.in.Lengths(ctx, k.Undelivered, k.Wake)
	if err != nil {
		return err
	}
	if b.Outbox > 0 {
		kind := outboxWaits
		if b.Outbox > manyNotices || !b.OldestNotice.IsZero() && c.now.Sub(b.OldestNotice) > noticeWaits {
			kind = outboxLong
		}
		c.note(kind, k.Outbox, fmt.Sprintf("%d that wait, the oldest of %s", b.Outbox, model.FormatTime(b.OldestNotice)))
	}
	if lengths[0] > 0 {
		c.note(undelivered, k.Undelivered, fmt.Sprintf("%d that could not", lengths[0]))
	}
	if b.Rejected > 0 && !c.wrongType[k.Rejected] {
		reason, err := outbox.Of(c.store).LastRejected(ctx)
		if err != nil {
			return err
		}
		c.note(rejected, k.Rejected, fmt.Sprintf("%d that could not, the last: %s", b.Rejected, reason))
	}
	if lengths[1] > 1 {
		f := wakeLong.at(k.Wake, fmt.Sprint(lengths[1]))
		if err := c.repair(f, func() error { return c.in.TrimWake(ctx) }); err != nil {
			return err
		}
	}
	if !c.queueCircuitReadable() {
		return nil
	}
	circuit, err := flow.Of(c.store).QueueCircuit(ctx)
	if err == nil && circuit.Open {
		c.note(circuitOpen, k.QueueCircuit, "one that is open since "+circuit.OpenedAt+": final failures are held back")
	}
	return err
}
