package poller

import (
	"context"
	"slices"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// batch is claimed together.
type batch struct {
	store.Claim
	messages []*message
	split    bool            // it was claimed with the batch in front
	ahead    *store.Snapshot // the models, if they were read before the batch in front was committed
}

// claim claims the messages behind the results in hand.
func (p *Poller) claim(ctx context.Context, inHand int) (*batch, error) {
	claim, err := p.store.Claim(ctx, p.config.Owner, store.Holding{InHand: inHand, Waiting: p.waiting}, p.config.Batch, p.config.Lease)
	if err != nil {
		return nil, err
	}
	p.seen = claim.Now
	for _, wrong := range claim.WrongTypes {
		p.logbook.WrongType(wrong, claim.Now)
	}
	messages := redis.Map(claim.Messages, func(entry store.Claimed) *message { return decode(entry, p.store) })
	return &batch{Claim: claim, messages: messages}, nil
}

// claimAhead claims the batch behind one that is full, or splits one that gives many places of keys back. nil: there is none. Nor is one claimed behind
// messages that were left before, as more and more would be claimed, or behind commands, which may wait.
func (p *Poller) claimAhead(ctx context.Context, b *batch, keepGoing func() bool) (*batch, error) {
	part, handsOver := max(fewEnds, len(b.messages)/2), backoff.Recent(p.handed, b.Now, p.config.Tick)
	if handsOver && !p.left && part < len(b.messages) && !slices.ContainsFunc(b.Messages[:part], store.Claimed.FromControl) {
		return b.cut(part), nil
	}
	if p.left || len(b.messages) < p.config.Batch || b.commands() || !keepGoing() {
		return nil, nil
	}
	next, err := p.claim(ctx, len(b.messages))
	if err != nil || len(next.messages) == 0 {
		return nil, err
	}
	return next, nil
}

// fewEnds is how many results are applied together at least while places of keys are handed over, so that who waits for a place does not wait for all.
// Of many, half are applied together: a poller that cannot keep up would only become slower.
const fewEnds = 16

// cut leaves the first messages to the batch, and returns one with the others.
func (b *batch) cut(n int) *batch {
	rest := &batch{Claim: b.Claim, messages: b.messages[n:], split: true}
	rest.Messages = b.Messages[n:]
	b.messages, b.Messages, b.Bulks = b.messages[:n], b.Messages[:n], false
	return rest
}

// disjoint reports whether the next batch can be read before this one is committed: no model is in both, and there is no command in it.
func (b *batch) disjoint(next *batch) bool {
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

// subjects lists the models of messages that are still to be decided, and the commands among these.
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
