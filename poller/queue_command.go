package poller

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// applyQueueCommands applies the commands about the queue, in their order, and returns what is to be decided or settled. If one cannot be
// applied now, it and those behind it are left out: they stay claimed, and keep their order.
func (p *Poller) applyQueueCommands(ctx context.Context, messages []*message, now time.Time) []*message {
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
			waits = waits || !p.applyQueueCommand(ctx, m, now)
		}
		return waits
	})
}

// applyQueueCommand applies a command about the queue; false: not now.
func (p *Poller) applyQueueCommand(ctx context.Context, m *message, now time.Time) bool {
	return p.attempt(ctx, now, "poller: a command about the queue waits", func(ctx context.Context) error {
		outcome, err := p.store.ApplyQueueCommand(ctx, m.command, m.claimed, now)
		if refused, is := errors.AsType[*document.Error](err); is {
			m.counter, m.reason = model.CounterMalformed, refused
			return nil
		}
		m.counter, m.applied = string(outcome), outcome == model.Applied
		if m.applied {
			m.counter = string(m.command.Type)
		}
		return err
	})
}
