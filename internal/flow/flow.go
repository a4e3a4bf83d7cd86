// Package flow keeps models from starting, and changes many of them: bulks.
package flow

import "github.com/refreshd/refreshd/internal/store"

// Flow is what steers many models of a part of a queue.
type Flow struct{ store *store.Store }

// Of steers the models of a part of a queue.
func Of(part *store.Store) Flow { return Flow{part} }

// Queue is Flow of all parts of a queue.
type Queue struct{ queue *store.Queue }

// OfQueue steers the models of a queue.
func OfQueue(queue *store.Queue) Queue { return Queue{queue} }
