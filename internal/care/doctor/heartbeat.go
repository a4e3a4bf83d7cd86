package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/store/inspect"
	"github.com/refreshd/refreshd/model"
)

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
		if err := c.repair(f, func() error { return inspect.Of(c.store).SetBack(ctx, h, now) }); err != nil {
			return err
		}
	}
	return nil
}
