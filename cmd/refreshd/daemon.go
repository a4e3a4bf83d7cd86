package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/admin/doctor"
	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/redisurl"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/ui/health"
	"github.com/refreshd/refreshd/internal/ui/metrics"
	"github.com/refreshd/refreshd/worker"
)

// loopFlags are the flags of every long-running command. 0 is the default of the daemon, unless it says otherwise.
type loopFlags struct {
	batch    int           // models or messages of one round; default 500 models, 100 messages
	tick     time.Duration // the longest sleep between two rounds; default 1 s
	backoff  time.Duration // the first pause after an error of Redis, which doubles; default 50 ms
	life     time.Duration // how long to run; 0: for ever
	grace    time.Duration // how long the work in hand may go on at the end; 0: not at all; default 10 s
	health   string        // address of the health checks, as in 127.0.0.1:8080; "": none
	traces   string        // URL of a collector of OpenTelemetry; "": as the environment says, mostly none
	patience time.Duration // how long /livez stays well while Redis fails; default 10 min
	checks   bool          // it checks its Redis before it begins
	strict   bool          // a check that fails keeps it from beginning; default false
}

func (f *loopFlags) bind(flags *pflag.FlagSet) {
	f.bindLife(flags)
	flags.Var(count[int]{&f.batch, "1 to 1000, of a poller 2 to 1000"}, "batch", "models or messages to handle in one round (default 500 models, 100 messages)")
	flags.Var((*duration)(&f.tick), "tick", "longest sleep between two rounds (default 1s)")
	flags.BoolVar(&f.strict, "strict", false, "refuse to begin unless version, memory, persistence and clock of Redis are as they should be")
	f.checks = true
}

func (f *loopFlags) bindLife(flags *pflag.FlagSet) {
	flags.Var((*duration)(&f.backoff), "backoff", "first pause after an error of Redis, which doubles (default 50ms)")
	flags.Var((*duration)(&f.life), "for", "how long to run, and then end as by a signal (default for ever)")
	f.grace = worker.Config{}.WithDefaults().Grace
	flags.Var((*duration)(&f.grace), "grace", "how long the work in hand may go on after a signal to stop, before it is handed back; a second signal ends it")
	flags.StringVar(&f.health, "health", "", "answer /livez, /readyz and /metrics over HTTP on `ADDRESS`, as in 127.0.0.1:8080 (default nowhere)")
	flags.StringVar(&f.traces, "traces", "", "send traces of attempts to a collector of OpenTelemetry at `URL`, by OTLP over HTTP, as in http://127.0.0.1:4318 (also OTEL_EXPORTER_OTLP_ENDPOINT; default nowhere)")
	f.patience = 10 * time.Minute
	flags.Var((*duration)(&f.patience), "health-patience", "how long /livez stays well while Redis fails, because a restart does not mend Redis")
}

// daemon is a long-running part of refreshd. Run finishes the work in hand when ctx ends, and returns soon.
type daemon interface {
	Run(ctx context.Context) error
}

// prepared builds a daemon for a queue. Its flags are already checked.
type prepared func(*store.Queue) (daemon, error)

func dispatcherCommand(a *app) *cobra.Command {
	var config dispatcher.Config
	command := a.loopCommand("dispatcher", "Start what is due and end what is past its deadline", (*loopFlags).bind,
		func(_ context.Context, loop *loopFlags, _ []string) (prepared, error) {
			return a.prepareDispatcher(loop, config)
		})
	bindDispatcher(command.Flags(), &config)
	return command
}

func bindDispatcher(flags *pflag.FlagSet, config *dispatcher.Config) {
	flags.Var(count[int]{&config.MaxQueued, "at least 1"}, "max-queued", "start nothing while so many attempts wait for workers (default 1000)")
	flags.Var((*duration)(&config.FullTick), "full-tick", "sleep while so many wait (default 20ms)")
	bindWorkerLease(flags, &config.WorkerLease)
}

// bindWorkerLease serves dispatchers, which requeue by the lease, and workers, which send heartbeats by it.
func bindWorkerLease(flags *pflag.FlagSet, lease *time.Duration) {
	flags.Var((*duration)(lease), "worker-lease", "how long a worker may go without a heartbeat before others are given its attempts; the same for dispatchers and workers (default 5s)")
}

func (a *app) prepareDispatcher(loop *loopFlags, config dispatcher.Config) (prepared, error) {
	config.Batch, config.Tick, config.Backoff = loop.batch, loop.tick, loop.backoff
	config.Clock = time.Now
	return func(queue *store.Queue) (daemon, error) {
		return forParts(a, queue, "dispatcher", loop.tick, func(at place) (*dispatcher.Dispatcher, error) {
			config := config // each part has its own
			config.Log, config.Observe = at.log, at.observe
			rooms := dispatcher.RoomsOf(at.part.Store)
			rooms.Store = at.part
			return dispatcher.New(rooms, config)
		})
	}, config.WithDefaults().Validate()
}

