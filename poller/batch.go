package poller

import (
	"context"
	"slices"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// batch is what was claimed together.
type batch struct {
	store.Claim
	messages []*message
	ahead    *store.Snapshot // the models, if they were read before the batch in front was committed
}

// claim claims what stands behind the results in hand.
func (p *Poller) claim(ctx context.Context, inHand int) (*batch, error) {
	claim, err := p.store.Claim(ctx, p.config.Owner, inHand, p.config.Batch, p.config.Lease)
	if err != nil {
		return nil, err
	}
	for _, misfit := range claim.Misfits {
		p.logbook.Misfit(misfit, claim.Now)
	}
	b := &batch{Claim: claim, messages: make([]*message, len(claim.Messages))}
	for i, entry := range claim.Messages {
		b.messages[i] = decode(entry, p.store)
	}
	return b, nil
}

// claimAhead claims the batch behind one that is full; nil: there is none, or this one holds what was left before, so that more and more would be
// claimed, or it has commands. These may wait, and change what nobody but themselves knows.
func (p *Poller) claimAhead(ctx context.Context, b *batch, more func() bool) (*batch, error) {
	if p.left || len(b.messages) < p.config.Batch || b.commands() || !more() {
		return nil, nil
	}
	next, err := p.claim(ctx, len(b.messages))
	if err != nil || len(next.messages) == 0 {
		return nil, err
	}
	return next, nil
}

// apart reports whether the next batch can be read before this one is committed: no model is in both, and there is no command in it.
func (b *batch) apart(next *batch) bool {
	here, _ := subjects(b.messages)
	there, _ := subjects(next.messages)
	models := map[string]bool{}
	for _, uid := range here {
		models[uid] = true
	}
	return !next.commands() && !slices.ContainsFunc(there, func(uid string) bool { return models[uid] })
}

func (b *batch) commands() bool {
	return slices.ContainsFunc(b.Messages, store.Claimed.FromControl)
}

// subjects lists the models of what is still to be decided, and what of it are commands.
func subjects(messages []*message) (uids []string, commands []*model.Command) {
	for _, m := range messages {
		if m.counter != "" {
			continue
		}
		uids = append(uids, m.uid())
		if m.command != nil {
			commands = append(commands, m.command)
		}
	}
	return uids, commands
}
