package poller

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// forward passes commands about models of other parts on to these parts. It returns what is to be decided or settled here. Commands whose part
// does not answer are left out: they stay claimed, and keep their order.
func (p *Poller) forward(ctx context.Context, messages []*message, now time.Time) []*message {
	var commands []store.Forwarded
	for _, m := range messages {
		if m.command != nil && !m.own {
			commands = append(commands, store.Forwarded{UID: m.uid(), Claimed: m.claimed})
		}
	}
	if len(commands) == 0 {
		return messages
	}
	done := p.forwardOnce(ctx, commands, now)
	rest := make([]*message, 0, len(messages))
	for _, m := range messages {
		switch {
		case m.command == nil || m.own:
			rest = append(rest, m)
		case done[m.home]:
			m.counter = model.CounterForwarded
			rest = append(rest, m)
		}
	}
	return rest
}

// forwardOnce returns the parts that have their commands.
func (p *Poller) forwardOnce(ctx context.Context, commands []store.Forwarded, now time.Time) (done map[*store.Keys]bool) {
	p.attempt(ctx, now, "poller: commands wait for another part of the queue", func(ctx context.Context) (err error) {
		done, err = p.store.Forward(ctx, commands)
		return err
	})
	return done
}

// attempt does something that may need other parts of the queue, within a tick; false: not now. After an error all of that is left alone for
// twice as long as was waited for it: results come first.
func (p *Poller) attempt(ctx context.Context, now time.Time, waits string, do func(context.Context) error) bool {
	tick := p.config.Tick
	if left := p.unreachable.Sub(now); left > 0 && left <= 3*tick { // more: the clock was set back
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, tick)
	defer cancel()
	err := do(ctx)
	if err != nil {
		p.unreachable = now.Add(3 * tick)
		if count, tell := p.errors.Sample(err.Error(), now); tell {
			p.config.Log.Warn().Err(err).Int("like_this", count).Msg(waits)
		}
	}
	return err == nil
}
