package dispatcher

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Round is what one round of a dispatcher did.
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

func (r *Round) counter(event model.Event) *int {
	switch event {
	case model.EventStart:
		return &r.Started
	case model.EventTimeout, model.EventOutdated:
		return &r.TimedOut
	case model.EventWithdrawn:
		return &r.Withdrawn
	case model.EventTaken:
		return &r.Taken
	case model.EventQueueTimeout, model.EventFailure: // not begun once too often is a failure
		return &r.NotBegun
	case model.EventParked:
		return &r.Parked
	case model.EventLimited:
		return &r.Limited
	case model.EventReleased:
		return &r.Released
	case model.EventSkipped:
		return &r.Skipped
	case model.EventGiveUp:
		return &r.GaveUp
	case model.EventBecameLate, model.EventBecameStale, model.EventWatch:
		return &r.Aged
	default:
		return &r.Refused
	}
}

type outcome struct {
	blockers map[string]model.Blocker // by the uids that wait for them
	batch    store.Batch
	codes    []store.Code
	err      error
}

// count counts what has become of a batch, and returns the withdrawals of attempts that are not queued.
func (d *Dispatcher) count(ctx context.Context, o outcome, round *Round, now time.Time) (missing []*store.Transition, err error) {
	for i, code := range o.codes {
		transition, misfit := o.batch.Items[i].Transition, o.batch.Items[i].Misfit
		d.logMisfit(misfit, now)
		switch code {
		case store.CodeApplied:
			*round.counter(transition.Event())++
			d.logbook.Applied(transition, now)
		case store.CodeTaken:
			missing = append(missing, transition)
		case store.CodeBroken:
			if err := d.store.Forget(ctx, transition.UID(), o.blockers[transition.UID()]); err != nil {
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
