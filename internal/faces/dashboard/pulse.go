package dashboard

import (
	"context"

	"github.com/refreshd/refreshd/internal/backoff"
)

// beatTicks is after how many ticks open pages are read again even if nothing has changed: time goes by, and late becomes stale.
const beatTicks = 30

// pulse tells all open pages of a queue that it has changed. It asks once a tick, whatever number of pages are open.
type pulse struct {
	version func(ctx context.Context) (string, error)
	open    int                // guarded by mu of the streams: subscriptions
	changed chan struct{}      // guarded by mu of the streams: closed at the next change
	stop    context.CancelFunc // guarded by mu of the streams
}

// begin counts a subscription. What it returns is closed when the first page may be read; nil: it may be at once.
func (s *streams) begin(ctx context.Context, p *pulse) <-chan struct{} {
	if p.open++; p.open > 1 {
		return nil
	}
	ctx, p.stop = context.WithCancel(ctx)
	p.changed = make(chan struct{})
	s.running.Go(func() { s.beat(ctx, p) })
	return p.changed
}

func (p *pulse) end() {
	if p.open--; p.open == 0 {
		p.stop()
	}
}

// beat tells of each change until ctx ends. While the queue cannot be read, nothing has changed.
func (s *streams) beat(ctx context.Context, p *pulse) {
	for last, ticks := "", 0; ctx.Err() == nil; ticks++ {
		begun := s.clock()
		if version, err := p.version(ctx); err == nil && (version != last || ticks >= beatTicks) {
			last, ticks = version, 0
			s.mu.Lock()
			if ctx.Err() == nil { // else another has begun
				close(p.changed)
				p.changed = make(chan struct{})
			}
			s.mu.Unlock()
		}
		backoff.Rest(ctx, max(s.tick, restFactor*s.clock().Sub(begun)), nil)
	}
}

// next returns what is closed at the next change.
func (s *streams) next(p *pulse) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.changed
}
