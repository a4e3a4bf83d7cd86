package dispatcher

import (
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/scripts"
)

// Round is what one round of a dispatcher did.
type Round struct {
	Started   int // attempts handed out
	TimedOut  int // attempts that failed by their deadline
	Withdrawn int // attempts taken back that no worker had taken
	NotBegun  int // attempts that no worker had begun within the queue timeout
	Skipped   int // planned refreshes that were missed and not made up for
	GaveUp    int // models whose give-up window had ended
	Refused   int // decisions that another process had overtaken
	Queued    int // entries in the input list when the round began
	// Sleep is how long nothing is expected to happen; 0: begin the next round at once.
	Sleep time.Duration
}

// RunOnce does one round: it reads what is due and what has expired, decides, and applies everything in one script.
func (d *Dispatcher) RunOnce(ctx context.Context) (Round, error) {
	due, err := d.store.ReadDue(ctx, d.config.Batch)
	if err != nil {
		return Round{}, err
	}
	if err := d.brake(ctx, due.Now); err != nil {
		return Round{}, err
	}
	room := max(0, d.config.MaxQueued-due.Queued)
	full := len(due.Due) > room
	due.Due = due.Due[:min(len(due.Due), room)]
	round := Round{Queued: due.Queued, Sleep: d.sleep(due, full)}
	if len(due.Due)+len(due.Expired) == 0 {
		return round, nil
	}
	if err := d.work(ctx, due, &round); err != nil {
		return round, err
	}
	if !full {
		round.Sleep = 0 // what was changed may be due again, and more may be waiting
	}
	return round, nil
}

// sleep is how long nothing is expected to happen if this round finds nothing to do.
func (d *Dispatcher) sleep(due scripts.Due, full bool) time.Duration {
	if full {
		return d.config.FullTick
	}
	if due.Next.IsZero() {
		return d.config.Tick
	}
	return min(due.Next.Sub(due.Now), d.config.Tick)
}

// work decides about every model of the round and applies the decisions.
func (d *Dispatcher) work(ctx context.Context, due scripts.Due, round *Round) error {
	records, err := d.store.Load(ctx, slices.Concat(due.Expired, due.Due))
	if err != nil {
		return err
	}
	queued, err := d.queued(ctx, due)
	if err != nil {
		return err
	}
	var batch []change
	for _, uid := range due.Expired {
		batch = append(batch, d.expire(records[uid], queued, due.Now))
	}
	for _, uid := range due.Due {
		batch = append(batch, d.start(records[uid], due.Now))
	}
	refused, err := d.apply(ctx, batch, due.Now, round)
	if err != nil {
		return err
	}
	return d.retake(ctx, refused, due.Now, round)
}

// queued reads the input list, but only when an attempt has expired that may still stand there. That the list was empty when the
// round began says nothing: an attempt that a sleepy dispatcher has started since may have expired already.
func (d *Dispatcher) queued(ctx context.Context, due scripts.Due) (map[string]string, error) {
	if len(due.Expired) == 0 {
		return nil, nil
	}
	return d.store.Queued(ctx)
}

// apply runs the batch and counts; it returns the changes whose attempt a worker took in the last moment.
func (d *Dispatcher) apply(ctx context.Context, batch []change, now time.Time, round *Round) ([]change, error) {
	transitions := make([]*scripts.Transition, len(batch))
	for i, change := range batch {
		transitions[i] = change.transition
	}
	codes, err := d.store.Apply(ctx, transitions, "", d.config.MaxQueued, now)
	if err != nil {
		return nil, err
	}
	var taken []change
	for i, code := range codes {
		switch code {
		case scripts.CodeApplied:
			*batch[i].counter(round)++
		case scripts.CodeTaken:
			taken = append(taken, batch[i])
		case scripts.CodeBroken:
			d.warn(batch[i].uid, "the key of the model holds something else", now)
			if err := d.store.Forget(ctx, batch[i].uid); err != nil {
				return nil, err
			}
		default:
			round.Refused++
		}
	}
	return taken, nil
}

// retake ends attempts that were to be withdrawn but were taken in the last moment: they have timed out after all.
func (d *Dispatcher) retake(ctx context.Context, taken []change, now time.Time, round *Round) error {
	if len(taken) == 0 {
		return nil
	}
	uids := make([]string, len(taken))
	for i, change := range taken {
		uids[i] = change.uid
	}
	records, err := d.store.Load(ctx, uids)
	if err != nil {
		return err
	}
	var batch []change
	for _, uid := range uids {
		batch = append(batch, d.expire(records[uid], nil, now))
	}
	_, err = d.apply(ctx, batch, now, round)
	return err
}
