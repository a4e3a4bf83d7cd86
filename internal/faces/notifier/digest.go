package notifier

import (
	"errors"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/policy"
)

// digest bounds how many messages one recipient gets.
type digest struct {
	above  int // messages within the time; more notices become one message. 0: each notice is a message of its own
	within time.Duration
}

// maxInList is how many notices go into a list at once.
const maxInList = 100

// next decides about the notices that wait for a recipient: how the delivery goes on, with the next Size notices as its message, or until when they
// wait. Neither: nothing waits, and the delivery is forgotten.
func (c *Channel) next(d store.Delivery, waiting int, now time.Time) (next store.Delivery, until time.Time) {
	switch {
	case waiting == 0:
		return store.Delivery{}, time.Time{}
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
	} else if d.Sent >= c.digest.above {
		return d, end
	}
	if waiting > c.digest.above-d.Sent {
		d.Size, d.Sent = waiting, c.digest.above
	} else {
		d.Size, d.Sent = 1, d.Sent+1
	}
	return d, time.Time{}
}

// maxRetryAfter bounds Retry-After: the longest pause of the built-in retries. A longer one may be a mistake.
const maxRetryAfter = 2 * time.Hour

// retryFloor is the first instant at which the server that failed at now may be sent anything.
func retryFloor(failed error, now time.Time) time.Time {
	later, is := errors.AsType[retryAfterError](failed)
	if !is {
		return now
	}
	wait := min(max(0, later.asked.At(now).Sub(now)), maxRetryAfter)
	return now.Add(wait)
}

// retry is when a message is tried again that has failed so many times; false: never.
func (c *Channel) retry(tries int, id string, now time.Time) (time.Time, bool) {
	if c.retries == nil {
		return time.Time{}, false
	}
	delay, again, err := c.retries.Delay(policy.RetryInput{K: tries})
	if err != nil || !again || delay < 0 {
		return time.Time{}, false
	}
	return now.Add(policy.Vary(delay, c.jitter, id+strconv.Itoa(tries))), true
}
