package worker

import (
	"sync/atomic"

	"github.com/refreshd/refreshd/model"
)

// Stats counts what a pool has done since it was made.
type Stats struct {
	Taken       int64 // entries taken from the input list
	Unreadable  int64 // of these, entries dropped because they hold no uids
	Stale       int64 // superseded while they waited in line: not worked on
	Succeeded   int64
	Failed      int64
	Postponed   int64
	Interrupted int64 // handed back: at a stop, or because the deadline passed in line
	Cancelled   int64 // deadline passed or fence lost during the work: nothing was told
	HandedBack  int64 // attempts of other pools, which fell silent, that this one returned to the input list
}

// Stats returns the counters. They may be of slightly different instants.
func (p *Pool) Stats() Stats {
	return Stats{
		Taken: p.counts.taken.Load(), Unreadable: p.counts.unreadable.Load(), Stale: p.counts.stale.Load(),
		Succeeded: p.counts.succeeded.Load(), Failed: p.counts.failed.Load(), Postponed: p.counts.postponed.Load(),
		Interrupted: p.counts.interrupted.Load(), Cancelled: p.counts.cancelled.Load(),
		HandedBack: p.counts.handedBack.Load(),
	}
}

type counts struct {
	taken, unreadable, stale, succeeded, failed, postponed, interrupted, cancelled, handedBack atomic.Int64
}

// count files the end of an attempt; no type: nothing was told.
func (c *counts) count(kind model.MessageType) {
	switch kind {
	case model.MessageSuccess:
		c.succeeded.Add(1)
	case model.MessageFailure:
		c.failed.Add(1)
	case model.MessagePostponed:
		c.postponed.Add(1)
	case model.MessageInterrupted:
		c.interrupted.Add(1)
	default:
		c.cancelled.Add(1)
	}
}
