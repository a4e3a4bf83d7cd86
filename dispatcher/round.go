package dispatcher

import (
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
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
	Parked    int // due models that wait for a gate from now on
	Limited   int // due models that wait for a slot of a key from now on
	Released  int // models whose gate has opened
	Skipped   int // planned refreshes that were missed and not made up for
	GaveUp    int // models whose give-up window had ended
	Aged      int // models whose freshness was told anew
	Refused   int // decisions that another process had overtaken
	Blocked   int // decisions that need a key which is of another type
	Queued    int // entries in the input list when the round began
	// Sleep is how long nothing is expected to happen; 0: begin the next round at once.
	Sleep time.Duration
}

// pause is how long a dispatcher leaves what is due to each one before it. A round takes milliseconds, so that it finds nothing left unless
// those before it have much to do, or are dead.
const pause = 25 * time.Millisecond

// leaseTicks is how many ticks a dispatcher without a heartbeat still counts as alive.
const leaseTicks = 4

// RunOnce does one round: it reads what is due and what has expired, decides, and commits part by part.
func (d *Dispatcher) RunOnce(ctx context.Context) (Round, error) {
	asked := store.DueRequest{Limit: d.config.Batch, Owner: d.config.Owner, Lease: leaseTicks * d.config.Tick, Pause: pause}
	if d.called {
		asked.Pause = 0
	}
	due, err := d.store.ReadDue(ctx, asked)
	if err != nil {
		return Round{}, err
	}
	if err := d.tend(ctx, due); err != nil {
		return Round{}, err
	}
	room := max(0, d.pace.window-due.Queued)
	room = (room + due.Sharers - 1) / max(1, due.Sharers) // what does not fit in would be read and decided for nothing
	work := work{due: due, left: room}
	if err := d.lookAtGates(ctx, &work); err != nil {
		return Round{}, err
	}
	full := len(due.Urgent)+len(due.Due)+len(work.gated) > room
	work.due.Urgent, work.due.Due = d.admit(due.Urgent, due.Due, room, d.spare(due))
	if full {
		d.pace = d.pace.fill(due.Now)
	}
	round := Round{Queued: due.Queued, Sleep: d.sleep(due, full)}
	d.steered = false
	if err := d.work(ctx, &work, &round); err != nil {
		return round, err
	}
	if work.count() > round.Blocked && !full || round.Parked+round.Limited+round.Released > 0 {
		round.Sleep = 0 // what was changed may be due again, and more may be waiting
	}
	return round, d.despite(d.store.NoteBlockerChecks(ctx, work.looks, due.Alone), due.Now)
}

// tend does what is to be done now and then.
func (d *Dispatcher) tend(ctx context.Context, due store.Due) error {
	for _, misfit := range due.Misfits {
		d.tellMisfit(misfit, due.Now)
	}
	for _, step := range []func(context.Context, store.Due) error{d.measureCircuit, d.trimOutbox, d.forgetLimits, d.look} {
		if err := d.despite(step(ctx, due), due.Now); err != nil {
			return err
		}
	}
	return nil
}

// despite is an error, unless it is about a key of another type: then the round goes on without what needed that key.
func (d *Dispatcher) despite(err error, now time.Time) error {
	misfit, is := store.Misfit(err)
	if !is {
		return err
	}
	d.tellMisfit(misfit, now)
	return nil
}

