package notifier

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// sender sends messages. A finalError says that no further try would help.
type sender interface {
	send(ctx context.Context, m message) error
}

const (
	// maxAtOnce bounds the recipients of a channel that get messages at the same time.
	maxAtOnce = 8
	// maxDigest bounds the notices of a message.
	maxDigest = 500
	// margin is how long a message stays in hand beyond its timeout, before another notifier takes it.
	margin = 5 * time.Second
)

// Deliver sends the due messages of a channel. more: there may be others.
func (n *Notifier) Deliver(ctx context.Context, name string) (more bool, err error) {
	now, err := n.store.Now(ctx)
	if err != nil {
		return false, err
	}
	n.logCounted(now)
	channel := n.routes.channels[name]
	if now.UnixMilli() < channel.closed.Load() {
		return false, nil
	}
	recipients, err := outbox.Of(n.store).DueRecipients(ctx, name, now, maxAtOnce)
	errs := make([]error, len(recipients))
	var delivering sync.WaitGroup
	for i, recipient := range recipients {
		delivering.Go(func() { errs[i] = n.deliver(ctx, channel, recipient, now) })
	}
	delivering.Wait()
	return len(recipients) > 0, errors.Join(append(errs, err)...)
}

// logCounted says once a minute for how many notices a mailbox had no room.
func (n *Notifier) logCounted(now time.Time) {
	last := n.loggedMs.Load()
	if n.counted.Load() == 0 || backoff.Recent(time.UnixMilli(last), now, time.Minute) || !n.loggedMs.CompareAndSwap(last, now.UnixMilli()) {
		return
	}
	n.config.Log.Warn().Int64("notices", n.counted.Swap(0)).Msg("notifier: a mailbox is full: notices are only counted, and a summary says how many")
}

// deliver takes the next message of a recipient, sends it, and stores the outcome.
func (n *Notifier) deliver(ctx context.Context, c *Channel, recipient string, now time.Time) error {
	box := outbox.Of(n.store)
	mailbox, err := box.ReadMailbox(ctx, c.Name, recipient, maxDigest)
	if err != nil || mailbox.Next.After(now) { // another notifier was faster
		return err
	}
	next, until := c.next(mailbox.Delivery, len(mailbox.Notices), now)
	if next.Size == 0 {
		_, err := box.Settle(ctx, mailbox, outbox.Settlement{Delivery: next, Next: until, At: now})
		return err
	}
	next.By = n.owner
	if taken, err := box.Settle(ctx, mailbox, outbox.Settlement{Delivery: next, Next: now.Add(c.timeout + margin), At: now}); err != nil || !taken {
		return err
	}
	_, address, _ := strings.Cut(recipient, " ")
	m := message{at: now, address: address, notices: make([]Notice, next.Size)}
	for i, text := range mailbox.Notices[:next.Size] {
		_ = json.Unmarshal([]byte(text), &m.notices[i]) // an unreadable one has no fields
	}
	sending, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var failed error
	if c.list != "" {
		failed = box.PushToList(sending, c.list, mailbox.Notices[:next.Size])
	} else {
		failed = c.sender.send(sending, m)
	}
	after, err := n.store.Now(ctx)
	if err != nil {
		return err
	}
	_, err = box.Settle(ctx, mailbox, n.settle(c, mailbox, &m, failed, after))
	return err
}

// settle decides how a mailbox goes on after a message was sent, or failed.
func (n *Notifier) settle(c *Channel, mailbox *outbox.Mailbox, m *message, failed error, now time.Time) outbox.Settlement {
	next := mailbox.Delivery
	size := next.Size
	next.By, next.Size, next.Error = "", 0, ""
	if failed == nil {
		next.Tries = 0
		return outbox.Settlement{Delivery: next, Next: now, Done: size, Counter: "notices_told", At: now}
	}
	reason := document.Shorten(failed.Error(), document.MaxText)
	next.Tries++
	floor := now // the first instant at which the server may be sent anything
	if later, is := errors.AsType[retryAfterError](failed); is {
		floor = now.Add(min(max(0, later.asked.At(now).Sub(now)), maxRetryAfter))
	}
	if c.divided() && floor.After(now) { // it is about the other mailboxes too
		c.closed.Store(floor.UnixMilli())
	}
	if _, final := errors.AsType[finalError](failed); !final && c.retries != nil {
		if delay, again, err := c.retries.Delay(policy.RetryInput{K: next.Tries}); err == nil && again && delay >= 0 {
			next.Size, next.Error = size, reason
			at := now.Add(policy.Vary(delay, c.jitter, m.id()+strconv.Itoa(next.Tries)))
			if at.Before(floor) {
				at = floor
			}
			return outbox.Settlement{Delivery: next, Next: at, Counter: "notices_tries_failed", At: now}
		}
	}
	n.config.Log.Error().Str("channel", c.Name).Str("recipient", mailbox.Recipient).Int("notices", size).Int("tries", next.Tries).Str("reason", reason).
		Msg("notifier: a message could not be delivered")
	return outbox.Settlement{Delivery: next, Next: floor, Done: size, Counter: "notices_undelivered", Undelivered: reason, At: now}
}

type digest struct {
	above  int // messages within the time; more notices become one message. 0: each notice is a message of its own
	within time.Duration
}

// maxInList bounds the notices that go into a list at once.
const maxInList = 100

// next decides about the waiting notices of a recipient: the next Size of them become a message, or they wait until a time. Neither: nothing waits,
// and the delivery is forgotten.
func (c *Channel) next(d outbox.Delivery, waiting int, now time.Time) (next outbox.Delivery, until time.Time) {
	switch {
	case waiting == 0:
		return outbox.Delivery{}, time.Time{}
	case d.Size > 0: // it was tried before, or whoever had it in hand is dead
		d.Size = min(d.Size, waiting)
		return d, time.Time{}
	case c.digest.above == 0:
		if d.Size = 1; c.list != "" {
			d.Size = min(waiting, maxInList)
		}
		return d, time.Time{}
	}
	since := time.UnixMilli(d.Since)
	if end := since.Add(c.digest.within); !now.Before(end) || since.After(now) {
		d.Since, d.Sent = now.UnixMilli(), 0
	} else if d.Sent >= c.digest.above && waiting < maxDigest { // else the next message is full already
		return d, end
	}
	if waiting > c.digest.above-d.Sent {
		d.Size, d.Sent = waiting, c.digest.above
	} else {
		d.Size, d.Sent = 1, d.Sent+1
	}
	return d, time.Time{}
}

// maxRetryAfter bounds Retry-After, like the longest pause of the built-in retries. A longer one may be a mistake.
const maxRetryAfter = 2 * time.Hour
