package poller

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// carryOut takes a step of a bulk; more: there is another one to take at once. It must keep no message waiting: while there are any, steps come
// a tenth of a tick after another, and after an error a tick. Steps that plan models anew, for which nobody waits, come a tick after another too while
// messages fill half of a batch: more may stand behind them.
func (p *Poller) carryOut(ctx context.Context, round Round, now time.Time) (more bool) {
	pause := time.Duration(0)
	switch {
	case p.bulks.failed, p.bulks.planned.Equal(p.bulks.stepped) && 2*(round.Claimed-round.Waiting) >= p.config.Batch:
		pause = p.config.Tick
	case round.Claimed > round.Waiting:
		pause = p.config.Tick / 10
	}
	if backoff.Recent(p.bulks.stepped, now, pause) {
		return !p.bulks.failed
	}
	more, err := p.stepBulk(ctx, now)
	p.bulks.stepped, p.bulks.failed = now, err != nil
	if err != nil {
		p.logbook.Fault(zerolog.WarnLevel, err.Error(), now).Err(err).Msg("poller: a step of a bulk failed")
	}
	return more
}

// stepBulk takes a step of the bulk after the last one. Policies that have changed together share their walk, which lets bulks pass that a person has
// begun, but for a step a tick.
func (p *Poller) stepBulk(ctx context.Context, now time.Time) (more bool, err error) {
	open, err := p.flow.Bulks(ctx)
	open = slices.DeleteFunc(open, func(b flow.Bulk) bool { return !p.ready(&b, now) })
	if err != nil || len(open) == 0 {
		return false, err
	}
	all := len(open)
	byHand := slices.DeleteFunc(slices.Clone(open), func(b flow.Bulk) bool { return plansAnew(&b) })
	if len(byHand) > 0 && backoff.Recent(p.bulks.planned, now, p.config.Tick) {
		open = byHand
	}
	next := 1 + slices.IndexFunc(open, func(b flow.Bulk) bool { return b.ID == p.bulks.last })
	first := &open[next%len(open)]
	turn := []*flow.Bulk{first}
	for i := range open {
		b := &open[i]
		if b != first && sharesWalk(b) && sharesWalk(first) && b.Place == first.Place {
			turn = append(turn, b)
		}
	}
	if p.bulks.last = turn[len(turn)-1].ID; plansAnew(first) {
		p.bulks.planned = now
	}
	if err := p.advance(ctx, turn, now); err != nil {
		return false, err
	}
	again := slices.ContainsFunc(turn, func(b *flow.Bulk) bool { return b.EndedAt.IsZero() && p.ready(b, now) })
	return again || all > len(turn), nil
}

// ready reports whether a step of a bulk may be taken now. Where a policy has changed, a batch that was read before is committed two ticks later:
// what comes then is planned by the new one.
func (p *Poller) ready(b *flow.Bulk, now time.Time) bool {
	early := b.Action == model.BulkReplan && backoff.Recent(b.Since, now, 2*p.config.Tick)
	early = early || b.Action == model.BulkRun && now.Before(b.Since) // the clock was set back: its starts now would seem older than it is
	return b.Problem == "" && !early && b.Rate.Allow(b.Next, now, p.behind()) > 0
}

// behind is how far back a rate catches up: over a pause between two steps.
func (p *Poller) behind() time.Duration { return max(time.Second, 2*p.config.Tick) }

func plansAnew(b *flow.Bulk) bool { return b.Action == model.BulkReplan || b.Action == model.BulkZones }

func sharesWalk(b *flow.Bulk) bool { return b.Policy() != "" && len(b.Rest) == 0 }

