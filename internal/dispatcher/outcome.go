package dispatcher

import (
	"cmp"
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/logbook"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Round is the result of one round of a dispatcher.
type Round struct {
	Started   int // attempts handed out
	TimedOut  int // attempts that failed by their deadline
	Withdrawn int // attempts taken back that no worker had taken
	Taken     int // attempts that had waited in line, and get their full timeout
	NotBegun  int // attempts that no worker had begun within the queue timeout
	Parked    int // due models that were parked
	Limited   int // due models that wait for a slot of a key from now on
	Released  int // models whose blocker has ended
	Skipped   int // planned refreshes that were missed and not made up for
	GaveUp    int // models whose give-up window had ended
	Aged      int // models whose freshness changed
	Refused   int // decisions that another process had overtaken
	Blocked   int // decisions that need a key which is of another type
	Queued    int // entries in the input list when the round began
	// Sleep is how long nothing is expected to happen; 0: begin the next round at once.
	Sleep time.Duration
}

func (r *Round) counts() []logbook.Count {
	return []logbook.Count{
		logbook.Of("started", r.Started), logbook.Of("timed_out", r.TimedOut), logbook.Of("withdrawn", r.Withdrawn), logbook.Of("taken", r.Taken), logbook.Of("not_begun", r.NotBegun), logbook.Of("parked", r.Parked),
		logbook.Of("limited", r.Limited), logbook.Of("released", r.Released), logbook.Of("skipped", r.Skipped), logbook.Of("gave_up", r.GaveUp), logbook.Of("aged", r.Aged), logbook.Of("refused", r.Refused),
		logbook.Of("blocked", r.Blocked),
	}
}

// counters count the events that a dispatcher decides.
func (r *Round) counters() map[model.Event]*int {
	return map[model.Event]*int{
		model.EventStart: &r.Started, model.EventTimeout: &r.TimedOut, model.EventOutdated: &r.TimedOut, model.EventWithdrawn: &r.Withdrawn,
		model.EventTaken: &r.Taken, model.EventQueueTimeout: &r.NotBegun, model.EventFailure: &r.NotBegun, model.EventParked: &r.Parked,
		model.EventLimited: &r.Limited, model.EventReleased: &r.Released, model.EventSkipped: &r.Skipped, model.EventGiveUp: &r.GaveUp,
		model.EventBecameLate: &r.Aged, model.EventBecameStale: &r.Aged, model.EventWatch: &r.Aged,
	}
}

type outcome struct {
	batch store.Batch
	codes []store.Code
	err   error
}

// count counts the results of a batch, and returns the withdrawals of attempts that are not queued.
func (d *Dispatcher) count(ctx context.Context, o outcome, w *work, round *Round) (missing []*store.Transition, err error) {
	counters, now := round.counters(), w.due.Now
	for i, code := range o.codes {
		transition, wrong := o.batch.Items[i].Transition, o.batch.Items[i].WrongType
		d.logbook.WrongType(wrong, now)
		switch code {
		case store.CodeApplied:
			*cmp.Or(counters[transition.Event()], &round.Refused)++
			w.soon(transition.Awaited(now)...)
			d.logbook.Applied(transition, now)
		case store.CodeTaken:
			missing = append(missing, transition)
		case store.CodeBroken:
			w.soon(now)
			if err := d.store.Forget(ctx, transition.UID(), w.blockers[transition.UID()]); err != nil {
				return nil, err
			}
		case store.CodeBlocked:
			round.Blocked++
		default:
			round.Refused++
			w.soon(now)
			if blocker := w.blockers[transition.UID()]; blocker != "" { // it is not as was believed when it was to be checked later
				w.checks[w.places[blocker]].Again = now
			}
		}
	}
	return missing, o.err
}
