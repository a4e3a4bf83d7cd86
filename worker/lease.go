package worker

import (
	"context"
	"time"
)

// lease gives the pool's heartbeats, and requeues what other pools had taken when theirs have ended.
type lease struct {
	session *session
	length  time.Duration

	last   time.Time // the last heartbeat by the clock of Redis; run goroutine only
	steady time.Time // since when the heartbeats followed each other evenly; run goroutine only
}

// run beats until ctx ends, also while all slots are busy.
func (l *lease) run(ctx context.Context) {
	l.session.every(ctx, l.session.config.Heartbeat, nil, "giving a sign of life", l.beatOnce)
}

func (l *lease) beatOnce(ctx context.Context) error {
	owner, known := l.session.holding.name()
	if !known {
		return nil // nothing has been taken under this name
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.session.config.Heartbeat)
	defer cancel()
	now, known, err := l.session.queue.Heartbeat(ctx, owner)
	if err != nil {
		return err
	}
	if !known {
		return l.session.forgotten(ctx, owner)
	}
	if !l.even(now) {
		return nil
	}
	return l.look(ctx, owner, now)
}

// even reports whether the heartbeats have followed each other for a whole lease without a gap. After an outage of Redis, a
// jump of its clock or a pause of this process every pool looks dead, and each has to get the time for its next heartbeat.
func (l *lease) even(now time.Time) bool {
	gap := now.Sub(l.last)
	if l.last.IsZero() || gap < 0 || gap > l.length/2 {
		l.steady = now
	}
	l.last = now
	return now.Sub(l.steady) >= l.length
}

// look requeues what dead pools had taken. Of several pools that look at the same time, one does it.
func (l *lease) look(ctx context.Context, owner string, now time.Time) error {
	s := l.session
	expired, err := s.queue.ExpiredWorkers(ctx, now, l.length)
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
