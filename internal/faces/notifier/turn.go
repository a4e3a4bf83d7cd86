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
	above  int // messages within the time; what is more becomes one message. 0: each notice is a message of its own
	within time.Duration
}

// mostInList is how many notices go into a list at once.
const mostInList = 100

// turn decides what a recipient is told at now, of so many notices that wait: what the delivery is from now on, of which Size notices are told, or
// until when they wait. Neither: nothing waits, and the delivery is forgotten.
func (c *Channel) turn(d store.Delivery, waiting int, now time.Time) (next store.Delivery, until time.Time) {
	switch {
	case waiting == 0:
		return store.Delivery{}, time.Time{}
	case d.Size > 0: // it was tried before, or whoever had it in hand is dead
		d.Size = min(d.Size, waiting)
		return d, time.Time{}
	case c.digest.above == 0:
		if d.Size = 1; c.list != "" {
			d.Size = min(waiting, mostInList)
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

// maxAsked is the longest that a server is left alone because it asks for it: the longest pause of the built-in retries. What is longer may be
// a mistake, and would keep people from being told.
const maxAsked = 2 * time.Hour

// asked is the first instant at which the server that answered at now by an error may be told anything.
func asked(failed error, now time.Time) time.Time {
	later, is := errors.AsType[laterError](failed)
	if !is {
		return now
	}
	at := later.asked.At(now)
	switch {
	case at.Before(now):
		return now
	case at.After(now.Add(maxAsked)):
		return now.Add(maxAsked)
	}
	return at
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
