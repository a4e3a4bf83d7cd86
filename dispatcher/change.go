package dispatcher

import (
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// change is one decision of a round on its way to Redis.
type change struct {
	uid        string
	event      model.Event
	transition *scripts.Transition
}

// counter is where an applied change is counted.
func (c change) counter(round *Round) *int {
	switch c.event {
	case model.EventStart:
		return &round.Started
	case model.EventTimeout:
		return &round.TimedOut
	case model.EventWithdrawn:
		return &round.Withdrawn
	case model.EventQueueTimeout, model.EventFailure: // not begun once too often is a failure
		return &round.NotBegun
	case model.EventSkipped:
		return &round.Skipped
	case model.EventGiveUp:
		return &round.GaveUp
	default:
		return &round.Refused
	}
}

// start decides about a model that stands in the due set.
func (d *Dispatcher) start(record *scripts.Record, now time.Time) change {
	switch {
	case !record.Exists:
		return change{record.UID, model.EventRemove, record.Remove()}
	case record.Fault != "":
		d.warn(record.UID, record.Fault, now)
	}
	// A refresh_at that cannot be read is a fault; to start now is safe, to wait for it would be for ever.
	unreadable := record.Fault != "" && !record.Disabled && !record.Running() && record.RefreshAt.IsZero()
	if !record.Due(now) && !unreadable {
		return change{record.UID, "", record.Mend()} // another process was faster, or the set is wrong
	}
	decision := record.Wake(now, d.config.NewUID())
	return change{record.UID, decision.Event, record.Decide(decision, now)}
}

// expire decides about a model that stands in the running set with a passed deadline: it has failed by timeout, unless
// nobody ever took the attempt. One that a worker has begun and that stands in the input list again was handed back when its
// worker died: it was taken, and its entry goes with it. Without that, an attempt which kills its workers would never fail.
func (d *Dispatcher) expire(record *scripts.Record, queued map[string]string, now time.Time) change {
	if !record.Exists {
		return change{record.UID, model.EventRemove, record.Remove()}
	}
	if !record.Running() || record.DeadlineAt.After(now) {
		return change{record.UID, "", record.Mend()}
	}
	entry, waiting := queued[record.AttemptUID]
	if begun := !record.ProcessingAt.IsZero(); waiting && !begun {
		decision := record.Withdraw(now)
		transition := record.Decide(decision, now)
		transition.TakeBack = entry
		return change{record.UID, decision.Event, transition}
	}
	decision := record.Expire(now)
	transition := record.Decide(decision, now)
	transition.TakeBack = entry
	return change{record.UID, decision.Event, transition}
}

// warn tells of a model with a fault. A fault that many models share, such as a policy that was removed, is told once in a while.
func (d *Dispatcher) warn(uid, fault string, now time.Time) {
	if count, tell := d.faults.Sample(fault, now); tell {
		d.config.Log.Warn().Str("uid", uid).Str("fault", fault).Int("like_this", count).Msg("dispatcher: model with a fault")
	}
}
