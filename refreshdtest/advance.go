package refreshdtest

import (
	"context"
	"testing/synctest"
	"time"
)

// Advance moves the clock, and carries out all that follows: starts, answers of handlers, deadlines.
func (q *Queue) Advance(by time.Duration) {
	q.t.Helper()
	q.AdvanceTo(q.Now().Add(by))
}

// AdvanceTo is Advance up to an instant. One that has passed ends the test.
func (q *Queue) AdvanceTo(to time.Time) {
	q.t.Helper()
	if now := q.Now(); to.Before(now) {
		q.t.Fatalf("advance: expected a time from %s on, found %s", now.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	q.poll() // handle the messages pushed meanwhile
	for {
		q.settle()
		now, next := q.due.now, q.due.next
		if !now.Before(to) {
			return
		}
		if next.IsZero() || next.After(to) {
			next = to
		}
		// Time passes until a handler has a message.
		ctx, cancel := context.WithTimeout(q.t.Context(), next.Sub(now))
		q.pool.Wait(ctx)
		cancel()
		synctest.Wait() // all that this instant brings
		q.mini.FastForward(q.Now().Sub(now))
	}
}

// settle runs the daemons until nothing is left to do at this instant. Messages of handlers come first, so that a handler that ends at its deadline
// is in time.
func (q *Queue) settle() {
	q.t.Helper()
	for {
		q.deliver()
		round, err := q.dispatcher.RunOnce(q.t.Context())
		q.must(err, "dispatch")
		// Attempts are handed to the handler one after another in their order, each when the one before waits for something or has ended.
		for q.waiting += round.Started; q.waiting > 0 && q.handling() != nil && q.pool.Free() > 0; q.waiting-- {
			q.must(q.pool.Take(q.t.Context()), "take an attempt")
			synctest.Wait()
		}
		if round.Sleep > 0 && !q.deliver() {
			return
		}
	}
}

// deliver pushes and applies the messages of handlers; false: there were none.
func (q *Queue) deliver() bool {
	q.t.Helper()
	sent, err := q.pool.Send(q.t.Context())
	q.must(err, "push messages")
	if sent > 0 {
		q.poll()
		synctest.Wait()
	}
	return sent > 0
}

func (q *Queue) poll() {
	q.t.Helper()
	for {
		round, err := q.poller.RunOnce(q.t.Context())
		q.must(err, "poll")
		if round.Claimed < pollBatch && round.Left == 0 && !round.Bulks {
			return
		}
	}
}