func pollerCommand(a *app) *cobra.Command {
	var config poller.Config
	command := a.loopCommand("poller", "Apply the results of workers and the messages of applications", (*loopFlags).bind,
		func(_ context.Context, loop *loopFlags, _ []string) (prepared, error) {
			pollers, err := a.preparePollers(loop, config)
			return func(queue *store.Queue) (daemon, error) { return pollers(queue) }, err
		})
	bindPoller(command.Flags(), &config)
	return command
}

func bindPoller(flags *pflag.FlagSet, config *poller.Config) {
	flags.StringVar(&config.Owner, "owner", "", "`NAME` of this poller, shared with no other (default HOST:PID and some letters)")
	flags.Var((*duration)(&config.Lease), "lease", "how long a poller may go without a heartbeat before others take over its messages (default 10s)")
}

func (a *app) preparePollers(loop *loopFlags, config poller.Config) (func(*store.Queue) (parts[*poller.Poller], error), error) {
	config.Batch, config.Tick, config.Backoff = loop.batch, loop.tick, loop.backoff
	config.Clock = time.Now
	return func(queue *store.Queue) (parts[*poller.Poller], error) {
		return forParts(a, queue, "poller", loop.tick, func(at place) (*poller.Poller, error) {
			config := config // each part has its own
			config.Log, config.Observe = at.log, at.observe
			return poller.New(poller.Rooms{Store: at.part, Flow: flow.Of(at.part.Store)}, config)
		})
	}, config.WithDefaults().Validate()
}

// loopCommand makes a command that runs one daemon with the loopFlags that bind binds.
func (a *app) loopCommand(
	use, short string, bind func(*loopFlags, *pflag.FlagSet), prepare func(context.Context, *loopFlags, []string) (prepared, error),
) *cobra.Command {
	var flags loopFlags
	command := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, args []string) error {
			build, err := prepare(command.Context(), &flags, args)
			if err != nil {
				return usageError{err}
			}
			return a.withLife(command.Context(), command.Name(), a.address(), &flags, func(ctx context.Context, queue *store.Queue) error {
				loop, err := build(queue)
				if err != nil {
					return usageError{err}
				}
				if err := a.preflight(ctx, queue, &flags); err != nil {
					return err
				}
				return a.runDaemon(ctx, command.Name(), queue, loop, flags.grace)
			})
		},
	}
	bind(&flags, command.Flags())
	return command
}

// withLife calls do with each queue as soon as Redis answers, serves the health checks, and ends after --for.
func (a *app) withLife(
	ctx context.Context, name, address string, flags *loopFlags, do func(context.Context, *store.Queue) error,
) error {
	clients, done, err := a.connectTo(address)
	if err != nil {
		return err
	}
	defer done()
	if flags.life > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, flags.life)
		defer cancel()
	}
	closeHealth, err := a.openHealth(ctx, flags, clients)
	if err != nil {
		return err
	}
	defer closeHealth()
	closeTraces, err := a.openTraces(ctx, flags)
	if err != nil {
		return err
	}
	defer closeTraces()
	a.log.Info().Str("part", name).Stringer("queue", &a.queues).Str("redis", redisurl.Redacted(address)).
		Str("version", readVersion().Version).Msg("started")
	return a.eachQueue(ctx, name, clients, flags, do)
}

// openHealth serves health checks and metrics. The caller calls the returned function at the end. Without an address, nothing is measured.
func (a *app) openHealth(ctx context.Context, flags *loopFlags, clients *redis.Clients) (func(), error) {
	if flags.health == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", flags.health)
	if err != nil {
		return nil, fmt.Errorf("--health: %w", err)
	}
	a.checks = health.NewChecks(flags.patience, time.Now)
	stop := context.AfterFunc(ctx, a.checks.Stop)
	version := readVersion()
	a.metrics = metrics.New(metrics.Build{Version: version.Version, Commit: version.Commit, Go: version.Go}, time.Now)
	a.metrics.Watch(clients)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	mux.Handle("/", a.checks)
	server := &http.Server{
		Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	a.log.Info().Str("address", listener.Addr().String()).Msg("serving health at /livez and /readyz, numbers at /metrics")
	return func() {
		stop()
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			a.log.Error().Err(err).Msg("health is not served any more")
		}
	}, nil
}

const preflightTime = 5 * time.Second

