package poller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/logbook"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Round is the result of one round of a poller.
type Round struct {
	Claimed  int // messages taken, or left from before
	Applied  int // messages that changed a model
	Settled  int // messages that changed nothing: counted, and kept in rejected if unusable
	Rejected int // of Settled: kept in rejected
	Left     int // messages still claimed; the next round decides them again
	Started  int // models that wait for a place of a key, which an end has given back
	Waiting  int // of Left: commands for another part, or for all parts while one does not answer; and those that need a key of another type
	// Leads says that this poller applies the commands.
	Leads bool
	// Bulks says that another step of a bulk can be taken at once.
	Bulks bool
}

func (r *Round) counts() []logbook.Count {
	return []logbook.Count{logbook.Of("claimed", r.Claimed), logbook.Of("applied", r.Applied), logbook.Of("settled", r.Settled), logbook.Of("rejected", r.Rejected), logbook.Of("started", r.Started), logbook.Of("left", r.Left)}
}

// maxPasses bounds how often a round decides a message again whose model changed meanwhile; then the next round goes on.
const maxPasses = 8

// RunOnce does one round: it claims a batch, decides, commits, takes a step of a bulk if there is one, and adopts the messages of expired pollers.
func (p *Poller) RunOnce(ctx context.Context) (Round, error) {
	return p.RunPipelined(ctx, func() bool { return false }, func(func()) func() { return func() {} })
}

// RunPipelined does a round of several batches, as long as they are full and keepGoing says so. While one batch is decided and committed, prefetch starts
// to read the next, and wait ends that.
func (p *Poller) RunPipelined(ctx context.Context, keepGoing func() bool, prefetch func(read func()) (wait func())) (all Round, err error) {
	if err := p.logbook.IgnoreWrongType(p.zones.Note(ctx, p.store, p.config.Owner, p.seen), p.seen); err != nil {
		return all, err
	}
	b, err := p.claim(ctx, 0)
	for err == nil && b != nil {
		b, err = p.runBatch(ctx, b, &all, keepGoing, prefetch)
	}
	return all, err
}

// runBatch finishes a batch and returns the one behind it; nil: the round is over.
func (p *Poller) runBatch(ctx context.Context, b *batch, all *Round, keepGoing func() bool, prefetch func(func()) func()) (next *batch, err error) {
	if next, err = p.claimAhead(ctx, b, keepGoing); err != nil {
		return nil, err
	}
	wait, failed := func() {}, error(nil)
	if next != nil && b.disjoint(next) {
		uids, _ := subjects(next.messages)
		wait = prefetch(func() { next.ahead, failed = p.store.Read(ctx, uids, nil) })
	}
	round, err := p.finish(ctx, b)
	wait()
	all.add(round)
	if p.left = err != nil || round.Applied+round.Settled < round.Claimed; p.left && next != nil { // the rest precedes the next
		if next.split {
			all.Left += len(next.messages)
		}
		next = nil
	}
	return next, cmp.Or(err, failed)
}

// finish does everything with a batch that was claimed.
func (p *Poller) finish(ctx context.Context, b *batch) (round Round, err error) {
	ctx = store.WithActor(ctx, p.actor)
	round, p.waiting = Round{Claimed: len(b.messages), Leads: b.Leads}, 0
	pending := p.applyQueueCommands(ctx, p.forward(ctx, b.messages, b.Now), b.Now)
	round.Waiting = round.Claimed - len(pending)
	for pass := 0; len(pending) > 0 && pass < maxPasses; pass++ {
		if pending, err = p.pass(ctx, pending, b, &round); err != nil {
			return round, err
		}
	}
	round.Left = len(pending) + round.Waiting
	if b.Bulks {
		round.Bulks = p.carryOut(ctx, round, b.Now)
	}
	return round, p.adopt(ctx, b.Now)
}

func (r *Round) add(b Round) {
	b.Claimed += r.Claimed
	b.Applied += r.Applied
	b.Settled += r.Settled
	b.Rejected += r.Rejected
	b.Started += r.Started
	*r = b
}

