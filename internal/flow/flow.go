// Package flow steers many models at once: holds, limits, circuits and calendars keep them from starting, bulks change them.
package flow

import "github.com/refreshd/refreshd/internal/store"

// Flow steers many models of a part of a queue.
type Flow struct{ store *store.Store }

// Of returns the flow control of a part of a queue.
func Of(part *store.Store) Flow { return Flow{part} }

// Inspection has reads for the doctor, the explanation of a model, and lists.
type Inspection struct{ flow Flow }

// Inspect inspects a part of a queue.
func Inspect(part *store.Store) Inspection { return Inspection{Of(part)} }

// Queue is Flow of all parts of a queue. It sets blockers in each part; if that ends halfway, to repeat it reaches the others.
type Queue struct{ queue *store.Queue }

// OfQueue steers the models of a queue.
func OfQueue(queue *store.Queue) Queue { return Queue{queue} }
