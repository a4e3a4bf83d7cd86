package poller

import (
	"context"
	"errors"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/logbook"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Round is what one round of a poller did.
type Round struct {
	Claimed  int // messages taken, or left from before
	Applied  int // messages that changed a model
	Settled  int // messages that changed nothing: counted, and kept in rejected if unusable
	Rejected int // of Settled: kept in rejected
	Left     int // messages still claimed; the next round decides them again
	Waiting  int // of Left: commands for another part of the queue, or for all of them, of which one does not answer; and what needs a key of another type
	// HoldsLane says that commands are this poller's to apply.
	HoldsLane bool
	// Bulks says that another step of a bulk can be taken at once.
	Bulks bool
}

// maxPasses bounds how often a round decides a message again whose model changed meanwhile; then the next round goes on.
const maxPasses = 8

// RunOnce does one round: it claims a batch, decides, commits, takes a step of a bulk if there is one, and adopts what expired pollers left.
func (p *Poller) RunOnce(ctx context.Context) (Round, error) {
	claim, err := p.store.Claim(ctx, p.config.Owner, p.config.Batch, p.config.Lease)
	if err != nil {
		return Round{}, err
	}
	for _, misfit := range claim.Misfits {
		p.tellMisfit(misfit, claim.Now)
	}
	round := Round{Claimed: len(claim.Messages), HoldsLane: claim.HoldsLane}
	pending := make([]*message, len(claim.Messages))
	for i, entry := range claim.Messages {
		pending[i] = decode(entry, p.store)
	}
	pending = p.steer(ctx, p.forward(ctx, pending, claim.Now), claim.Now)
	round.Waiting = len(claim.Messages) - len(pending)
	for pass := 0; len(pending) > 0 && pass < maxPasses; pass++ {
		if pending, err = p.pass(ctx, pending, claim.Now, &round); err != nil {
			return round, err
		}
	}
	round.Left = len(pending) + round.Waiting
	if claim.Bulks {
		round.Bulks = p.carryOut(ctx, round, claim.Now)
	}
	return round, p.adopt(ctx, claim.Now)
}

// pass decides and commits messages once and returns those to be decided again.
func (p *Poller) pass(ctx context.Context, messages []*message, now time.Time, round *Round) (again []*message, err error) {
	uids, commands := subjects(messages)
	snapshot, err := p.store.Read(ctx, uids, commands)
	if err != nil {
		return nil, err
	}
	batch := store.Batch{Now: now, Owner: p.config.Owner, Items: make([]store.Item, len(messages))}
	for i, message := range messages {
		batch.Items[i] = message.decide(snapshot, now)
	}
	codes, err := p.store.Commit(ctx, batch)
	blocked := map[string]bool{} // models
	for i, code := range codes {
		p.tellMisfit(batch.Items[i].Misfit, now)
		switch uid := messages[i].uid(); {
		case code == store.CodeBlocked, code.Retry() && blocked[uid]: // the later ones of a model wait behind it
			blocked[uid] = true
			round.Waiting++
		case code == store.CodeBroken:
			messages[i].counter, messages[i].reason = model.CounterBrokenModel, errors.New(batch.Items[i].Misfit)
			again = append(again, messages[i])
		case code == store.CodeDuplicate:
			messages[i].counter, messages[i].reason = string(model.Duplicate), nil
			again = append(again, messages[i])
		case code.Retry():
			if code == store.CodeTaken {
				messages[i].taken = batch.Items[i].Transition.AttemptUID()
			}
			again = append(again, messages[i])
		case code == store.CodeApplied:
			round.count(batch.Items[i])
			p.log(batch.Items[i], messages[i], now)
		}
	}
	return again, err
}

// tellMisfit tells of a key of another type than it should be, if there is one, once in a while.
func (p *Poller) tellMisfit(misfit string, now time.Time) {
	if misfit == "" { // not even counted: the sampler counts by texts, and this would be one
		return
	}
	if count, tell := p.waits.Sample(misfit, now); tell {
		p.config.Log.Error().Str("misfit", misfit).Int("like_this", count).Msg("poller: a key is of another type")
	}
}

// count counts an item that was committed.
func (r *Round) count(item store.Item) {
	switch {
	case item.Transition != nil:
		r.Applied++
	case item.Reason != "":
		r.Rejected++
		r.Settled++
	default:
		r.Settled++
	}
}

// log tells what became of a model, or of a message that cannot be handled.
func (p *Poller) log(item store.Item, m *message, now time.Time) {
	switch {
	case item.Transition != nil:
		p.logbook.Applied(item.Transition, now)
	case item.Reason != "":
		uid, attemptUID := m.subject()
		p.logbook.Rejected(logbook.Rejection{
			UID: uid, AttemptUID: attemptUID, Command: m.claimed.FromControl(), Counter: item.Counter, Reason: item.Reason,
		}, now)
	}
}

// adopt takes over the messages of pollers whose lease has expired. They are decided in the next round.
func (p *Poller) adopt(ctx context.Context, now time.Time) error {
	if backoff.Recent(p.adopted, now, p.config.Lease/4) {
		return nil
	}
	expired, err := p.store.ExpiredPollers(ctx, now, p.config.Lease)
	if err != nil {
		return err
	}
	for _, owner := range expired {
		if owner == p.config.Owner {
			continue // somebody uses its name
		}
		moved, err := p.store.Adopt(ctx, owner, p.config.Owner, p.config.Lease, p.config.Batch)
		if misfit, is := store.Misfit(err); is {
			p.tellMisfit(misfit, now)
			continue
		}
		if err != nil {
			return err
		}
		if moved > 0 {
			p.config.Log.Warn().Str("silent", owner).Int("messages", moved).Msg("poller: adopted claimed messages")
			return nil // one list at a time keeps the batch small; the next round looks again
		}
	}
	p.adopted = now
	return nil
}
