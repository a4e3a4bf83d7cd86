// Package poller does everything that a message triggers: results of workers, and commands of applications.
//
// A poller claims a batch of messages into a list of its own, lets package model decide, and commits the decisions in one script
// that removes each message with the change that it causes. Meanwhile the next batch is claimed, and read unless the first may change its
// models. A crash anywhere replays: claimed messages are decided again, by the poller itself or by another that adopts the list.
package poller

import (
	"context"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/logbook"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Store is a poller's view of Redis. *store.Store is one.
type Store interface {
	Claim(ctx context.Context, owner string, holds store.Holding, limit int, lease time.Duration) (store.Claim, error)
	Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error)
	Load(ctx context.Context, uids []string) (map[string]*store.Record, error)
	Report() store.Report
	Commit(ctx context.Context, batch store.Batch) ([]store.Code, error)
	NoteZones(ctx context.Context, daemon string) (time.Time, error)
	ExpiredPollers(ctx context.Context, now time.Time, lease time.Duration) ([]string, error)
	Adopt(ctx context.Context, expired, owner string, lease time.Duration, limit int) (int, error)
	Resign(ctx context.Context, owner string) error
	Home(uid string) (home *store.Keys, own bool)
	Wire() model.Wire
	ReplyName(key string) (string, error)
	Forward(ctx context.Context, commands []store.Forwarded) (map[*store.Keys]bool, error)
	WalkModels(ctx context.Context, selector model.Selector, from store.Place, least int) (uids []string, to store.Place, err error)
	Queued(ctx context.Context) (map[string]string, error)
	WaitOutput(ctx context.Context) (bool, error)
	WaitControl(ctx context.Context) (bool, error)
}

// Flow lets a poller steer many models. flow.Flow is one.
type Flow interface {
	ApplyQueueCommand(ctx context.Context, command *model.Command, claimed store.Claimed, now time.Time) (model.Outcome, error)
	Bulks(ctx context.Context) ([]flow.Bulk, error)
	MoveBulk(ctx context.Context, bulk *flow.Bulk, now time.Time) (bool, error)
	Waiting(ctx context.Context, places map[string]int, now time.Time) (flow.Waiting, error)
	ReadLimiters(ctx context.Context, limits, circuits []string, now time.Time) (model.Limiters, error)
}

// Rooms are the parts of Redis that a poller works on.
type Rooms struct {
	Store Store
	Flow  Flow
}

// RoomsOf returns the rooms of a part of a queue.
func RoomsOf(part *store.Store) Rooms { return Rooms{part, flow.Of(part)} }

// Poller applies the messages of one queue.
type Poller struct {
	store   Store
	flow    Flow
	config  Config
	logbook *logbook.Logbook
	actor   *store.Actor    // of what commands want
	zones   store.ZoneWatch // run goroutine only
	seen    time.Time       // when Redis was asked for messages last, on its clock; run goroutine only
	handed  time.Time       // when a model was found that may take a place, on the clock of Redis; run goroutine only
	adopted time.Time       // when expired pollers were last looked for, on the clock of Redis; run goroutine only

	left    bool // the last batch left something; run goroutine only
	waiting int  // results of it that are decided, and wait for a key of another type; run goroutine only

	unreachable time.Time // until when other parts of the queue are left alone, on the clock of Redis; run goroutine only

	bulks bulks // run goroutine only
}

type bulks struct {
	stepped time.Time // when the last one was taken, on the clock of Redis
	failed  bool      // it failed
	planned time.Time // when the last one was taken that plans models anew
	last    string    // id of the bulk that it was about
}

// New returns a poller. It opens nothing: the caller closes the store's connections.
func New(rooms Rooms, config Config) (*Poller, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, err
	}
	p := &Poller{store: rooms.Store, flow: rooms.Flow, config: config, logbook: logbook.New("poller", config.Log)}
	p.actor = store.NewActor(store.Actor{From: "control list", Untold: func(key string, err error) {
		config.Log.Warn().Str("key", key).Err(err).Msg("poller: audit does not show what commands do")
	}})
	return p, nil
}

// batches is how many make a round of Run at most.
const batches = 8

