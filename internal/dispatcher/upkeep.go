package dispatcher

import (
	"cmp"
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

// measureCircuit measures the circuit of the queue once a second, before anything is decided.
func (d *Dispatcher) measureCircuit(ctx context.Context, due store.Due) error {
	if backoff.Recent(d.measured, due.Now, time.Second) {
		return nil
	}
	change, err := d.flow.MeasureCircuit(ctx, due.Now)
	if err != nil {
		return err
	}
	d.measured = due.Now
	switch change {
	case flow.CircuitOpened:
		d.config.Log.Error().Msg("dispatcher: the circuit of the queue is open: too many attempts fail, final failures are held back")
	case flow.CircuitClosed:
		d.config.Log.Info().Msg("dispatcher: the circuit of the queue is closed: attempts succeed again")
	}
	return nil
}

// trimOutbox keeps the outbox bounded, also where no notifier runs.
func (d *Dispatcher) trimOutbox(ctx context.Context, due store.Due) error {
	if backoff.Recent(d.trimmed, due.Now, time.Minute) {
		return nil
	}
	d.trimmed = due.Now
	unread, err := d.outbox.TrimOutbox(ctx)
	if unread > 0 {
		d.config.Log.Warn().Int("entries", unread).Msg("dispatcher: entries of the outbox went that nobody has read")
	}
	return err
}

// noteSample notes the counts until the minute in hand.
func (d *Dispatcher) noteSample(ctx context.Context, due store.Due) error {
	minute := due.Now.Truncate(time.Minute)
	if minute.Equal(d.noted) {
		return nil
	}
	err := d.report.NoteSample(ctx, due.Now)
	if _, wrong := redis.WrongType(err); err == nil || wrong { // else the next round tries again
		d.noted = minute
	}
	return err
}

// sampleEvery is the part of a tick after which the head of the input list is sampled again.
const sampleEvery = 4

// sampleHead notes the first attempt of the input list. Later samples show when it was taken.
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
	d.window = d.window.waited(first.StartedAt, cmp.Or(first.Policy.QueueTimeout, first.Policy.Timeout), due.Now)
	return d.store.SampleHead(ctx, first.Ticket, due.Now, d.config.Tick)
}

// maxSampled is how many entries are read if the first one is of no use: it is no running attempt, or was handed back.
const maxSampled = 100

// head finds the first attempt of the input list that was not requeued; nil: none is near.
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

// window is how many entries may wait in the input list: as many as workers take soon. Each dispatcher keeps its own, as a hint.
// It grows while workers drain the list, and shrinks when the first entry has waited for long.
type window struct {
	size   int
	filled bool      // more was due than fits, and the list was not found drained since
	since  time.Time // of that
	cut    time.Time // when the window shrank last
}

func newWindow(most int) window { return window{size: min(most, 100)} } // until it is known how fast workers are

func (w window) fill(now time.Time) window {
	if !w.filled {
		w.filled, w.since = true, now
	}
	return w
}

// drain doubles a filled window if workers took a quarter of it or more since the last round: they might run dry before the next.
// The window never exceeds most.
func (w window) drain(queued, most int) window {
	if w.filled && 4*queued <= 3*w.size {
		w.size, w.filled = min(2*w.size, most), false
	}
	return w
}

// waited halves the window if the first entry has waited for too long. A timeout of 0 is none.
func (w window) waited(startedAt time.Time, timeout time.Duration, now time.Time) window {
	if timeout > 0 && now.Sub(startedAt) > timeout/10 && startedAt.After(w.cut) {
		w.size, w.cut = max(1, w.size/2), now
	}
	return w
}

// mayGrow reports whether the window was filled within a while before now, so that it may be drained soon for the first time.
func (w window) mayGrow(most int, within time.Duration, now time.Time) bool {
	return w.filled && w.size < most && now.Sub(w.since) < within
}
