package worker

import (
	"context"
	"time"
)

// heartbeats are those that the pool has given. One goroutine only.
type heartbeats struct {
	last   time.Time // by the clock of Redis
	steady time.Time // since when they followed each other evenly
}

// beat gives heartbeats until ctx ends, also while all slots are busy, and requeues what other pools had taken when theirs
// have ended.
func (s *session) beat(ctx context.Context) {
	s.every(ctx, s.config.Heartbeat, nil, "giving a sign of life", s.beatOnce)
}

func (s *session) beatOnce(ctx context.Context) error {
	owner, known := s.holding.name()
	if !known {
		return nil // nothing has been taken under this name
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Heartbeat)
	defer cancel()
	now, known, err := s.queue.Heartbeat(ctx, owner)
	switch {
	case err != nil:
		return err
	case !known:
		return s.forgotten(ctx, owner)
	case !s.heartbeats.even(now, s.config.Lease):
		return nil
	}
	return s.look(ctx, owner, now)
}

// even reports whether the heartbeats have followed each other for a whole lease without a gap. After an outage of Redis, a
// jump of its clock or a pause of this process every pool looks dead, and each has to get the time for its next heartbeat.
func (h *heartbeats) even(now time.Time, lease time.Duration) bool {
	gap := now.Sub(h.last)
	if h.last.IsZero() || gap < 0 || gap > lease/2 {
		h.steady = now
	}
	h.last = now
	return now.Sub(h.steady) >= lease
}

// look requeues what dead pools had taken. Of several pools that look at the same time, one does it.
func (s *session) look(ctx context.Context, owner string, now time.Time) error {
	expired, err := s.queue.ExpiredWorkers(ctx, now, s.config.Lease)
	if err != nil {
		return err
	}
	for _, worker := range expired {
		if worker.Owner == owner {
			continue // its entry is older than this heartbeat; the script would refuse it as well
		}
		count, err := s.queue.Requeue(ctx, worker)
		if err != nil {
			return err
		}
		if count > 0 {
			s.count(&s.stats.Requeued, count)
			s.config.Log.Warn().Str("owner", worker.Owner).Time("last_sign", worker.LastHeartbeat).Int("attempts", count).
				Msg("worker: handed back what a silent worker had taken")
		}
	}
	return nil
}

// forgotten ends all work that was taken under a name that is forgotten: by now it is in the hands of others.
func (s *session) forgotten(ctx context.Context, owner string) error {
	if !s.holding.lose(owner) {
		return nil
	}
	for _, f := range s.inFlight() {
		if f.owner == owner {
			f.cancel(ErrRequeued)
		}
	}
	s.config.Log.Warn().Str("owner", owner).Msg("worker: was silent for too long: its attempts were handed back")
	// Usually nothing is left there. But if Redis has lost the name only, nobody else would find the list.
	_, err := s.queue.Leave(ctx, owner)
	return err
}

// resign ends the session in Redis; if Redis does not hear it, the lease runs out instead.
func (s *session) resign(ctx context.Context) {
	owner, known := s.holding.name()
	if !known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Heartbeat)
	defer cancel()
	if left, err := s.queue.Leave(ctx, owner); err != nil || left > 0 {
		s.config.Log.Warn().Err(err).Int("attempts", left).Msg("worker: left with attempts that are not answered")
	}
}