// advance carries bulks out on models that they meet at their place, and then notes how far they are. A crash before that repeats the step,
// which changes nothing twice.
func (p *Poller) advance(ctx context.Context, bulks []*flow.Bulk, now time.Time) error {
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
		if err := s.run(ctx, chunk); err != nil {
			if errors.Is(err, errMoved) {
				return nil
			}
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
		moved, err := p.flow.MoveBulk(ctx, b, now)
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

// errMoved ends a step: somebody else has moved the bulk, so nothing more may be changed.
var errMoved = errors.New("expected a bulk that nobody else moves")

// errNotNow leaves a model to another step, as the rate lets nothing more through.
var errNotNow = errors.New("the rate of the bulk is spent")

// bulkStep is a step of bulks over some models. It is the store for store.Execute.
type bulkStep struct {
	*Poller
	bulks   []*flow.Bulk
	allowed int // most models that may be changed
	now     time.Time

	changes int               // that were decided since the models were read
	queued  map[string]string // the input list, if it matters
	noted   bool              // the models about to be changed are stored
	left    []string          // uids to look at again
}

type pick struct {
	bulk       *flow.Bulk
	picked     bool
	outcome    model.Outcome
	transition *store.Transition // Applied
}

// run decides and commits about models, and counts the results.
func (s *bulkStep) run(ctx context.Context, uids []string) error {
	var commands []*model.Command
	var picks []pick
	for _, uid := range uids {
		for _, b := range s.bulks {
			picks = append(picks, pick{bulk: b})
			commands = append(commands, &model.Command{Type: model.CommandType(b.Action), UID: uid})
		}
	}
	refused, err := store.Execute(ctx, s, commands, func(i int, snapshot *store.Snapshot, _ time.Time) (*store.Transition, error) {
		return s.decide(&picks[i], snapshot.Records[commands[i].UID], commands[i].UID)
	})
	if err != nil {
		return err
	}
	for i, reason := range refused {
		s.count(&picks[i], commands[i].UID, reason)
	}
	s.left = slices.Compact(s.left)
	for _, b := range s.bulks {
		b.Seen += int64(len(uids) - len(s.left))
	}
	return nil
}

// Now is the instant of the step.
func (s *bulkStep) Now(context.Context) (time.Time, error) { return s.now, nil }

// Read reads models, with their payloads where entries may have to be taken back.
func (s *bulkStep) Read(ctx context.Context, uids []string, commands []*model.Command) (snapshot *store.Snapshot, err error) {
	s.changes = 0
	if action := s.bulks[0].Action; action == model.BulkReplan || action == model.BulkZones {
		commands = nil
	}
	if s.bulks[0].Selector.AsksQueued() {
		if s.queued, err = s.store.Queued(ctx); err != nil {
			return nil, err
		}
	}
	return s.store.Read(ctx, uids, commands)
}

// Commit stores the models about to be changed, and spends the rate, before it changes them: the rate holds over crashes, and a repetition of
// the step knows what this bulk has done.
func (s *bulkStep) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	if b := s.bulks[0]; b.Action != model.BulkReplan && !s.noted && len(batch.Items) > 0 {
		for _, item := range batch.Items {
			b.Trying = append(b.Trying, item.Transition.UID())
		}
		if s.noted = true; b.Rate.Count > 0 {
			b.Next = b.Rate.Spend(b.Next, s.now, s.behind(), len(batch.Items))
		}
		moved, err := s.flow.MoveBulk(ctx, b, s.now)
		if err == nil && !moved {
			err = errMoved
		}
		if err != nil {
			return nil, err
		}
	}
	batch.Owner = s.config.Owner
	return s.store.Commit(store.WithActor(ctx, nil), batch) // a bulk is one deed
}

// decide decides about a model as long as the rate lets it.
func (s *bulkStep) decide(p *pick, record *store.Record, uid string) (*store.Transition, error) {
	*p = pick{bulk: p.bulk}
	if record.Exists {
		var decision model.Decision
		_, waits := s.queued[record.AttemptUID]
		decision, p.outcome, p.picked = p.bulk.Decide(&record.Model, record.Status(s.now, waits), s.now)
		if p.picked && p.outcome == model.Applied {
			p.transition = record.Decide(decision, s.now)
		}
	} else { // one that is named is missed
		_, own := s.store.Home(uid)
		p.outcome, p.picked = model.UnknownModel, own && slices.Contains(p.bulk.Selector.Only(model.SelectUID), uid)
	}
	switch {
	case p.transition == nil:
		// An earlier try has not heard that it was done. This step has heard of its own notes.
		if p.picked && flow.Harmless(p.outcome) && !s.noted && slices.Contains(s.bulks[0].Trying, uid) {
			p.outcome = model.Applied
		}
	case s.changes == s.allowed:
		return nil, errNotNow
	default:
		s.changes++
	}
	return p.transition, nil
}

func (s *bulkStep) count(p *pick, uid string, reason error) {
	refusal, refused := errors.AsType[*store.Refusal](reason)
	switch {
	case refused && refusal.Code == store.CodeBroken:
		p.bulk.Count(model.Broken)
	case reason != nil:
		s.left = append(s.left, uid)
	case p.picked:
		p.bulk.Count(p.outcome)
		if p.transition != nil && p.bulk.Action != model.BulkReplan {
			s.logbook.Applied(p.transition, s.now)
		}
	}
}
