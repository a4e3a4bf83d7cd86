package poller

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/store"
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
	return p.attempt(ctx, now, "a command about the queue waits", func(ctx context.Context) error {
		outcome, err := p.flow.ApplyQueueCommand(ctx, m.command, m.claimed, now)
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
	var done map[*store.Keys]bool
	p.attempt(ctx, now, "commands wait for another part of the queue", func(ctx context.Context) (err error) {
		done, err = p.store.Forward(ctx, commands)
		return err
	})
	return slices.DeleteFunc(messages, func(m *message) bool {
		if m.command == nil || m.own {
			return false
		}
		m.counter = model.CounterForwarded
		return !done[m.home]
	})
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
		p.logbook.Fault(zerolog.WarnLevel, err.Error(), now).Err(err).Msg("poller: " + waits)
	}
	return err == nil
}
