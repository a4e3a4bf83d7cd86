package worker

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/scripts"
)

// lease gives the pool's signs of life, and hands back what other pools had taken when they are silent for too long.
type lease struct {
	session *session
	every   time.Duration // between two signs of life
	length  time.Duration
	retry   *backoff.Backoff // run goroutine only

	last   time.Time // the last sign of life by the clock of Redis; run goroutine only
	steady time.Time // since when the signs of life followed each other evenly; run goroutine only
}

func newLease(s *session, config *Config) *lease {
	return &lease{session: s, every: config.Beat, length: config.Lease, retry: config.retry("giving a sign of life")}
}

// run beats until ctx ends, also while all slots are busy.
func (l *lease) run(ctx context.Context) {
	ticker := time.NewTicker(l.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.retry.After(l.beatOnce(context.WithoutCancel(ctx)))
		}
	}
}

func (l *lease) beatOnce(ctx context.Context) error {
	owner, known := l.session.holding.name()
	if !known {
		return nil // nothing has been taken under this name
	}
	ctx, cancel := context.WithTimeout(ctx, l.every)
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

// even reports whether the signs of life have followed each other for a whole lease without a gap. After an outage of Redis, a
// jump of its clock or a pause of this process every pool looks silent, and each has to get the time for its next sign.
func (l *lease) even(now time.Time) bool {
	gap := now.Sub(l.last)
	if l.last.IsZero() || gap < 0 || gap > l.length/2 {
		l.steady = now
	}
	l.last = now
	return now.Sub(l.steady) >= l.length
}

// look hands back what silent pools had taken. Of several pools that look at the same time, one does it.
func (l *lease) look(ctx context.Context, owner string, now time.Time) error {
	silent, err := l.session.queue.ExpiredWorkers(ctx, now, l.length)
	if err != nil {
		return err
	}
	for _, worker := range silent {
		if worker.Owner == owner {
			continue // its entry is older than this sign of life; the script would refuse it as well
		}
		if err := l.handBack(ctx, worker); err != nil {
			return err
		}
	}
	return nil
}

func (l *lease) handBack(ctx context.Context, worker scripts.ExpiredWorker) error {
	count, err := l.session.queue.Requeue(ctx, worker)
	if err != nil || count == 0 {
		return err
	}
	l.session.counts.handedBack.Add(int64(count))
	l.session.config.Log.Warn().Str("owner", worker.Owner).Time("last_sign", worker.LastHeartbeat).Int("attempts", count).
		Msg("worker: handed back what a silent worker had taken")
	return nil
}

// forgotten ends all work that was taken under a name that is forgotten: by now it is in the hands of others.
func (s *session) forgotten(ctx context.Context, owner string) error {
	if !s.holding.lose(owner) {
		return nil
	}
	for _, f := range s.inHand() {
		if f.owner == owner {
			f.cancel(ErrHandedBack)
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
	ctx, cancel := context.WithTimeout(ctx, s.config.Beat)
	defer cancel()
	if left, err := s.queue.Leave(ctx, owner); err != nil || left > 0 {
		s.config.Log.Warn().Err(err).Int("attempts", left).Msg("worker: left with attempts that are not answered")
	}
}
