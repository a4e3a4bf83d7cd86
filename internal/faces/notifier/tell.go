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

// sender is one way to send messages beyond Redis. A finalError says that no further try would help.
type sender interface {
	send(ctx context.Context, m message) error
	close()
}

const (
	// sideBySide is how many recipients of a channel are told at the same time.
	sideBySide = 8
	// maxDigest is how many notices a message holds.
	maxDigest = 500
	// margin is how long a message stays in hand beyond its timeout, before another notifier takes it.
	margin = 5 * time.Second
)

// What is counted in the stats of the queue.
const (
	counterTold        = "notices_told"
	counterTries       = "notices_tries_failed"
	counterUndelivered = "notices_undelivered"
)

// Tell tells the recipients of a channel whose time has come what waits for them. more: there may be others.
func (n *Notifier) Tell(ctx context.Context, name string) (more bool, err error) {
	now, err := n.store.Now(ctx)
	if err != nil {
		return false, err
	}
	if now.UnixMilli() < n.routes.channels[name].closed.Load() {
		return false, nil
	}
	recipients, err := n.store.Outbox().DueRecipients(ctx, name, now, sideBySide)
	errs := make([]error, len(recipients))
	var telling sync.WaitGroup
	for i, recipient := range recipients {
		telling.Go(func() { errs[i] = n.tell(ctx, n.routes.channels[name], recipient, now) })
	}
	telling.Wait()
	return len(recipients) > 0, errors.Join(append(errs, err)...)
}

// tell takes the next message for a recipient in hand, sends it, and says what became of it.
func (n *Notifier) tell(ctx context.Context, c *Channel, recipient string, now time.Time) error {
	line, err := n.store.Outbox().ReadMailbox(ctx, c.Name, recipient, maxDigest)
	if err != nil {
		return err
	}
	next, until := c.turn(line.Delivery, len(line.Notices), now)
	if next.Size == 0 {
		_, err := n.store.Outbox().Settle(ctx, line, store.Settlement{Delivery: next, Next: until, At: now})
		return err
	}
	next.By = n.owner
	if taken, err := n.store.Outbox().Settle(ctx, line, store.Settlement{Delivery: next, Next: now.Add(c.timeout + margin), At: now}); err != nil || !taken {
		return err
	}
	_, address, _ := strings.Cut(recipient, " ")
	m := newMessage(address, line.Notices[:next.Size], now)
	failed := n.send(ctx, c, m)
	after, err := n.store.Now(ctx)
	if err != nil {
		return err
	}
	_, err = n.store.Outbox().Settle(ctx, line, n.settle(c, line, &m, failed, after))
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

// settle says what becomes of a line whose message was sent, or was not.
func (n *Notifier) settle(c *Channel, line *store.Mailbox, m *message, failed error, now time.Time) store.Settlement {
	next := line.Delivery
	size := next.Size
	next.By, next.Size, next.Error = "", 0, ""
	done := store.Settlement{Delivery: next, Next: now, Done: size, Counter: counterTold, At: now}
	if failed == nil {
		done.Delivery.Tries = 0
		return done
	}
	reason := document.Shorten(failed.Error(), document.MaxText)
	next.Tries++
	at, again := c.retry(next.Tries, m.id(), now)
	floor := asked(failed, now)
	if c.divided() && floor.After(now) { // it is about the other lines too
		c.closed.Store(floor.UnixMilli())
	}
	if at.Before(floor) {
		at = floor
	}
	if _, final := errors.AsType[finalError](failed); again && !final {
		next.Size, next.Error = size, reason
		return store.Settlement{Delivery: next, Next: at, Counter: counterTries, At: now}
	}
	n.config.Log.Error().Str("channel", c.Name).Str("recipient", line.Recipient).Int("notices", size).Int("tries", next.Tries).Str("reason", reason).
		Msg("notifier: a message could not be delivered")
	done.Delivery, done.Next, done.Counter, done.Undelivered = next, floor, counterUndelivered, reason
	return done
}