// pass decides and commits messages once and returns those to be decided again.
func (p *Poller) pass(ctx context.Context, messages []*message, b *batch, round *Round) (again []*message, err error) {
	snapshot, now := b.ahead, b.Now
	if b.ahead = nil; snapshot == nil {
		uids, commands := subjects(messages)
		if snapshot, err = p.store.Read(ctx, uids, commands); err != nil {
			return nil, err
		}
	}
	if err = p.readPast(ctx, messages, snapshot); err != nil {
		return nil, err
	}
	batch := store.Batch{Now: now, Owner: p.config.Owner, Items: make([]store.Item, len(messages))}
	for i, message := range messages {
		batch.Items[i] = message.decide(snapshot, now)
	}
	if err = p.handOver(ctx, &batch); err != nil {
		return nil, err
	}
	codes, err := p.store.Commit(ctx, batch)
	if err == nil {
		p.noteStarts(batch.Items[len(messages):], codes[len(messages):], now, round)
		codes = codes[:len(messages)]
	}
	blocked := map[string]bool{} // models
	for i, code := range codes {
		p.logbook.WrongType(batch.Items[i].WrongType, now)
		switch uid := messages[i].uid(); {
		case code == store.CodeBlocked, code.Retry() && blocked[uid]: // the later ones of a model wait behind it
			blocked[uid] = true
			round.Waiting++
			if messages[i].result != nil {
				p.waiting++
			}
		case code == store.CodeBroken:
			messages[i].counter, messages[i].reason = model.CounterBrokenModel, errors.New(batch.Items[i].WrongType)
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
			p.note(batch.Items[i], messages[i], now, round)
		}
	}
	return again, err
}

// readPast reads the histories for guards and late successes. A queue without either pays nothing.
func (p *Poller) readPast(ctx context.Context, messages []*message, snapshot *store.Snapshot) error {
	var judged []*store.Record
	for _, m := range messages {
		if m.result == nil || m.counter != "" || m.result.Type != model.MessageSuccess && m.result.Type != model.MessageReady {
			continue
		}
		record := snapshot.Records[m.uid()]
		late := m.result.AttemptUID == record.LastAttemptUID
		if (late || record.AttemptUID == m.result.AttemptUID && record.Doubts(m.result)) && !slices.Contains(judged, record) {
			judged = append(judged, record)
		}
	}
	if len(judged) == 0 {
		return nil
	}
	return store.ReadPast(ctx, p.store.Report(), judged)
}

func (m *message) decide(snapshot *store.Snapshot, now time.Time) store.Item {
	item, reason := store.Item{Message: m.claimed, UID: m.uid(), Counter: m.counter}, m.reason
	if m.counter == "" {
		reason = m.decideModel(&item, snapshot, now)
	}
	if reason != nil {
		item.Reason = reason.Error()
	}
	if m.command != nil && m.counter != model.CounterForwarded { // its sender may want to know
		outcome := model.Outcome(item.Counter)
		if m.applied && outcome != model.Duplicate {
			outcome = model.Applied
		}
		if outcome != model.Duplicate { // a duplicate was noted when it was none
			item.CommandID = m.command.ID
		}
		if m.replies != "" {
			item.Reply = store.Reply{Name: m.replies, Text: m.command.Reply(outcome, reason, now)}
		}
	}
	if m.result != nil && m.replies != "" {
		decided := new(model.Decision)
		if item.Transition != nil {
			decided = item.Transition.Decision()
		}
		item.Reply = store.Reply{Name: m.replies, Text: m.result.Reply(m.wire, decided.Verdict, decided.Doubt)}
	}
	return item
}

