package refreshdtest

import (
	"context"
	"testing/synctest"
	"time"
)

// Advance lets time pass, and lets everything happen that comes with it: starts, what handlers answer, deadlines. It returns when nothing more
// is to be done at the instant that it ends at.
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
	q.poll() // what was pushed meanwhile
	for {
		q.settle()
		now, next := q.due.now, q.due.next
		if !now.Before(to) {
			return
		}
		if next.IsZero() || next.After(to) {
			next = to
		}
		q.rest(next.Sub(now))
	}
}

// rest lets time pass, until a handler has something to tell.
func (q *Queue) rest(length time.Duration) {
	ctx, cancel := context.WithTimeout(q.t.Context(), length)
	defer cancel()
	before := q.due.now
	q.rounds.Rest(ctx)
	synctest.Wait() // all that this instant brings
	q.mini.FastForward(q.Now().Sub(before))
}

// settle lets the daemons take turns until nothing is left to be done at this instant. First what handlers have told is heard, so that a
// handler that ends at its deadline is in time, as everywhere.
func (q *Queue) settle() {
	q.t.Helper()
	for {
		q.tell()
		round, err := q.dispatcher.RunOnce(q.t.Context())
		q.must(err, "dispatch")
		if q.waiting += round.Started; q.waiting > 0 {
			q.take()
		}
		if round.Sleep > 0 && !q.tell() {
			return
		}
	}
}

// take hands attempts to the handler, one after another in their order, and waits each time until it waits for something or has ended.
func (q *Queue) take() {
	q.t.Helper()
	for ; q.waiting > 0 && q.handling() != nil && q.rounds.Free() > 0; q.waiting-- {
		q.must(q.rounds.Take(q.t.Context()), "take an attempt")
		synctest.Wait()
	}
}

// tell pushes what handlers have told, and applies it; false: they have told nothing.
func (q *Queue) tell() bool {
	q.t.Helper()
	told, err := q.rounds.Tell(q.t.Context())
	q.must(err, "tell what became of attempts")
	if told > 0 {
		q.poll()
		synctest.Wait()
	}
	return told > 0
}

// poll lets the poller apply all messages.
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
