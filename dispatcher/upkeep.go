package dispatcher

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/store"
)

// ignoreMisfit logs an error about a key of another type, and returns any other: the round goes on without what needed that key.
func (d *Dispatcher) ignoreMisfit(err error, now time.Time) error {
	misfit, is := store.Misfit(err)
	if !is {
		return err
	}
	d.logMisfit(misfit, now)
	return nil
}

// logMisfit logs a key of the wrong type, sampled; an empty text is none.
func (d *Dispatcher) logMisfit(misfit string, now time.Time) {
	if misfit == "" {
		return
	}
	if count, tell := d.faults.Sample(misfit, now); tell {
		d.config.Log.Error().Str("misfit", misfit).Int("like_this", count).Msg("dispatcher: a key is of another type")
	}
}

func (d *Dispatcher) forgetLimits(ctx context.Context, due store.Due) error {
	if len(due.Ended) == 0 {
		return nil
	}
	return d.store.ForgetLimits(ctx, due.Ended)
}

// measureEvery is how often a dispatcher measures the circuit of the queue.
const measureEvery = time.Second

// measureCircuit measures the circuit of the queue once a second, before anything is decided.
func (d *Dispatcher) measureCircuit(ctx context.Context, due store.Due) error {
	if backoff.Recent(d.measured, due.Now, measureEvery) {
		return nil
	}
	change, err := d.store.MeasureCircuit(ctx, due.Now)
	if err != nil {
		return err
	}
	d.measured = due.Now
	switch change {
	case store.CircuitOpened:
		d.config.Log.Error().Msg("dispatcher: the circuit of the queue is open: too many attempts fail, final failures are held back")
	case store.CircuitClosed:
		d.config.Log.Info().Msg("dispatcher: the circuit of the queue is closed: attempts succeed again")
	}
	return nil
}

// trimEvery is how often a dispatcher trims the outbox.
const trimEvery = time.Minute

// trimOutbox keeps the outbox bounded, also where no notifier runs. A user who may not do that loses nothing but the bound.
func (d *Dispatcher) trimOutbox(ctx context.Context, due store.Due) error {
	if backoff.Recent(d.trimmed, due.Now, trimEvery) {
		return nil
	}
	d.trimmed = due.Now
	unread, err := d.store.TrimOutbox(ctx)
	if unread > 0 {
		d.config.Log.Warn().Int("entries", unread).Msg("dispatcher: entries of the outbox went that nobody has read")
	}
	if store.Refused(err) { // it was made by an older release
		return nil
	}
	return err
}

// sampleEvery is the part of a tick after which the head of the input list is sampled again.
const sampleEvery = 4

// sampleHead notes which attempt is first in the input list. Later samples tell when another one was taken.
func (d *Dispatcher) sampleHead(ctx context.Context, due store.Due) error {
	d.window = d.window.drain(due.Queued, d.config.MaxQueued)
	if due.Queued == 0 {
		if due.Front.LastSeen.IsZero() {
			return nil // it is noted already
		}
		return d.store.SampleHead(ctx, 0, due.Now, d.config.Tick)
	}
	if backoff.Recent(d.sampled, due.Now, d.config.Tick/sampleEvery) {
		return nil
	}
	d.sampled = due.Now
	first, err := d.head(ctx, due)
	if first == nil || err != nil {
		return err
	}
	d.window = d.window.waited(first.StartedAt, patience(first), due.Now)
	return d.store.SampleHead(ctx, first.Ticket, due.Now, d.config.Tick)
}

// patience is how long an attempt may wait before its deadline passes; 0: it has none.
func patience(record *store.Record) time.Duration {
	if record.Policy.QueueTimeout > 0 {
		return record.Policy.QueueTimeout
	}
	return record.Policy.Timeout
}

// maxSampled is how many entries are read if the first one is of no use: it is no running attempt, or was handed back.
const maxSampled = 100

// front finds the first attempt of the input list that stands there since it was started; nil: none is near.
func (d *Dispatcher) head(ctx context.Context, due store.Due) (*store.Record, error) {
	for _, n := range []int64{1, maxSampled} { // both from the first on: entries move while workers take others
		entries, err := d.store.InputPart(ctx, 0, n)
		if err != nil {
			return nil, err
		}
		var uids []string
		for _, entry := range entries {
			if entry.UID != "" {
				uids = append(uids, entry.UID)
			}
		}
		records, err := d.store.Load(ctx, uids)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			r := records[entry.UID]
			if r != nil && r.Ticket >= max(1, due.Front.Ticket) && r.AttemptUID == entry.AttemptUID {
				return r, nil
			}
		}
	}
	return nil, nil
}
