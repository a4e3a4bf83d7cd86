package poller

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// steer carries out the commands about the queue, in their order, and returns what is to be decided or settled. From one that cannot be
// carried out now they are left out: they stay in the lane, and keep their order.
func (p *Poller) steer(ctx context.Context, messages []*message, now time.Time) []*message {
	seen, waits := map[string]bool{}, false
	return slices.DeleteFunc(messages, func(m *message) bool {
		if m.command == nil || m.counter != "" {
			return false
		}
		twice := m.command.ID != "" && seen[m.command.ID]
		seen[m.command.ID] = true
		switch {
		case !m.command.Type.OfQueue():
			return false
		case twice:
			m.counter = string(model.Duplicate)
		default:
			waits = waits || !p.steerOnce(ctx, m, now)
		}
		return waits
	})
}

// steerOnce carries a command out; false: not now. As with those for other parts, results come first: after a failure it waits.
func (p *Poller) steerOnce(ctx context.Context, m *message, now time.Time) bool {
	tick := p.config.Tick
	if left := p.unreachable.Sub(now); left > 0 && left <= 3*tick {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, tick)
	defer cancel()
	outcome, err := p.store.ApplyQueueCommand(ctx, m.command, m.claimed, now)
	if refused, is := errors.AsType[*document.Error](err); is {
		m.counter, m.reason = model.CounterMalformed, refused
		return true
	}
	if err != nil {
		p.unreachable = now.Add(3 * tick)
		if count, tell := p.waits.Sample(err.Error(), now); tell {
			p.config.Log.Warn().Err(err).Int("like_this", count).Msg("poller: a command about the queue waits")
		}
		return false
	}
	m.counter, m.steered = string(outcome), outcome == model.Applied
	if m.steered {
		m.counter = string(m.command.Type)
	}
	return true
}
