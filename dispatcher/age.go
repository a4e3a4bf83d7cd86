package dispatcher

import (
	"time"

	"github.com/refreshd/refreshd/internal/store"
)

// age decides about a model whose freshness is to change, whatever it does.
func (d *Dispatcher) age(record *store.Record, now time.Time) *store.Transition {
	switch at := record.FreshnessAt(); {
	case !record.Exists:
		return record.Remove()
	case at.IsZero() || at.After(now):
		return record.Mend() // another process was faster, or the set is wrong
	}
	return record.Decide(record.ChangeFreshness(now), now)
}