// preflight loads the scripts and logs the findings of the doctor in Redis. With --strict a finding is an error.
func (a *app) preflight(ctx context.Context, queue *store.Queue, flags *loopFlags) error {
	if err := queue.LoadScripts(ctx); err != nil && !errors.Is(err, redis.ErrNotLoaded) && ctx.Err() == nil {
		a.logOf(queue.Name).Warn().Err(err).Msg("loading the scripts failed")
	}
	if !flags.checks {
		return nil
	}
	var refused []string
	report, err := doctor.Preflight(ctx, queue, doctor.Options{Now: time.Now}, preflightTime)
	if err != nil {
		refused = append(refused, "check redis: "+err.Error())
	}
	for _, f := range report.Findings {
		level, worth := map[doctor.Severity]zerolog.Level{doctor.Error: zerolog.ErrorLevel, doctor.Warning: zerolog.WarnLevel}[f.Severity]
		if worth {
			a.logOf(queue.Name).WithLevel(level).Str("code", f.Code).Str("where", f.Where).Str("expected", f.Want).Str("found", f.Found).Str("repair", f.Repair).Msg("doctor")
			refused = append(refused, fmt.Sprintf("%s: expected %s, found %s", f.Code, f.Want, f.Found))
		}
	}
	if flags.strict && len(refused) > 0 {
		return errors.New("--strict: " + strings.Join(refused, "; "))
	}
	return nil
}

// runDaemon runs a daemon until ctx ends, and then for the grace at most. A worker bounds its own end.
func (a *app) runDaemon(ctx context.Context, name string, queue *store.Queue, loop daemon, grace time.Duration) error {
	var err error
	if _, ok := loop.(*workerPool); ok {
		err = loop.Run(ctx)
	} else {
		err = bounded(ctx, loop, grace, hurryOf(ctx))
	}
	a.logOf(queue.Name).Info().Str("part", name).AnErr("error", err).Msg("stopped")
	if err != nil {
		return fmt.Errorf("%s: %w", a.loopName(name, queue.Name), err)
	}
	return nil
}

// parts are daemons of the parts of a queue, side by side.
type parts[D daemon] []D

// Run runs all of them until ctx ends.
func (p parts[D]) Run(ctx context.Context) error {
	return sideBySide(len(p), func(i int) error { return p[i].Run(ctx) })
}

func sideBySide(count int, do func(i int) error) error {
	errs := make([]error, count)
	var running sync.WaitGroup
	for i := range count {
		running.Go(func() { errs[i] = do(i) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// place is where the daemon of one part works, logs, and reports its rounds.
type place struct {
	part    *observedStore
	log     *zerolog.Logger
	observe func() func(error)
}

func forParts[D daemon](a *app, queue *store.Queue, name string, tick time.Duration, build func(place) (D, error)) (parts[D], error) {
	daemons, measured := make(parts[D], len(queue.Parts)), a.metrics.Loop(queue.Name, name)
	for i, part := range queue.Parts {
		loop, log := a.loopName(name, queue.Name), a.logOf(queue.Name)
		if len(queue.Parts) > 1 {
			loop = name + " " + part.Keys.Queue
			log = new(a.log.With().Str("queue", part.Keys.Queue).Logger())
		}
		observed := &observedStore{Store: part, queue: queue.Name, loop: measured, traces: a.traces}
		var err error
		if daemons[i], err = build(place{observed, log, both(a.checks.Loop(loop, tick, false).Begin, measured)}); err != nil {
			return nil, err
		}
	}
	return daemons, nil
}

// awaitQueue opens a queue as soon as Redis answers. A queue that cannot be served is an error, unless others are, or --strict.
func (a *app) awaitQueue(ctx context.Context, clients *redis.Clients, name string, flags *loopFlags) (*store.Queue, error) {
	retry := backoff.New(backoff.Config{
		Part: "queue", What: "opening", First: max(flags.backoff, firstWait), Max: max(flags.backoff, longestWait), Log: a.logOf(name), Clock: time.Now,
	})
	opening := a.checks.Loop(a.loopName("opening", name), longestWait, false)
	defer a.checks.Drop(opening)
	for {
		ended := opening.Begin()
		queue, err := store.Open(ctx, clients, a.configOf(name))
		if err == nil {
			err = queue.RequireWhole()
		}
		if err == nil && flags.checks { // it is a dispatcher or a poller, or both
			if err = queue.Raise(ctx); err != nil {
				err = fmt.Errorf("%w: %w", store.ErrUnread, err)
			}
		}
		ended(err)
		if waits := errors.Is(err, store.ErrUnread) || a.queues.several(); err == nil || !waits || flags.strict || ctx.Err() != nil {
			return queue, err
		}
		backoff.Rest(ctx, retry.After(err), nil)
	}
}

const (
	firstWait   = 50 * time.Millisecond
	longestWait = time.Second
)
