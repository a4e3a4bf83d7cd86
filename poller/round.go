package poller

import (
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/scripts"
)

// Round is what one round of a poller did.
type Round struct {
	Claimed  int // messages taken, or left from before
	Applied  int // messages that changed a model
	Settled  int // messages that changed nothing: counted, and kept in rejected if unusable
	Rejected int // of Settled: kept in rejected
	Left     int // messages still claimed; the next round decides them again
}

// maxPasses bounds how often a round decides a message again whose model changed meanwhile; then the next round goes on.
const maxPasses = 8

// RunOnce does one round: it adopts what silent pollers left, claims a batch, decides, and applies.
func (p *Poller) RunOnce(ctx context.Context) (Round, error) {
	now, claimed, err := p.store.Claim(ctx, p.config.Owner, p.config.Batch)
	if err != nil {
		return Round{}, err
	}
	round := Round{Claimed: len(claimed)}
	pending := decode(claimed)
	for pass := 0; len(pending) > 0 && pass < maxPasses; pass++ {
		if pending, err = p.pass(ctx, pending, now, &round); err != nil {
			return round, err
		}
	}
	round.Left = len(pending)
	return round, p.adopt(ctx, now)
}

// pass decides and applies letters once and returns those to be decided again.
func (p *Poller) pass(ctx context.Context, letters []*letter, now time.Time, round *Round) ([]*letter, error) {
	desk, err := p.open(ctx, letters)
	if err != nil {
		return nil, err
	}
	for _, letter := range letters {
		letter.decide(desk, now)
	}
	again, err := p.apply(ctx, letters, now, round)
	if err != nil {
		return nil, err
	}
	return again, p.settle(ctx, letters, again, now, round)
}

// apply runs the transitions of the pass and returns the letters to be decided again: refused ones, and those of the same
// models which were decided on top of them.
func (p *Poller) apply(ctx context.Context, letters []*letter, now time.Time, round *Round) ([]*letter, error) {
	changing := slices.DeleteFunc(slices.Clone(letters), func(l *letter) bool { return l.transition == nil })
	transitions := make([]*scripts.Transition, len(changing))
	for i, letter := range changing {
		transitions[i] = letter.transition
	}
	codes, err := p.store.Apply(ctx, transitions, p.config.Owner, noLimit, now)
	if err != nil {
		return nil, err
	}
	refused := make(map[string]bool)
	for i, code := range codes {
		switch code {
		case scripts.CodeApplied:
			round.Applied++
		case scripts.CodeGone: // another poller has adopted and handled it
		case scripts.CodeBroken:
			changing[i].reject("broken_model", "the key of the model holds something else")
		case scripts.CodeTaken:
			changing[i].taken = true
			refused[changing[i].uid] = true
		default:
			refused[changing[i].uid] = true
		}
		changing[i].done = code == scripts.CodeApplied || code == scripts.CodeGone
	}
	return slices.DeleteFunc(slices.Clone(letters), func(l *letter) bool { return l.done || !refused[l.uid] }), nil
}

// noLimit is the high-water mark of a script call that pushes no attempt.
const noLimit = 0

// settle removes the letters that change nothing, except those that are to be decided again.
func (p *Poller) settle(ctx context.Context, letters, again []*letter, now time.Time, round *Round) error {
	var settlements []scripts.Settlement
	for _, letter := range letters {
		if letter.settlement != nil && !letter.done && !slices.Contains(again, letter) {
			settlements = append(settlements, *letter.settlement)
		}
	}
	codes, err := p.store.Settle(ctx, settlements, p.config.Owner, now)
	if err != nil {
		return err
	}
	for i, code := range codes {
		if code != scripts.CodeApplied {
			continue
		}
		round.Settled++
		if settlements[i].Reason != "" {
			round.Rejected++
		}
	}
	return nil
}

// adopt takes over the messages of pollers that have been silent for a lease. They are decided in the next round.
func (p *Poller) adopt(ctx context.Context, now time.Time) error {
	if now.Sub(p.adopted) < p.config.Lease/4 {
		return nil
	}
	cutoff := now.Add(-p.config.Lease)
	silent, err := p.store.SilentPollers(ctx, cutoff)
	if err != nil {
		return err
	}
	for _, owner := range silent {
		moved, err := p.store.Adopt(ctx, owner, p.config.Owner, cutoff, p.config.Batch)
		if err != nil {
			return err
		}
		p.config.Log.Warn().Str("silent", owner).Int("messages", moved).Msg("poller: adopted claimed messages")
		if moved > 0 {
			return nil // one list at a time keeps the batch small; the next round looks again
		}
	}
	p.adopted = now
	return nil
}
