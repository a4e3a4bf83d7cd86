package poller

import (
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// carryOut takes a step of a bulk; more: there is another one to take at once. It must keep no message waiting: while there are any, steps come
// a tenth of a tick after another, and after an error a tick.
func (p *Poller) carryOut(ctx context.Context, round Round, now time.Time) (more bool) {
	pause := time.Duration(0)
	switch {
	case p.bulks.failed:
		pause = p.config.Tick
	case round.Claimed > round.Waiting:
		pause = p.config.Tick / 10
	}
	if backoff.Recent(p.bulks.stepped, now, pause) {
		return false
	}
	more, err := p.stepBulk(ctx, now)
	p.bulks.stepped, p.bulks.failed = now, err != nil
	if err == nil {
		return more
	}
	if count, tell := p.bulks.errors.Sample(err.Error(), now); tell {
		p.config.Log.Warn().Err(err).Int("like_this", count).Msg("poller: a step of a bulk failed")
	}
	return false
}

// stepBulk takes a step of the bulk whose turn it is.
func (p *Poller) stepBulk(ctx context.Context, now time.Time) (more bool, err error) {
	open, err := p.store.Bulks(ctx)
	open = slices.DeleteFunc(open, func(b store.Bulk) bool { return !p.ready(&b, now) })
	if err != nil || len(open) == 0 {
		return false, err
	}
	turn := p.turn(open)
	p.bulks.last = turn[len(turn)-1].ID
	if err := p.advance(ctx, turn, now); err != nil {
		return false, err
	}
	again := slices.ContainsFunc(turn, func(b *store.Bulk) bool { return b.EndedAt.IsZero() && p.ready(b, now) })
	return again || len(open) > len(turn), nil
}

// ready reports whether a step of a bulk may be taken now. Where a policy has changed, a batch that was read before is committed two ticks later:
// what comes then is planned by the new one.
func (p *Poller) ready(b *store.Bulk, now time.Time) bool {
	early := b.Action == model.BulkReplan && backoff.Recent(b.Since, now, 2*p.config.Tick)
	early = early || b.Action == model.BulkRun && now.Before(b.Since) // the clock was set back: what it starts now would seem older than it is
	return b.Problem == "" && !early && b.Rate.Allow(b.Next, now, p.behind()) > 0
}

// behind is how far back a rate reaches for what it has missed: over a pause between two steps.
func (p *Poller) behind() time.Duration { return max(time.Second, 2*p.config.Tick) }

// turn returns the bulk behind that of the last step. Policies that have changed together share their walk.
func (p *Poller) turn(open []store.Bulk) []*store.Bulk {
	next := 1 + slices.IndexFunc(open, func(b store.Bulk) bool { return b.ID == p.bulks.last })
	first := &open[next%len(open)]
	turn := []*store.Bulk{first}
	for i := range open {
		b := &open[i]
		if b != first && sharesWalk(b) && sharesWalk(first) && b.Place == first.Place {
			turn = append(turn, b)
		}
	}
	return turn
}

func sharesWalk(b *store.Bulk) bool { return b.Policy() != "" && len(b.Rest) == 0 }

// advance carries bulks out on models that they meet at their place, and then notes how far they are. A crash before that repeats the step,
// which changes nothing twice.
func (p *Poller) advance(ctx context.Context, bulks []*store.Bulk, now time.Time) error {
	first := bulks[0]
	uids, place := first.Rest, first.Place
	if len(uids) == 0 {
		var err error
		if uids, place, err = p.store.WalkModels(ctx, first.Selector, place, p.config.Batch); err != nil {
			return err
		}
		slices.Sort(uids) // one may come twice
		uids = slices.Compact(uids)
	}
	allowed := first.Rate.Allow(first.Next, now, p.behind())
	var left []string
	for len(uids) > 0 {
		s := bulkStep{Poller: p, bulks: bulks, allowed: allowed, now: now}
		chunk := uids[:min(len(uids), p.config.Batch)]
		if err := s.run(ctx, chunk); err != nil || s.lost {
			return err
		}
		left = append(left, s.left...)
		uids = uids[len(chunk):]
		if first.Action != model.BulkReplan { // each of its chunks is a step
			break
		}
	}
	rest := slices.Concat(left, uids)
	for _, b := range bulks {
		b.Place, b.Rest, b.Trying = place, rest, nil
		moved, err := p.store.MoveBulk(ctx, b, now)
		if err != nil {
			return err
		}
		if moved && !b.EndedAt.IsZero() {
			p.config.Log.Info().Str("bulk", b.ID).Int64("seen", b.Seen).Int64("picked", b.Picked).Int64("done", b.Done).
				Int64("refused", b.Refusals()).Msg("poller: a bulk is over")
		}
	}
	return nil
}

// bulkStep is a step of bulks over some models.
type bulkStep struct {
	*Poller
	bulks   []*store.Bulk
	allowed int // most models that may be changed
	now     time.Time

	noted bool     // what is about to be changed is written down
	lost  bool     // somebody else has moved the bulk: nothing more may be changed
	left  []string // uids to look at again
}

// pick is a model that a bulk picks, with what follows.
type pick struct {
	bulk    *store.Bulk
	uid     string
	outcome model.Outcome
	item    store.Item // Applied
}

// run decides and commits about models, and counts what becomes of them.
func (s *bulkStep) run(ctx context.Context, uids []string) error {
	again := uids
	for pass := 0; len(again) > 0 && pass < maxPasses; pass++ {
		picks, handled, err := s.decide(ctx, again)
		if err != nil {
			return err
		}
		s.left = append(s.left, again[handled:]...)
		if err := s.note(ctx, picks); err != nil || s.lost {
			return err
		}
		if again, err = s.commit(ctx, picks); err != nil {
			return err
		}
	}
	s.left = append(s.left, again...)
	for _, b := range s.bulks {
		b.Seen += int64(len(uids) - len(s.left))
	}
	return nil
}

// decide decides about models as long as the rate lets it; handled is about how many.
func (s *bulkStep) decide(ctx context.Context, uids []string) (picks []pick, handled int, err error) {
	snapshot, queued, err := s.read(ctx, uids)
	if err != nil {
		return nil, 0, err
	}
	changes, tried := 0, s.bulks[0].Trying
	if s.noted { // by this step itself
		tried = nil
	}
	for i, uid := range uids {
		record := snapshot.Records[uid]
		for _, b := range s.bulks {
			found, picked := s.decideModel(b, record, uid, queued)
			if !picked {
				continue
			}
			if found.item.Transition != nil {
				if changes == s.allowed {
					return picks, i, nil
				}
				changes++
			} else if store.Harmless(found.outcome) && slices.Contains(tried, uid) { // whoever tried it has not heard that it was done
				found.outcome = model.Applied
			}
			picks = append(picks, found)
		}
	}
	return picks, len(uids), nil
}

// read reads models, with their payloads where entries may have to be taken back; and what stands in the input list if that matters.
func (s *bulkStep) read(ctx context.Context, uids []string) (snapshot *store.Snapshot, queued map[string]string, err error) {
	var commands []*model.Command
	if s.bulks[0].Action != model.BulkReplan {
		for _, uid := range uids {
			commands = append(commands, &model.Command{Type: model.CommandType(s.bulks[0].Action), UID: uid})
		}
	}
	if s.bulks[0].Selector.AsksQueued() {
		if queued, err = s.store.Queued(ctx); err != nil {
			return nil, nil, err
		}
	}
	snapshot, err = s.store.Read(ctx, uids, commands)
	return snapshot, queued, err
}

func (s *bulkStep) decideModel(b *store.Bulk, record *store.Record, uid string, queued map[string]string) (pick, bool) {
	if !record.Exists { // one that is named is missed
		_, own := s.store.Home(uid)
		return pick{bulk: b, uid: uid, outcome: model.UnknownModel}, own && slices.Contains(b.Selector.Only(model.SelectUID), uid)
	}
	_, waits := queued[record.AttemptUID]
	decision, outcome, picked := b.Decide(&record.Model, record.Status(s.now, waits), s.now)
	found := pick{bulk: b, uid: uid, outcome: outcome}
	if picked && outcome == model.Applied {
		found.item = store.Item{Transition: record.Decide(decision, s.now)}
	}
	return found, picked
}

// note writes down what is about to be changed, and counts it against the rate, before it is changed: so the rate holds over crashes, and whoever
// repeats the step knows what was done by this bulk.
func (s *bulkStep) note(ctx context.Context, picks []pick) error {
	b := s.bulks[0]
	if b.Action == model.BulkReplan || s.noted {
		return nil
	}
	changes := 0
	for _, found := range picks {
		if found.item.Transition != nil {
			b.Trying = append(b.Trying, found.uid)
			changes++
		}
	}
	if changes == 0 {
		return nil
	}
	if s.noted = true; b.Rate.Count > 0 {
		b.Next = b.Rate.Spend(b.Next, s.now, s.behind(), changes)
	}
	moved, err := s.store.MoveBulk(ctx, b, s.now)
	s.lost = !moved
	return err
}

// commit commits what was decided, counts it, and returns the models to be decided about again.
func (s *bulkStep) commit(ctx context.Context, picks []pick) (again []string, err error) {
	batch, of := store.Batch{Now: s.now, Owner: s.config.Owner}, []pick{}
	for _, found := range picks {
		if found.item.Transition == nil {
			found.bulk.Count(found.outcome)
			continue
		}
		batch.Items, of = append(batch.Items, found.item), append(of, found)
	}
	codes, err := s.store.Commit(ctx, batch)
	if err != nil {
		return nil, err
	}
	for i, code := range codes {
		found := of[i]
		switch code {
		case store.CodeApplied:
			found.bulk.Count(model.Applied)
			if found.bulk.Action != model.BulkReplan {
				s.logbook.Applied(found.item.Transition, s.now)
			}
		case store.CodeBroken:
			found.bulk.Count(model.Broken)
		default:
			again = append(again, found.uid)
		}
	}
	return again, nil
}
