package simulation

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/worker"
)

// queue is all that daemons need of Redis. *store.Store is one, and so is one with a planted bug.
type queue interface {
	dispatcher.Store
	poller.Store
	worker.Queue
}

type dispatcherRole struct{ *dispatcher.Dispatcher }

func (d dispatcherRole) round(ctx context.Context) error {
	_, err := d.RunOnce(ctx)
	return err
}

func (dispatcherRole) resign(context.Context) {}

type pollerRole struct {
	*poller.Poller
	queue queue
	owner string
}

func (p pollerRole) round(ctx context.Context) error {
	_, err := p.RunOnce(ctx)
	return err
}

// resign does what poller.Run does at its end.
func (p pollerRole) resign(ctx context.Context) { _ = p.queue.Resign(ctx, p.owner) }

// crowded lets each dispatcher see all that is due, as if it were alone.
type crowded struct{ queue }

func (c crowded) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	asked.Owner = ""
	return c.queue.ReadDue(ctx, asked)
}

func newDispatcher(q queue, config dispatcher.Config) (role, error) {
	d, err := dispatcher.New(q, config)
	return dispatcherRole{d}, err
}

// lease is how long the pollers of a simulation may go without a heartbeat.
const lease = 10 * time.Second

func newPoller(q queue, owner string, batch int) (role, error) {
	p, err := poller.New(q, poller.Config{Owner: owner, Batch: batch, Lease: lease})
	return pollerRole{p, q, owner}, err
}
