// Package flow steers many models at once: holds, limits, circuits and calendars keep them from starting, bulks change them.
package flow

import "github.com/refreshd/refreshd/internal/store"

// Flow is what steers many models of a part of a queue.
type Flow struct{ store *store.Store }

// Of steers the models of a part of a queue.
func Of(part *store.Store) Flow { return Flow{part} }

// Inspection is what only the doctor and the explanation of a model read.
type Inspection struct{ flow Flow }

// Inspect inspects a part of a queue.
func Inspect(part *store.Store) Inspection { return Inspection{Of(part)} }

// Queue is Flow of all parts of a queue. What keeps models from starting is set in each of them; if that ends halfway, to repeat it brings it to the
// others.
type Queue struct{ queue *store.Queue }

// OfQueue steers the models of a queue.
func OfQueue(queue *store.Queue) Queue { return Queue{queue} }
