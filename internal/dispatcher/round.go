package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// pause is how long a dispatcher leaves due models to each one before it. A round takes milliseconds, so it finds none unless those before it are
// busy or dead.
const pause = 25 * time.Millisecond

// leaseTicks is how many ticks a dispatcher without a heartbeat still counts as alive.
const leaseTicks = 4

// RunOnce does one round: it reads the due and expired models, decides, and commits part by part.
func (d *Dispatcher) RunOnce(ctx context.Context) (Round, error) {
	asked := store.DueRequest{Limit: d.config.Batch, Owner: d.config.Owner, Lease: leaseTicks * d.config.Tick, Pause: pause, Window: d.window.size, Spread: d.counted}
	if d.notified {
		asked.Pause = 0
	}
	if err := d.logbook.IgnoreWrongType(d.zones.Note(ctx, d.store, d.config.Owner, d.seen), d.seen); err != nil {
		return Round{}, err
	}
	due, err := d.store.ReadDue(ctx, asked)
	if err != nil {
		return Round{}, err
	}
	d.seen = due.Now
	for _, wrong := range due.WrongTypes {
		d.logbook.WrongType(wrong, due.Now)
	}
	for _, step := range []func(context.Context, store.Due) error{d.measureCircuit, d.trimOutbox, d.noteSample, d.requeueExpired, d.sampleHead} {
		if err := d.logbook.IgnoreWrongType(step(ctx, due), due.Now); err != nil {
			return Round{}, err
		}
	}
	if len(due.Ended) > 0 {
		if err := d.logbook.IgnoreWrongType(d.flow.ForgetLimits(ctx, due.Ended), due.Now); err != nil {
			return Round{}, err
		}
	}
	free := max(0, d.window.size-due.Queued)
	free = (free + due.Sharers - 1) / max(1, due.Sharers) // its share: more would be read and decided for nothing
	work := work{due: due, next: due.Now.Add(d.config.Tick), left: free}
	if err := d.checkBlockers(ctx, &work); err != nil {
		return Round{}, err
	}
	full := len(due.Urgent)+len(due.Due)+len(work.waiting) > free
	spare := d.config.Batch
	if due.Blockers.Empty() && !d.counted {
		spare = 0
	}
	work.due.Urgent, work.due.Due, work.urgent = d.admit(due.Urgent, due.Due, free, spare)
	if full {
		d.window = d.window.fill(due.Now)
	}
	round := Round{Queued: due.Queued, Sleep: d.sleep(due, full)}
	d.counted = d.counted && work.count() == 0 // it is kept through rounds without work
	if err := d.work(ctx, &work, &round); err != nil {
		return round, err
	}
	if !full || round.Parked+round.Limited+round.Released > 0 {
		round.Sleep = min(round.Sleep, d.again(&work, full, round))
	}
	return round, d.logbook.IgnoreWrongType(d.flow.NoteBlockerChecks(ctx, work.checks, due.Alone), due.Now)
}

// again is how long nothing is due by what the round has changed. More may wait where it was full, and behind a list that was read in part.
func (d *Dispatcher) again(w *work, full bool, round Round) time.Duration {
	most := max(len(w.due.Expired), len(w.due.Urgent), len(w.due.Due), len(w.due.Ages), len(w.due.Rechecks))
	if full || most >= d.config.Batch && w.count() > round.Blocked {
		return 0
	}
	for _, blocker := range w.blockers {
		w.soon(w.checks[w.places[blocker]].Again)
	}
	if round.Started > 0 {
		w.soon(w.due.Now.Add(d.config.Tick / sampleEvery))
	}
	return max(0, w.next.Sub(w.due.Now))
}

type work struct {
	due      store.Due
	next     time.Time                // when something is due that the round has changed, within a tick
	left     int                      // how many attempts may still be started
	urgent   int                      // how many of these urgent models may start
	waiting  []string                 // models whose blocker may have ended
	blockers map[string]model.Blocker // by these uids
	checks   []flow.BlockerCheck      // the findings about blockers
	places   map[model.Blocker]int    // of these
	known    model.Limiters           // of the keys that blockers are of
	limiters model.Limiters
}

// uids are all models that are decided about, in their order. Models that were parked and models that are due take turns.
func (w *work) uids() []string {
	return slices.Concat(w.due.Expired, w.due.Urgent, interleave(w.waiting, w.due.Due), w.due.Ages)
}

// interleave returns the first of each list, then the second of each.
func interleave(lists ...[]string) (uids []string) {
	for turn, taken := 0, -1; taken < len(uids); turn++ {
		taken = len(uids)
		for _, list := range lists {
			if turn < len(list) {
				uids = append(uids, list[turn])
			}
		}
	}
	return uids
}