func beside(do func()) (wait func()) {
	var doing sync.WaitGroup
	doing.Go(do)
	return doing.Wait
}

// Run works until ctx ends, and then returns nil: the batch in hand is finished first. Errors of Redis are logged and
// waited out, for ever.
func (p *Poller) Run(ctx context.Context) error {
	ready := make(chan struct{}, 1)
	output := watch{p.store.WaitOutput, make(chan struct{}, 1), ready, p.config.Tick}
	control := watch{p.store.WaitControl, make(chan struct{}, 1), ready, p.config.Tick}
	var watching sync.WaitGroup
	watching.Go(func() { output.run(ctx) })
	watching.Go(func() { control.run(ctx) })
	defer watching.Wait()
	c := p.config
	retry := backoff.New(backoff.Config{
		Part: "poller", What: "round", First: c.Backoff, Max: c.Tick, Log: c.Log, Clock: c.Clock,
	})
	tally := logbook.NewTally("poller: round", c.Log)
	defer tally.Log(time.Time{})
	for ctx.Err() == nil {
		ended := p.config.Observe()
		// A batch that has begun is finished: to be cut off in the middle would only leave its end unknown.
		begun := 1
		round, err := p.RunPipelined(context.WithoutCancel(ctx), func() bool { begun++; return begun <= batches && ctx.Err() == nil }, beside)
		ended(err)
		pause := retry.After(err)
		few := 2*round.Claimed < c.Batch // commands fill at most half of a batch
		switch {
		case err != nil:
			backoff.Rest(ctx, pause, nil)
			continue
		case round.Claimed > round.Waiting:
			tally.Add(round.counts()...)
		}
		tally.Log(p.seen)
		if !round.Bulks && round.Left == round.Waiting && (few || round.Claimed == round.Waiting) { // else the next round has something to do
			backoff.Signal(output.asked)
			if round.Leads && round.Waiting == 0 { // any other poller would be called for nothing
				backoff.Signal(control.asked)
			}
			backoff.Rest(ctx, c.Tick, ready)
		}
	}
	// Nothing of this poller is left for the others; if Redis does not hear it, the lease runs out instead.
	farewell, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.config.Tick)
	defer cancel()
	if err := p.store.Resign(farewell, p.config.Owner); err != nil {
		p.config.Log.Warn().Err(err).Msg("poller: resigning failed")
	}
	return nil
}

// watch waits in Redis for a list to fill, but only while it is asked to, and signals once for each time.
type watch struct {
	wait  func(context.Context) (bool, error)
	asked chan struct{}
	ready chan<- struct{}
	tick  time.Duration
}

// run serves until ctx ends; a waiting call returns within a second of that.
func (w watch) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.asked:
		}
		for ctx.Err() == nil {
			// An error is a signal too: the round that follows meets the same error and logs it.
			found, err := w.wait(context.WithoutCancel(ctx))
			if err != nil {
				backoff.Rest(ctx, w.tick, nil)
			}
			if found || err != nil {
				select {
				case <-w.asked: // again, while it waited: once is enough
				default:
				}
				backoff.Signal(w.ready)
				break
			}
		}
	}
}

// adopt takes over the messages of pollers whose lease has expired. They are decided in the next round.
func (p *Poller) adopt(ctx context.Context, now time.Time) error {
	if backoff.Recent(p.adopted, now, p.config.Lease/4) {
		return nil
	}
	expired, err := p.store.ExpiredPollers(ctx, now, p.config.Lease)
	if err != nil {
		return err
	}
	for _, owner := range expired {
		if owner == p.config.Owner {
			continue // somebody uses its name
		}
		moved, err := p.store.Adopt(ctx, owner, p.config.Owner, p.config.Lease, p.config.Batch)
		if err = p.logbook.IgnoreWrongType(err, now); err != nil {
			return err
		}
		if moved > 0 {
			p.config.Log.Warn().Str("silent", owner).Int("messages", moved).Msg("poller: adopted claimed messages")
			return nil // one list at a time keeps the batch small; the next round looks again
		}
	}
	p.adopted = now
	return nil
}
