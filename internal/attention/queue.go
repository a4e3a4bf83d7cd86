package attention

import (
	"context"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Queue is what is known of a queue at a glance. How much is read for it does not grow with the models.
type Queue struct {
	store.Stats

	Holds    []store.HoldSum
	Circuits []store.KeyCircuit // that are open
	Gone     []Gone
	Parts    int
}

// Gone is a party that does not live in parts of the queue.
type Gone struct {
	model.Missing
	Parts int
}

// Read reads a queue.
func Read(ctx context.Context, queue *store.Queue) (q Queue, err error) {
	q.Parts = len(queue.Parts)
	if q.Stats, err = queue.Report().Stats(ctx); err != nil {
		return q, err
	}
	if q.Holds, err = queue.Fleet().Holds(ctx); err != nil {
		return q, err
	}
	if q.Circuits, err = queue.Fleet().OpenCircuits(ctx); err != nil {
		return q, err
	}
	parts := map[model.Role][]model.Missing{}
	err = queue.Each(func(part *store.Store) error {
		signs, err := part.Report().Liveness(ctx)
		for _, gone := range signs.Gone() {
			parts[gone.Role] = append(parts[gone.Role], gone)
		}
		return err
	})
	for _, party := range model.Roles {
		if gone := parts[party]; gone != nil {
			q.Gone = append(q.Gone, Gone{gone[0], len(gone)})
		}
	}
	return q, err
}
