// Package lease has the types that a worker pool and its queue exchange. A pool that has a queue of its own kind, such as one for tests, needs it.
package lease

import (
	"strings"
	"time"
)

// TakeRequest asks for entries of the input list.
type TakeRequest struct {
	// Owner names the taken list of the pool. No two pools may share it, and a forgotten one is not used again.
	Owner string
	// New: the owner has had no reply yet. Any other owner that the queue does not know is forgotten.
	New bool
	// Most is how many entries to move at most; 0: this is a heartbeat alone.
	Most int
	// Known is how many entries the pool knows in its taken list, at least; negative: a reply was lost.
	Known int
}

// Taken is the reply to a TakeRequest.
type Taken struct {
	Entries   []string  // of the input list, oldest first
	Whole     bool      // Entries are the whole taken list, with those that the pool knows; nothing was moved
	Forgotten bool      // the lease has expired: the entries of the pool were requeued
	Order     Order     // of an operator; with one, nothing is moved
	Now       time.Time // the clock
}

// The verbs of an Order.
const (
	Quiet = "quiet" // take no new attempts, and finish those in hand
	Stop  = "stop"  // end, as on SIGTERM
)

// Order is an operator's order to a worker pool; the zero order: to work as usual.
type Order struct {
	Verb string // also one that only a later release knows
	By   string // who asks; empty: unknown
}

// String is the stored form.
func (o Order) String() string {
	if o.Verb == "" {
		return ""
	}
	return strings.TrimSpace(o.Verb + " " + o.By)
}

// Answer is one message of a worker pool, or the end of an attempt without one.
type Answer struct {
	Message string // empty: nothing is pushed
	Ends    bool   // it ends the attempt of Entry
	Entry   string // as it was taken
}

// Fence is the queue's view of the attempt that a model is running.
type Fence struct {
	AttemptUID string    // empty: the model is idle or gone
	DeadlineAt time.Time // zero: unknown or unreadable
	Begun      bool      // a `started` of the attempt was applied: the deadline is fixed
	Guarded    bool      // a guard may refuse the result: the worker should ask before it publishes
	Err        error     // why this fence could not be read; then the other fields are empty
}
