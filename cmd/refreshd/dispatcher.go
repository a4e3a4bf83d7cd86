package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/scripts"
)

func dispatcherCommand(a *app) *cobra.Command {
	var loop loopFlags
	var config dispatcher.Config
	command := a.loopCommand("dispatcher", "Start what is due and end what is past its deadline", &loop,
		func(_ context.Context, store *scripts.Store, _ []string) (daemon, error) {
			return a.newDispatcher(store, &loop, config)
		})
	loop.bind(command.Flags())
	bindDispatcher(command.Flags(), &config)
	return command
}

// bindDispatcher binds the settings that only a dispatcher has.
func bindDispatcher(flags *pflag.FlagSet, config *dispatcher.Config) {
	flags.IntVar(&config.MaxQueued, "max-queued", 0, "start nothing while so many attempts wait for workers (default 1000)")
	flags.Var((*duration)(&config.FullTick), "full-tick", "sleep while so many wait (default 20ms)")
}

func (a *app) newDispatcher(store *scripts.Store, loop *loopFlags, config dispatcher.Config) (*dispatcher.Dispatcher, error) {
	config.Batch, config.Tick, config.Backoff = loop.batch, loop.tick, loop.backoff
	config.Log, config.Clock = &a.log, time.Now
	config.Observe = a.checks.Loop("dispatcher", loop.tick, false).Begin
	return dispatcher.New(store, config)
}
