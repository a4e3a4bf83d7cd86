// Package dispatcher does everything that time triggers: it starts due models and ends attempts whose deadline has passed.
//
// A dispatcher keeps no state; any number may run side by side. Each round reads the due models, lets package model decide, and
// commits the decisions part by part, in a script that refuses those that another dispatcher has made meanwhile.
package dispatcher

import (
	"context"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/logbook"
	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Store is a dispatcher's view of Redis. *store.Store is one.
type Store interface {
	ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error)
	Load(ctx context.Context, uids []string) (map[string]*store.Record, error)
	Queued(ctx context.Context) (map[string]string, error)
	InputPart(ctx context.Context, from, n int64) ([]store.InputEntry, error)
	SampleHead(ctx context.Context, ticket int, since time.Time, spacing time.Duration) error
	HeadSamples(ctx context.Context) (model.HeadSamples, error)
	Commit(ctx context.Context, batch store.Batch) ([]store.Code, error)
	NoteZones(ctx context.Context, daemon string) (time.Time, error)
	Retire(ctx context.Context, owner string) error
	Forget(ctx context.Context, uid string, blocker model.Blocker) error
	WaitWake(ctx context.Context) (bool, error)
	RequeueExpired(ctx context.Context, now, judged time.Time, lease time.Duration) ([]store.ExpiredWorker, error)
}

// Flow lets a dispatcher steer many models. flow.Flow is one.
type Flow interface {
	ParkedBy(ctx context.Context, blockers []model.Blocker, limit func(model.Blocker) int) ([][]string, error)
	ForgetLimits(ctx context.Context, ended []store.EndedLimit) error
	Limiters(ctx context.Context, limits, circuits []string, now time.Time) (model.Limiters, error)
	NoteBlockerChecks(ctx context.Context, checks []flow.BlockerCheck, alone time.Time) error
	MeasureCircuit(ctx context.Context, now time.Time) (flow.CircuitChange, error)
}

// Report stores the counts of a dispatcher. report.Report is one.
type Report interface {
	NoteSample(ctx context.Context, now time.Time) error
}

// Outbox is bounded by a dispatcher. outbox.Outbox is one.
type Outbox interface {
	TrimOutbox(ctx context.Context) (unread int, err error)
}

// Rooms are the parts of Redis that a dispatcher works on.
type Rooms struct {
	Store  Store
	Flow   Flow
	Report Report
	Outbox Outbox
}

// RoomsOf returns the rooms of a part of a queue.
func RoomsOf(part *store.Store) Rooms {
	return Rooms{part, flow.Of(part), report.Of(part), outbox.Of(part)}
}

// Dispatcher starts due models and ends expired attempts of one queue.
type Dispatcher struct {
	store    Store
	flow     Flow
	report   Report
	outbox   Outbox
	config   Config
	measured time.Time       // when the circuit of the queue was measured, on the clock of Redis; run goroutine only
	trimmed  time.Time       // when the outbox was trimmed, likewise; run goroutine only
	seen     time.Time       // when the last round was, likewise; run goroutine only
	zones    store.ZoneWatch // run goroutine only
	noted    time.Time       // the last minute that was noted, likewise; run goroutine only
	rounds   rounds          // run goroutine only
	looked   time.Time       // when dead workers were looked for, on the same clock; run goroutine only
	sampled  time.Time       // when the head of the input list was sampled, on the same clock; run goroutine only
	window   window          // run goroutine only
	oddTurn  bool            // urgent models got the last odd place; run goroutine only
	logbook  *logbook.Logbook
	counted  bool           // the last models that it decided about are counted by limits or circuits, or it has decided about none; run goroutine only
	limits   map[string]int // how many may run of keys, as the last models had it that were started; run goroutine only
	notified bool           // this one was notified, and the others were not; run goroutine only
}

// New returns a dispatcher. It opens nothing: the caller closes the store's connections.
func New(rooms Rooms, config Config) (*Dispatcher, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return &Dispatcher{
		store: rooms.Store, flow: rooms.Flow, report: rooms.Report, outbox: rooms.Outbox, config: config, window: newWindow(config.MaxQueued), limits: map[string]int{}, counted: true, logbook: logbook.New("dispatcher", config.Log),
	}, nil
}

// Run works until ctx ends, and then returns nil: the round in hand is finished first. Errors of Redis are logged and
// waited out, for ever.
func (d *Dispatcher) Run(ctx context.Context) error {
	wake := make(chan struct{}, 1)
	var listening sync.WaitGroup
	listening.Go(func() {
		for ctx.Err() == nil { // a waiting call ends within a second of the end of ctx
			called, err := d.store.WaitWake(context.WithoutCancel(ctx))
			if err != nil {
				backoff.Rest(ctx, d.config.Tick, nil) // the loop itself logs the error
			}
			if called {
				backoff.Signal(wake)
			}
		}
	})
	defer listening.Wait()
	c := d.config
	retry := backoff.New(backoff.Config{
		Part: "dispatcher", What: "round", First: c.Backoff, Max: c.Tick, Log: c.Log, Clock: c.Clock,
	})
	tally := logbook.NewTally("dispatcher: round", c.Log)
	defer tally.Log(time.Time{})
	for ctx.Err() == nil {
		ended := d.config.Observe()
		// A round that has begun is finished: to be cut off in the middle would only leave its end unknown.
		round, err := d.RunOnce(context.WithoutCancel(ctx))
		ended(err)
		sleep := retry.After(err)
		if err == nil {
			sleep = round.Sleep
			if quiet := (Round{Queued: round.Queued, Sleep: round.Sleep}); round != quiet {
				tally.Add(round.counts()...)
			}
			tally.Log(d.seen)
		}
		d.notified = backoff.Rest(ctx, sleep, wake)
	}
	// The others need not leave anything to this one; if Redis does not hear it, the lease runs out instead.
	farewell, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(c.Tick, time.Second))
	defer cancel()
	if err := d.store.Retire(farewell, c.Owner); err != nil {
		c.Log.Warn().Err(err).Msg("dispatcher: retiring failed")
	}
	return nil
}