// decideModel applies the message to its model. It returns why the message cannot be handled, if it cannot.
func (m *message) decideModel(item *store.Item, snapshot *store.Snapshot, now time.Time) (reason error) {
	record := snapshot.Records[item.UID]
	record.Taken = m.taken != "" && m.taken == record.AttemptUID
	var decision model.Decision
	var outcome model.Outcome
	var err error
	field := "uid"
	switch {
	case record.Broken: // refused by the commit, which names the type of the key
		item.Transition = record.Mend()
		return nil
	case m.command != nil:
		decision, outcome, err = record.Execute(m.command, snapshot.Policies, record.Exists, now)
	case !record.Exists:
		field, outcome = record.Wire.WithDefaults().ModelName, model.UnknownModel
	default:
		decision, outcome = record.Handle(*m.result, now)
	}
	item.Counter = string(outcome)
	switch {
	case err != nil:
		item.Counter, reason = refusal(err)
	case outcome == model.UnknownModel && !m.own:
		reason = document.Refuse(field, "in "+m.home.Output+", as reply_to said", document.Found(item.UID))
	case outcome == model.UnknownModel:
		reason = document.Refuse(field, "a stored model", document.Found(item.UID))
	case outcome == model.Busy, outcome == model.Stopped:
		reason = hint.In(hint.RunRefused(outcome, &record.Model), hint.Message)
	case outcome == model.Applied:
		item.Transition = record.Decide(decision, now)
	}
	return reason
}

// note counts a committed item, and logs the result for its model, or why its message cannot be handled.
func (p *Poller) note(item store.Item, m *message, now time.Time, round *Round) {
	if item.Transition != nil {
		round.Applied++
		p.logbook.Applied(item.Transition, now)
		return
	}
	round.Settled++
	if item.Reason != "" {
		round.Rejected++
		rejection := logbook.Rejection{UID: m.uid(), Command: m.claimed.FromControl(), Counter: item.Counter, Reason: item.Reason}
		if m.result != nil {
			rejection.AttemptUID = m.result.AttemptUID
		}
		p.logbook.Rejected(rejection, now)
	}
}

// message is one inbound message on its way through a round: a result of a worker, or a command of an application.
type message struct {
	claimed store.Claimed
	result  *model.Message // nil: none
	command *model.Command // nil: none

	home *store.Keys // the part of the queue in which its model lives
	own  bool        // that is this part, or the message is about no model

	applied bool   // a command about the queue, which was applied: it is counted by its type
	taken   string // the attempt of its model that a worker was found to have

	// Why the message changes no model. An empty counter: it is still to be decided. No reason: it is only counted.
	counter string
	reason  error

	replies string // the name of the list for the answer; empty: none
	wire    model.Wire
}

func decode(claimed store.Claimed, queue Store) *message {
	m := &message{claimed: claimed, own: true}
	if size, most, large := claimed.Large(); large {
		m.counter, m.reason = model.CounterOversized, document.Refuse("", "at most "+most+" bytes", size)
		return m
	}
	var err error
	if claimed.FromControl() {
		m.command = new(model.Command)
		*m.command, err = model.DecodeCommand([]byte(claimed.Raw()))
		if m.command.ReplyTo != "" {
			var failed error
			m.replies, failed = queue.ReplyName(m.command.ReplyTo)
			err = cmp.Or(err, failed)
		}
	} else {
		m.result = new(model.Message)
		m.wire = queue.Wire()
		if *m.result, err = m.wire.DecodeMessage([]byte(claimed.Raw())); err == nil && m.result.Type == model.MessageReady {
			m.replies, err = queue.ReplyName(m.result.ReplyTo)
		}
	}
	if err != nil {
		m.counter, m.reason = refusal(err)
		return m
	}
	if m.command != nil && m.command.Type.OfQueue() {
		return m
	}
	m.home, m.own = queue.Home(m.uid())
	return m
}

// refusal is where an unusable message is counted, and why it is unusable.
func refusal(err error) (counter string, reason error) {
	if rejection, is := errors.AsType[*model.Rejection](err); is {
		return rejection.Counter, rejection.Err
	}
	return model.CounterMalformed, err
}

// uid is the model that the message is about; empty: it cannot be read.
func (m *message) uid() string {
	switch {
	case m.command != nil:
		return m.command.UID
	case m.result != nil:
		return m.result.UID
	default:
		return ""
	}
}
