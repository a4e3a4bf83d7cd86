// Package report reads for people what a queue holds and has done: its numbers, histories and journal, why models fail, and how long an attempt still
// waits.
package report

import "github.com/refreshd/refreshd/internal/store"

// Report reads a part of a queue for people: its numbers, its journal, and why models fail.
type Report struct{ store *store.Store }

// Of reads a part of a queue for people.
func Of(part *store.Store) Report { return Report{part} }

// Queue is Report of all parts of a queue.
type Queue struct{ queue *store.Queue }

// OfQueue reads a queue for people.
func OfQueue(queue *store.Queue) Queue { return Queue{queue} }
