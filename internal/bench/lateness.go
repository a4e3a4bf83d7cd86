package bench

import (
	"context"
	"time"
)

// Paced measures lateness: from refresh_at until a waiting worker has the attempt, and from the push of its result until it is applied.
func (b *Bench) Paced(ctx context.Context, plan Plan) (starts, applied []time.Duration, err error) {
	return nil, nil, nil
}
