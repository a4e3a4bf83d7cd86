package notifier

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/document"
)

// sender sends messages beyond Redis. A finalError says that no further try would help.
type sender interface {
	send(ctx context.Context, m message) error
	close()
}

const (
	// maxAtOnce is how many recipients of a channel get messages at the same time.
	maxAtOnce = 8
	// maxDigest is how many notices a message holds.
	maxDigest = 500
	// margin is how long a message stays in hand beyond its timeout, before another notifier takes it.
	margin = 5 * time.Second
)

// Counters in the stats of the queue.
const (
	counterDelivered   = "notices_told"
	counterTries       = "notices_tries_failed"
	counterUndelivered = "notices_undelivered"
)

// Deliver sends messages to those recipients of a channel whose time has come. more: there may be others.
func (n *Notifier) Deliver(ctx context.Context, name string) (more bool, err error) {
	now, err := n.store.Now(ctx)
	if err != nil {
		return false, err
	}
	channel := n.routes.channels[name]
	if now.UnixMilli() < channel.closed.Load() {
		return false, nil
	}
	recipients, err := n.store.Outbox().DueRecipients(ctx, name, now, maxAtOnce)
	errs := make([]error, len(recipients))
	var delivering sync.WaitGroup
	for i, recipient := range recipients {
		delivering.Go(func() { errs[i] = n.deliver(ctx, channel, recipient, now) })
	}
	delivering.Wait()
	return len(recipients) > 0, errors.Join(append(errs, err)...)
}

// deliver takes the next message for a recipient in hand, sends it, and stores the outcome.
func (n *Notifier) deliver(ctx context.Context, c *Channel, recipient string, now time.Time) error {
	outbox := n.store.Outbox()
	mailbox, err := outbox.ReadMailbox(ctx, c.Name, recipient, maxDigest)
	if err != nil {
		return err
	}
	next, until := c.next(mailbox.Delivery, len(mailbox.Notices), now)
	if next.Size == 0 {
		_, err := outbox.Settle(ctx, mailbox, store.Settlement{Delivery: next, Next: until, At: now})
		return err
	}
	next.By = n.owner
	if taken, err := outbox.Settle(ctx, mailbox, store.Settlement{Delivery: next, Next: now.Add(c.timeout + margin), At: now}); err != nil || !taken {
		return err
	}
	_, address, _ := strings.Cut(recipient, " ")
	m := newMessage(address, mailbox.Notices[:next.Size], now)
	failed := n.send(ctx, c, m)
	after, err := n.store.Now(ctx)
	if err != nil {
		return err
	}
	_, err = outbox.Settle(ctx, mailbox, n.settle(c, mailbox, &m, failed, after))
	return err
}

func (n *Notifier) send(ctx context.Context, c *Channel, m message) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if c.list != "" {
		return n.store.Outbox().PushToList(ctx, c.list, m.texts)
	}
	return c.sender.send(ctx, m)
}

// settle decides how a mailbox goes on after a message was sent, or failed.
func (n *Notifier) settle(c *Channel, mailbox *store.Mailbox, m *message, failed error, now time.Time) store.Settlement {
	next := mailbox.Delivery
	size := next.Size
	next.By, next.Size, next.Error = "", 0, ""
	if failed == nil {
		next.Tries = 0
		return store.Settlement{Delivery: next, Next: now, Done: size, Counter: counterDelivered, At: now}
	}
	reason := document.Shorten(failed.Error(), document.MaxText)
	next.Tries++
	at, again := c.retry(next.Tries, m.id(), now)
	floor := retryFloor(failed, now)
	if c.divided() && floor.After(now) { // it is about the other mailboxes too
		c.closed.Store(floor.UnixMilli())
	}
	if at.Before(floor) {
		at = floor
	}
	if _, final := errors.AsType[finalError](failed); again && !final {
		next.Size, next.Error = size, reason
		return store.Settlement{Delivery: next, Next: at, Counter: counterTries, At: now}
	}
	n.config.Log.Error().Str("channel", c.Name).Str("recipient", mailbox.Recipient).Int("notices", size).Int("tries", next.Tries).Str("reason", reason).
		Msg("notifier: a message could not be delivered")
	return store.Settlement{Delivery: next, Next: floor, Done: size, Counter: counterUndelivered, Undelivered: reason, At: now}
}
