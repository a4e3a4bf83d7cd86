package poller

import (
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// replan takes a step of planning those models anew that wait for a planned refresh of a policy that has changed; more: there is another one
// to take. It must keep no message waiting: while there are any, steps come a tenth of a tick after another, and after an error a tick.
func (p *Poller) replan(ctx context.Context, round Round, now time.Time) (more bool) {
	pause := time.Duration(0)
	switch {
	case p.replanFailed:
		pause = p.config.Tick
	case round.Claimed > round.Waiting:
		pause = p.config.Tick / 10
	}
	if backoff.Recent(p.replanned, now, pause) {
		return false
	}
	more, err := p.replanStep(ctx, now)
	p.replanned, p.replanFailed = now, err != nil
	if err == nil {
		return more
	}
	if count, tell := p.replanErrors.Sample(err.Error(), now); tell {
		p.config.Log.Warn().Err(err).Int("like_this", count).Msg("poller: planning anew failed")
	}
	return false
}

// replanStep looks at a batch of models for all policies whose walks are at the same place, and then notes how far they are. A crash before
// that repeats the step, which changes nothing any more.
func (p *Poller) replanStep(ctx context.Context, now time.Time) (more bool, err error) {
	walks, err := p.store.Replans(ctx)
	// A batch that was read before the policy changed is committed by now: what comes later is planned by the new one.
	walks = slices.DeleteFunc(walks, func(w scripts.Replan) bool { return !w.Readable || backoff.Recent(w.Since, now, 2*p.config.Tick) })
	if err != nil || len(walks) == 0 {
		return false, err
	}
	together := slices.DeleteFunc(slices.Clone(walks), func(w scripts.Replan) bool { return w.Place != walks[0].Place })
	uids, place, err := p.store.WalkModels(ctx, walks[0].Place, p.config.Batch)
	if err != nil {
		return false, err
	}
	for batch := range slices.Chunk(uids, p.config.Batch) {
		if err := p.replanModels(ctx, batch, together, now); err != nil {
			return false, err
		}
	}
	for i := range together {
		together[i].Place = place
		together[i].Seen += int64(len(uids))
	}
	codes, err := p.store.MoveReplans(ctx, together)
	for i, code := range codes {
		if walk := together[i]; code == scripts.CodeApplied && place == scripts.WalkEnds {
			p.config.Log.Info().Str("policy", walk.Policy).Int64("seen", walk.Seen).Int64("changed", walk.Changed).Msg("poller: models are planned anew")
		}
	}
	return place != scripts.WalkEnds || len(walks) > len(together), err
}

// replanModels decides and commits about models, and counts those that have changed with the walk of their policy.
func (p *Poller) replanModels(ctx context.Context, uids []string, walks []scripts.Replan, now time.Time) error {
	for pass := 0; len(uids) > 0 && pass < maxPasses; pass++ {
		snapshot, err := p.store.Read(ctx, uids, nil)
		if err != nil {
			return err
		}
		batch, of := scripts.Batch{Now: now, Owner: p.config.Owner}, []int{}
		for _, uid := range uids { // a uid may come twice: the record moves on
			record := snapshot.Records[uid]
			walk := slices.IndexFunc(walks, func(w scripts.Replan) bool { return record.Uses(w.Policy) })
			if walk < 0 {
				continue
			}
			if decision, outcome := record.Replan(now); outcome == model.Applied {
				batch.Items, of = append(batch.Items, scripts.Item{Transition: record.Decide(decision, now)}), append(of, walk)
			}
		}
		codes, err := p.store.Commit(ctx, batch)
		if err != nil {
			return err
		}
		uids = nil
		for i, code := range codes {
			switch {
			case code == scripts.CodeApplied:
				walks[of[i]].Changed++
			case code.Retry():
				uids = append(uids, batch.Items[i].Transition.UID())
			}
		}
	}
	return nil
}
