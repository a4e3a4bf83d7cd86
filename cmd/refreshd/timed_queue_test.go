package main

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// timedQueue is a queue on a server whose clock is set by hand, with the daemons that serve it.
type timedQueue struct {
	*console
	queue      *fixture.Queue
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
}

func newTimedQueue(t *testing.T, clock string) *timedQueue {
	t.Helper()
	server := testkit.Miniredis(t)
	s := &timedQueue{console: at(t, server), queue: fixture.Live(t, server)}
	s.env["REFRESHD_HISTORY_CAP"] = "100"
	s.dispatcher = check.Got(dispatcher.New(dispatcher.RoomsOf(s.queue.Store), dispatcher.Config{}))(t)
	s.poller = check.Got(poller.New(poller.RoomsOf(s.queue.Store), poller.Config{Owner: "p1"}))(t)
	s.set(clock)
	return s
}

// set turns the clock of the server to a time of 2026-01-05, a Monday, in UTC; one with a date says it all.
func (s *timedQueue) set(clock string) {
	s.t.Helper()
	if len(clock) <= len(time.TimeOnly) {
		clock = "2026-01-05T" + clock + "Z"
	}
	now := check.Got(time.Parse(time.RFC3339, clock))(s.t)
	s.queue.Server.Mini.SetTime(now)
}

func (s *timedQueue) round(clock string) {
	s.t.Helper()
	s.set(clock)
	must(s.t, check.Only(s.dispatcher.RunOnce(s.t.Context())))
}

// dispatch lets the dispatcher look at a time, and a worker take what it hands out.
func (s *timedQueue) dispatch(clock string) {
	s.t.Helper()
	s.round(clock)
	for more := true; more; {
		_, more = s.queue.Take()
	}
}

func (s *timedQueue) answer(clock, kind, uid string, fields ...string) {
	s.t.Helper()
	s.set(clock)
	s.queue.Say(fixture.Result(kind, uid, s.queue.Attempt(uid), fields...))
	for range 2 { // the second one notes that nothing is in hand any more
		must(s.t, check.Only(s.poller.RunOnce(s.t.Context())))
	}
}
