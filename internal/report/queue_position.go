package report

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

// QueuePosition is the place of a model in the line for workers.
type QueuePosition struct {
	No   int     // 1 is the first; 0: it is not in the line
	Rate float64 // how many attempts a second have left the list of late; 0: not known
}

// Wait is how long it takes at the present rate until its attempt is taken; 0: not known.
func (p QueuePosition) Wait() time.Duration {
	if p.No == 0 || p.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(p.No) / p.Rate * float64(time.Second))
}

// QueuePosition reads the place of a model: of its attempt in the input list, or where that will be. It reads the whole list, so it is for people,
// not for loops.
func (r Report) QueuePosition(ctx context.Context, m *store.Record) (QueuePosition, error) {
	pipe, k := r.store.Clients.Read.Pipeline(), &r.store.Keys
	now, err := r.store.Now(ctx)
	if err != nil {
		return QueuePosition{}, err
	}
	entries, urgent := pipe.LRange(ctx, k.Input, 0, -1), pipe.ZCard(ctx, k.Urgent)
	calm := pipe.ZCount(ctx, k.Due, "-inf", redis.Millis(now))
	hurried, due := pipe.ZRank(ctx, k.Urgent, m.UID), pipe.ZRank(ctx, k.Due, m.UID)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return QueuePosition{}, fmt.Errorf("read the input list: %w", err)
	}
	samples, err := r.store.HeadSamples(ctx)
	place, waiting := QueuePosition{Rate: samples.Rate()}, len(entries.Val())
	switch {
	case m.Running():
		for i, raw := range entries.Val() {
			if entry, _ := r.store.Wire().ParseEntry(raw); entry.AttemptUID == m.AttemptUID {
				place.No = i + 1
			}
		}
	case hurried.Err() == nil: // urgent ones and others take turns
		place.No = waiting + int(hurried.Val()+min(hurried.Val(), calm.Val())) + 1
	case due.Err() == nil:
		place.No = waiting + int(due.Val()+min(due.Val()+1, urgent.Val())) + 1
	}
	return place, err
}