// soon notes when something is due; zero: never.
func (w *work) soon(times ...time.Time) {
	for _, at := range times {
		if !at.IsZero() && at.Before(w.next) {
			w.next = at
		}
	}
}

func (w *work) count() int {
	return len(w.due.Expired) + len(w.due.Urgent) + len(w.due.Due) + len(w.waiting) + len(w.due.Ages)
}

func (d *Dispatcher) work(ctx context.Context, w *work, round *Round) error {
	if w.count() == 0 {
		return nil
	}
	// An attempt to be withdrawn whose entry is not in the input list has timed out after all. Or the entry is there
	// as it was before its model was saved anew: a worker had taken it then, and has returned it. So it is looked for by its uid.
	missing, err := d.pass(ctx, w, nil, round)
	if err != nil || len(missing) == 0 {
		return err
	}
	expired, list := work{due: store.Due{Now: w.due.Now}, next: w.next}, inputList{missing: map[string]string{}}
	for _, withdrawal := range missing {
		expired.due.Expired = append(expired.due.Expired, withdrawal.UID())
		list.missing[withdrawal.UID()] = withdrawal.AttemptUID()
	}
	if list.queued, err = d.store.Queued(ctx); err != nil {
		return err
	}
	if list.samples, err = d.store.HeadSamples(ctx); err != nil {
		return err
	}
	_, err = d.pass(ctx, &expired, &list, round)
	w.next = expired.next
	return err
}

// admit picks the models to start: urgent ones first, but at most half of the room while others are due, so that runs by hand cannot stop the
// schedule. An odd place goes to them every other time. spare more of each are picked, as some may be parked: no more than places of the urgent ones may
// start.
func (d *Dispatcher) admit(urgent, due []string, free, spare int) (_, _ []string, places int) {
	half := free / 2
	if free%2 == 1 && len(urgent) > half && len(due) > 0 {
		if d.oddTurn = !d.oddTurn; d.oddTurn {
			half++
		}
	}
	places = min(len(urgent), max(half, free-len(due)))
	if free == 0 {
		spare = 0
	}
	return urgent[:min(len(urgent), places+spare)], due[:min(len(due), free-places+spare)], places
}

// sleep is how long nothing is expected to happen if this round finds nothing to do.
func (d *Dispatcher) sleep(due store.Due, full bool) time.Duration {
	sleep := d.config.Tick
	if due.Queued > 0 {
		sleep /= sampleEvery
	}
	switch {
	case full && d.window.mayGrow(d.config.MaxQueued, d.config.FullTick, due.Now):
		return min(d.config.FullTick, time.Millisecond)
	case full:
		return d.config.FullTick
	case due.Next.IsZero():
		return sleep
	}
	return min(due.Next.Sub(due.Now), sleep)
}

// partSize is how many models are decided and committed at once: while Redis works on one part, another is decided, and the next one read.
const partSize = 100

// pass decides about models and commits the decisions, part by part. It returns the withdrawals of attempts that are not queued. list is nil
// until the input list was read.
func (d *Dispatcher) pass(ctx context.Context, w *work, list *inputList, round *Round) (missing []*store.Transition, err error) {
	read, stop := context.WithCancel(ctx)
	defer stop()
	committed := make(chan outcome, 1)
	committed <- outcome{}
	uids := w.uids()
	for p := range d.read(read, uids, w) {
		if err = cmp.Or(err, p.err); err != nil {
			stop() // drain the channel
			continue
		}
		batch := d.decide(p, w, list)
		more, failed := d.count(ctx, <-committed, w, round)
		missing, err = append(missing, more...), failed
		runConcurrently(len(uids) > partSize, func() {
			o := outcome{batch: batch}
			defer func() { committed <- o }()
			o.codes, o.err = d.store.Commit(ctx, batch)
		})
	}
	more, failed := d.count(ctx, <-committed, w, round)
	return append(missing, more...), errors.Join(err, failed)
}

type part struct {
	first    int // place of the first in the round
	uids     []string
	records  map[string]*store.Record
	limiters model.Limiters // of these models
	err      error          // nothing could be read, and there is no further part
}

