// Package inspect reads what only the doctor looks at, and repairs it.
package inspect

import "github.com/refreshd/refreshd/internal/store"

// Part is one part of a queue, as it is inspected.
type Part struct{ *store.Store }

// Of inspects a part of a queue.
func Of(part *store.Store) Part { return Part{part} }