// tellMisfit tells of a key of another type than it should be, if there is one, once in a while.
func (d *Dispatcher) tellMisfit(misfit string, now time.Time) {
	if misfit == "" { // not even counted: the sampler counts by texts, and this would be one
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

// work is what a round is to decide about.
type work struct {
	due   store.Due
	left  int                      // how many attempts may still be started
	gated []string                 // models that wait for a gate which lets them go on
	gates map[string]model.Blocker // by these uids
	looks []store.BlockerCheck     // what was found out about gates
	rooms model.Limiters           // of keys
}

// uids are all models that are decided about, in their order. What waits for gates and what is due takes turns.
func (w *work) uids() []string {
	uids := slices.Concat(w.due.Expired, w.due.Urgent)
	for i := range max(len(w.gated), len(w.due.Due)) {
		if i < len(w.gated) {
			uids = append(uids, w.gated[i])
		}
		if i < len(w.due.Due) {
			uids = append(uids, w.due.Due[i])
		}
	}
	return append(uids, w.due.Ages...)
}

func (w *work) count() int {
	return len(w.due.Expired) + len(w.due.Urgent) + len(w.due.Due) + len(w.gated) + len(w.due.Ages)
}

// work decides about everything, and commits it.
func (d *Dispatcher) work(ctx context.Context, w *work, round *Round) error {
	if w.count() == 0 {
		return nil
	}
	// An attempt that was to be withdrawn, and whose entry does not stand in the input list, has timed out after all. Unless it stands
	// there as it was before its model was saved anew: a worker had taken it then, and has returned it. So it is looked for by its uid.
	missing, err := d.pass(ctx, w, nil, round)
	if err != nil || len(missing) == 0 {
		return err
	}
	return d.passMissing(ctx, missing, w.due.Now, round)
}

// admit picks what starts in the room that is there: what is urgent first, but no more than half of the room while others are due too, so
// that hands cannot stop the schedule. An odd place is theirs every other time. spare more of those that are due may turn out to be parked.
func (d *Dispatcher) admit(urgent, due []string, room, spare int) ([]string, []string) {
	half := room / 2
	if room%2 == 1 && len(urgent) > half && len(due) > 0 {
		if d.odd = !d.odd; d.odd {
			half++
		}
	}
	urgent = urgent[:min(len(urgent), max(half, room-len(due)))]
	if room == 0 {
		spare = 0
	}
	return urgent, due[:min(len(due), room-len(urgent)+spare)]
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

// sleep is how long nothing is expected to happen if this round finds nothing to do.
func (d *Dispatcher) sleep(due store.Due, full bool) time.Duration {
	sleep := d.config.Tick
	if due.Queued > 0 {
		sleep /= lookEvery
	}
	switch {
	case full && d.pace.mayGrow(d.config.MaxQueued, d.config.FullTick, due.Now):
		return min(d.config.FullTick, time.Millisecond)
	case full:
		return d.config.FullTick
	case due.Next.IsZero():
		return sleep
	}
	return min(due.Next.Sub(due.Now), sleep)
}

// start decides about a model that stands in the due or urgent set; nil: there is no room for it any more.
func (d *Dispatcher) start(record *store.Record, w *work) *store.Transition {
	now := w.due.Now
	if !record.Exists {
		return record.Remove()
	}
	if record.Fault != "" {
		d.warn(record.UID, record.Fault, now)
	}
	// A refresh_at that cannot be read is a fault; to start now is safe, to wait for it would be for ever.
	unreadable := record.RefreshUnreadable() && !record.Disabled && !record.Running()
	if !record.Due(now) && !unreadable {
		return record.Mend() // another process was faster, or the set is wrong
	}
	if w.left == 0 {
		return nil
	}
	return w.starts(record, w.due.Gates.StartOrPark(&record.Model, &w.rooms, d.config.NewUID(), now))
}

// expire decides about a model that stands in the running set with a passed deadline: it has failed by timeout, unless nobody ever took the
// attempt, which is then withdrawn, or it was taken late. One that a worker has begun may stand in the input list again, requeued when its
// worker died: it was taken, and its entry goes with it. Without that, an attempt which kills its workers would never fail.
func (d *Dispatcher) expire(record *store.Record, line *line, now time.Time) *store.Transition {
	switch {
	case !record.Exists:
		return record.Remove()
	case !record.Running() || record.DeadlineAt.After(now) || line.precedes(record):
		return record.Mend()
	}
	decide := record.Withdraw
	entry, waits := line.entry(record.AttemptUID)
	switch {
	case !record.ProcessingAt.IsZero():
		decide = record.Expire
	case line != nil && !waits:
		decide = func(now time.Time) model.Decision { return record.ExpireOrExtend(line.fronts, now) }
	}
	transition := record.Decide(decide(now), now)
	if waits {
		transition.TakeBack = entry
	}
	return transition
}

// warn tells of a model with a fault. A fault that many models share, such as a policy that was removed, is told once in a while.
func (d *Dispatcher) warn(uid, fault string, now time.Time) {
	if count, tell := d.faults.Sample(fault, now); tell {
		d.config.Log.Warn().Str("uid", uid).Str("fault", fault).Int("like_this", count).Msg("dispatcher: model with a fault")
	}
}

// counter is where a committed transition is counted.
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
