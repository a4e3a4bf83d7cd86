package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/doctor"
	"github.com/refreshd/refreshd/internal/redisurl"
	"github.com/refreshd/refreshd/scripts"
	"github.com/refreshd/refreshd/worker"
)

// loopFlags are what every long-running command understands. Where nothing else is said, 0 stands for the default of the daemon.
type loopFlags struct {
	batch   int           // models or messages of one round; default 200 models, 100 messages
	tick    time.Duration // the longest sleep between two rounds; default 1 s
	backoff time.Duration // the first pause after an error of Redis, which doubles; default 50 ms
	life    time.Duration // how long to run; 0: for ever
	grace   time.Duration // how long the work in hand may go on when told to stop; 0: not at all; default 10 s
	health  healthFlags
	checks  bool // it checks its Redis before it begins
	strict  bool // a check that fails keeps it from beginning; default false
}

func (f *loopFlags) bind(flags *pflag.FlagSet) {
	f.bindLife(flags)
	flags.IntVar(&f.batch, "batch", 0, "models or messages to handle in one round (default 200 models, 100 messages)")
	flags.Var((*duration)(&f.tick), "tick", "longest sleep between two rounds (default 1s)")
	flags.BoolVar(&f.strict, "strict", false, "refuse to begin unless version, memory, persistence and clock of Redis are as they should be")
	f.checks = true
}

func (f *loopFlags) bindLife(flags *pflag.FlagSet) {
	flags.Var((*duration)(&f.backoff), "backoff", "first pause after an error of Redis, which doubles (default 50ms)")
	flags.Var((*duration)(&f.life), "for", "how long to run, and then end as if told to (default for ever)")
	f.grace = worker.Config{}.WithDefaults().Grace
	flags.Var((*duration)(&f.grace), "grace", "how long the work in hand may go on when told to stop, before it is handed back; to be told twice ends it")
	f.health.bind(flags)
}

// daemon is one long-running part of refreshd. Run returns soon after its context has ended, with the work in hand finished.
type daemon interface {
	Run(ctx context.Context) error
}

// loopCommand is a command that runs one daemon until it is told to stop.
func (a *app) loopCommand(use, short string, flags *loopFlags, build func(context.Context, *scripts.Store, []string) (daemon, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, args []string) error {
			store, done, err := a.open(a.address())
			if err != nil {
				return err
			}
			defer done()
			ctx, cancel := flags.lifetime(command.Context())
			defer cancel()
			closeHealth, err := a.openHealth(ctx, &flags.health)
			if err != nil {
				return err
			}
			defer closeHealth()
			loop, err := build(ctx, store, args)
			if err != nil {
				return usageError{err}
			}
			if err := a.preflight(ctx, command.Name(), store, a.address(), flags); err != nil {
				return err
			}
			return a.runDaemon(ctx, command.Name(), loop, flags.grace)
		},
	}
}

// lifetime ends ctx when the time of --for is over.
func (f *loopFlags) lifetime(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.life > 0 {
		return context.WithTimeout(ctx, f.life)
	}
	return context.WithCancel(ctx)
}

// preflightTime bounds the look of a daemon at its Redis before it begins.
const preflightTime = 5 * time.Second

// preflight logs what begins, and what a daemon should know of its Redis. A Redis that does not answer is only worth a warning:
// the daemons wait for it. With --strict it refuses to begin unless all is well.
func (a *app) preflight(ctx context.Context, name string, store *scripts.Store, address string, flags *loopFlags) error {
	a.log.Info().Str("part", name).Str("queue", store.Keys.Queue()).Str("redis", redisurl.Redacted(address)).
		Str("version", readVersion().Version).Msg("started")
	if err := store.Ping(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn().Err(err).Str("part", name).Msg("waiting for redis")
	}
	if !flags.checks {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, preflightTime)
	defer cancel()
	report, err := doctor.Preflight(ctx, store, doctor.Options{Now: time.Now})
	var refused []string
	for _, f := range report.Findings {
		level := map[doctor.Severity]zerolog.Level{doctor.Error: zerolog.ErrorLevel, doctor.Warning: zerolog.WarnLevel}[f.Severity]
		if f.Severity == doctor.Info {
			continue
		}
		refused = append(refused, fmt.Sprintf("%s: expected %s, found %s", f.Code, f.Want, f.Found))
		a.log.WithLevel(level).Str("code", f.Code).Str("where", f.Where).Str("expected", f.Want).Str("found", f.Found).Str("repair", f.Repair).Msg("doctor")
	}
	switch {
	case !flags.strict:
		return nil
	case err != nil:
		return fmt.Errorf("--strict: check redis: %w", err)
	case len(refused) > 0:
		return errors.New("--strict: " + strings.Join(refused, "; "))
	}
	return nil
}

// boundedDaemon is a daemon that bounds the time of its own end.
type boundedDaemon interface{ boundsItsEnd() }

// runDaemon runs a daemon until ctx ends, and then for no longer than the grace.
func (a *app) runDaemon(ctx context.Context, name string, loop daemon, grace time.Duration) error {
	var err error
	if _, ok := loop.(boundedDaemon); ok {
		err = loop.Run(ctx)
	} else {
		err = bounded(ctx, loop, grace, hurryOf(ctx))
	}
	a.log.Info().Str("part", name).AnErr("error", err).Msg("stopped")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
