package dispatcher

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/store"
)

// lookEvery is the part of a tick after which the front of the input list is looked at again.
const lookEvery = 4

// look looks at the front of the input list, and notes it for whoever asks later when an attempt was taken.
func (d *Dispatcher) look(ctx context.Context, due store.Due) error {
	d.pace = d.pace.drain(due.Queued, d.config.MaxQueued)
	if due.Queued == 0 {
		if due.Front.LastSeen.IsZero() {
			return nil // it is noted already
		}
		return d.store.SampleHead(ctx, 0, due.Now, d.config.Tick)
	}
	if backoff.Recent(d.looked, due.Now, d.config.Tick/lookEvery) {
		return nil
	}
	d.looked = due.Now
	first, err := d.front(ctx, due)
	if first == nil || err != nil {
		return err
	}
	d.pace = d.pace.front(first.StartedAt, patience(first), due.Now)
	return d.store.SampleHead(ctx, first.Ticket, due.Now, d.config.Tick)
}

// patience is how long an attempt may wait before its deadline passes; 0: it has none.
func patience(record *store.Record) time.Duration {
	if record.Policy.QueueTimeout > 0 {
		return record.Policy.QueueTimeout
	}
	return record.Policy.Timeout
}

// handful is how many entries are looked at when that one tells nothing: one that is not the running attempt of a model,
// or that was handed back.
const handful = 100

// front finds the first attempt of the input list that stands there since it was started; nil: none is near.
func (d *Dispatcher) front(ctx context.Context, due store.Due) (*store.Record, error) {
	for _, n := range []int64{1, handful} { // both from the first on: entries move while workers take others
		entries, err := d.store.InputPart(ctx, 0, n)
		if err != nil {
			return nil, err
		}
		var uids []string
		for _, entry := range entries {
			if entry.UID != "" {
				uids = append(uids, entry.UID)
			}
		}
		records, err := d.store.Load(ctx, uids)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			r := records[entry.UID]
			if r != nil && r.Ticket >= max(1, due.Front.Ticket) && r.AttemptUID == entry.AttemptUID {
				return r, nil
			}
		}
	}
	return nil, nil
}
