package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// partSize is how many models are decided and committed at once: while Redis works on one part, another is decided, and the next one read.
const partSize = 100

// pass decides about models and commits the decisions, part by part. It returns the withdrawals of attempts that are not queued. A line of
// nil says that nobody has looked through it yet.
func (d *Dispatcher) pass(ctx context.Context, w *work, line *line, round *Round) (missing []*store.Transition, err error) {
	read, stop := context.WithCancel(ctx)
	defer stop()
	committed := make(chan outcome, 1)
	committed <- outcome{}
	uids, now := w.uids(), w.due.Now
	for p := range d.read(read, uids, w) {
		if err = cmp.Or(err, p.err); err != nil {
			stop() // what is read already is taken out of the channel
			continue
		}
		batch := d.decide(p, w, line)
		more, failed := d.count(ctx, <-committed, round, now)
		missing, err = append(missing, more...), failed
		runConcurrently(len(uids) > partSize, func() {
			o := outcome{batch: batch, gates: w.gates}
			defer func() { committed <- o }()
			o.codes, o.err = d.store.Commit(ctx, batch)
		})
	}
	more, failed := d.count(ctx, <-committed, round, now)
	return append(missing, more...), errors.Join(err, failed)
}

// part is some of the models of a round.
type part struct {
	first   int // place of the first in the round
	uids    []string
	records map[string]*store.Record
	rooms   model.Limiters // of the keys of these models
	err     error          // nothing could be read, and there is no further part
}

// read reads models part by part, one ahead of what is decided: a read must not wait in Redis behind the commit of the part before it.
// The channel is closed behind the last, or when ctx has ended.
func (d *Dispatcher) read(ctx context.Context, uids []string, w *work) <-chan part {
	parts := make(chan part, 1)
	runConcurrently(len(uids) > partSize, func() {
		defer close(parts)
		for first := 0; first < len(uids) && ctx.Err() == nil; first += partSize {
			p := part{first: first, uids: uids[first:min(first+partSize, len(uids))]}
			if p.records, p.err = d.store.Load(ctx, p.uids); p.err == nil {
				p.err = d.learn(ctx, &p, w)
			}
			if parts <- p; p.err != nil {
				return
			}
		}
	})
	return parts
}

// runConcurrently does something beside what follows. A single part has nothing beside it, so that it is done at once.
func runConcurrently(beside bool, do func()) {
	if beside {
		go do()
	} else {
		do()
	}
}

// outcome is what has become of a batch.
type outcome struct {
	gates map[string]model.Blocker // by uids that wait for them
	batch store.Batch
	codes []store.Code
	err   error
}

// decide decides about the models of a part: the first ones of the round have expired, the last ones have grown older, the others are due or
// wait for a gate.
func (d *Dispatcher) decide(p part, w *work, line *line) store.Batch {
	w.rooms.Learn(p.rooms)
	d.steered = d.steered || len(p.rooms.Keys)+len(p.rooms.Circuits) > 0
	batch := store.Batch{Now: w.due.Now, MaxQueued: d.pace.window, HoldChanges: w.due.Gates.HoldChanges, Items: make([]store.Item, 0, len(p.uids))}
	ages := w.count() - len(w.due.Ages)
	for i, uid := range p.uids {
		var transition *store.Transition
		switch {
		case p.first+i >= ages:
			transition = d.age(p.records[uid], w.due.Now)
		case p.first+i < len(w.due.Expired):
			transition = d.expire(p.records[uid], line, w.due.Now)
		case w.gates[uid] != "":
			transition = d.pastGate(p.records[uid], w)
		default:
			transition = d.start(p.records[uid], w)
		}
		if transition != nil {
			batch.Items = append(batch.Items, store.Item{Transition: transition})
		}
	}
	return batch
}

// count counts what has become of a batch, and returns the withdrawals of attempts that are not queued.
func (d *Dispatcher) count(ctx context.Context, o outcome, round *Round, now time.Time) (missing []*store.Transition, err error) {
	for i, code := range o.codes {
		transition, misfit := o.batch.Items[i].Transition, o.batch.Items[i].Misfit
		d.tellMisfit(misfit, now)
		switch code {
		case store.CodeApplied:
			*round.counter(transition.Event())++
			d.logbook.Applied(transition, now)
		case store.CodeTaken:
			missing = append(missing, transition)
		case store.CodeBroken:
			if err := d.store.Forget(ctx, transition.UID(), o.gates[transition.UID()]); err != nil {
				return nil, err
			}
		case store.CodeBlocked:
			round.Blocked++
		default:
			round.Refused++
		}
	}
	return missing, o.err
}