// read reads models part by part, one ahead of the decisions: a read must not wait in Redis behind the commit of the part before it.
// The channel is closed behind the last, or when ctx has ended.
func (d *Dispatcher) read(ctx context.Context, uids []string, w *work) <-chan part {
	parts := make(chan part, 1)
	runConcurrently(len(uids) > partSize, func() {
		defer close(parts)
		for first := 0; first < len(uids) && ctx.Err() == nil; first += partSize {
			p := part{first: first, uids: uids[first:min(first+partSize, len(uids))]}
			if p.records, p.err = d.store.Load(ctx, p.uids); p.err == nil {
				p.err = d.loadLimiters(ctx, &p, w)
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

// decide decides about the models of a part: the first ones of the round have expired, the last ones have grown older, the others are due or
// were parked.
func (d *Dispatcher) decide(p part, w *work, list *inputList) store.Batch {
	w.limiters.Learn(p.limiters)
	d.counted = d.counted || len(p.limiters.Limits)+len(p.limiters.Circuits) > 0
	batch := store.Batch{Now: w.due.Now, MaxQueued: d.window.size, HoldChanges: w.due.Blockers.HoldChanges, Items: make([]store.Item, 0, len(p.uids))}
	ages := w.count() - len(w.due.Ages)
	for i, uid := range p.uids {
		var transition *store.Transition
		switch {
		case p.first+i >= ages:
			transition = d.changeFreshness(p.records[uid], w.due.Now)
		case p.first+i < len(w.due.Expired):
			transition = d.expire(p.records[uid], list, w.due.Now)
		case w.blockers[uid] != "":
			transition = d.passBlocker(p.records[uid], w)
		case p.first+i < len(w.due.Expired)+len(w.due.Urgent):
			transition = d.startUrgent(p.records[uid], w)
		default:
			transition = d.start(p.records[uid], w)
		}
		if transition != nil {
			batch.Items = append(batch.Items, store.Item{Transition: transition})
		}
	}
	return batch
}

// startUrgent decides about an urgent model; nil: its place is for one that is due.
func (d *Dispatcher) startUrgent(record *store.Record, w *work) *store.Transition {
	if w.urgent == 0 {
		return nil
	}
	left := w.left
	transition := d.start(record, w)
	w.urgent -= left - w.left
	return transition
}

// start decides about a due or urgent model; nil: none may start any more.
func (d *Dispatcher) start(record *store.Record, w *work) *store.Transition {
	now := w.due.Now
	if !record.Exists {
		return record.Remove()
	}
	if record.Fault != "" { // sampled: many models may share one, such as a policy that was removed
		d.logbook.Fault(zerolog.WarnLevel, record.Fault, now).Str("uid", record.UID).Str("fault", record.Fault).Msg("dispatcher: model with a fault")
	}
	// A refresh_at that cannot be read is a fault; to start now is safe, to wait for it would be for ever.
	unreadable := record.RefreshUnreadable() && !record.Disabled && !record.Running()
	if !record.Due(now) && !unreadable {
		return record.Mend() // another process was faster, or the set is wrong
	}
	if w.left == 0 {
		return nil
	}
	return d.starts(record, w, w.due.Blockers.StartOrPark(&record.Model, &w.limiters, d.config.NewUID(), now))
}

// loadLimiters reads what keys have left that the models of a part are counted by, where that is not known yet.
func (d *Dispatcher) loadLimiters(ctx context.Context, p *part, w *work) (err error) {
	limits, circuits, limitsOf := map[string]bool{}, map[string]bool{}, map[string][]model.Limit{}
	for uid, record := range p.records {
		needed, circuit := w.due.Blockers.Needs(&record.Model, w.due.Now)
		for _, limit := range needed {
			limitsOf[uid] = needed
			if w.known.Keys[limit.Name] == nil {
				limits[limit.Name] = true
			}
		}
		if circuit != "" {
			circuits[circuit] = true
		}
	}
	if len(limits)+len(circuits) > 0 {
		p.limiters, err = d.flow.Limiters(ctx, slices.Sorted(maps.Keys(limits)), slices.Sorted(maps.Keys(circuits)), w.due.Now)
	}
	p.limiters.Limits = limitsOf
	return err
}

// maxLimits bounds how many keys a dispatcher remembers the limits of.
const maxLimits = 10_000

func (d *Dispatcher) starts(record *store.Record, w *work, decision model.Decision) *store.Transition {
	if decision.Event == model.EventStart {
		w.left--
		if len(d.limits) >= maxLimits {
			clear(d.limits)
		}
		for _, acquire := range decision.Acquires {
			d.limits[acquire.Name] = acquire.Limit
		}
	}
	return record.Decide(decision, w.due.Now)
}

// changeFreshness decides about a model whose freshness is to change, whatever it does.
func (d *Dispatcher) changeFreshness(record *store.Record, now time.Time) *store.Transition {
	switch at := record.Scores().StaleAt; {
	case !record.Exists:
		return record.Remove()
	case at.IsZero() || at.After(now):
		return record.Mend() // another process was faster, or the set is wrong
	}
	return record.Decide(record.ChangeFreshness(now), now)
}
