package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/scripts"
)

// dispatcherFlags are the settings that only a dispatcher has.
type dispatcherFlags struct {
	maxQueued int
	fullTick  duration
}

func (f *dispatcherFlags) bind(flags *pflag.FlagSet) {
	flags.IntVar(&f.maxQueued, "max-queued", 0, "start nothing while so many attempts wait for workers (default 1000)")
	flags.Var(&f.fullTick, "full-tick", "sleep while so many wait (default 20ms)")
}

func (f *dispatcherFlags) build(loop *loopFlags, store *scripts.Store, a *app) (*dispatcher.Dispatcher, error) {
	return dispatcher.New(store, dispatcher.Config{
		Batch: loop.batch, MaxQueued: f.maxQueued, Log: &a.log, Clock: time.Now,
		Tick: time.Duration(loop.tick), FullTick: time.Duration(f.fullTick), Backoff: time.Duration(loop.backoff),
		Observe: a.checks.Loop("dispatcher", time.Duration(loop.tick), false).Begin,
	})
}

func dispatcherCommand(a *app) *cobra.Command {
	var loop loopFlags
	var own dispatcherFlags
	command := a.loopCommand("dispatcher", "Start what is due and end what is past its deadline", &loop,
		func(_ context.Context, store *scripts.Store, _ []string) (daemon, error) {
			return own.build(&loop, store, a)
		})
	loop.bind(command.Flags())
	own.bind(command.Flags())
	return command
}
