package dispatcher

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/store"
)

// rounds are the last rounds of a dispatcher, by the clock of Redis.
type rounds struct {
	last   time.Time
	steady time.Time // since when they followed each other evenly
}

// even reports whether the rounds have followed each other for a whole lease without a gap. After an outage of Redis, a jump of its clock or a
// pause of this process every worker looks dead, and each has to get the time for its next heartbeat.
func (r *rounds) even(now time.Time, lease time.Duration) bool {
	gap := now.Sub(r.last)
	if r.last.IsZero() || gap < 0 || gap > lease/2 {
		r.steady = now
	}
	r.last = now
	return now.Sub(r.steady) >= lease
}

// requeueExpired requeues the attempts of dead workers, and looks for some once a second. Of several dispatchers that look at the same time, one
// does it.
func (d *Dispatcher) requeueExpired(ctx context.Context, due store.Due) error {
	lease := d.config.WorkerLease
	if !d.rounds.even(due.Now, lease) || backoff.Recent(d.looked, due.Now, min(time.Second, lease/4)) {
		return nil
	}
	d.looked = due.Now
	expired, err := d.store.RequeueExpired(ctx, due.Now, due.Judged, lease)
	for _, worker := range expired {
		for _, death := range worker.Deaths {
			d.logbook.Applied(death, due.Now)
		}
		if worker.Attempts > 0 {
			d.config.Log.Warn().Str("owner", worker.Owner).Time("last_sign", worker.LastHeartbeat).Int("attempts", worker.Attempts).
				Msg("dispatcher: handed back what a silent worker had taken")
		}
	}
	return err
}
