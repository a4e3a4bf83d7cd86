package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/scripts"
)

func pollerCommand(a *app) *cobra.Command {
	var loop loopFlags
	var config poller.Config
	command := a.loopCommand("poller", "Apply the results of workers and the messages of applications", &loop,
		func(_ context.Context, store *scripts.Store, _ []string) (daemon, error) {
			return a.newPoller(store, &loop, config)
		})
	loop.bind(command.Flags())
	bindPoller(command.Flags(), &config)
	return command
}

// bindPoller binds the settings that only a poller has.
func bindPoller(flags *pflag.FlagSet, config *poller.Config) {
	flags.StringVar(&config.Owner, "owner", "", "`NAME` of this poller, shared with no other (default random)")
	flags.Var((*duration)(&config.Lease), "lease", "how long a poller may go without a heartbeat before others take over its messages (default 10s)")
}

func (a *app) newPoller(store poller.Store, loop *loopFlags, config poller.Config) (*poller.Poller, error) {
	config.Batch, config.Tick, config.Backoff = loop.batch, loop.tick, loop.backoff
	config.Log, config.Clock = &a.log, time.Now
	config.Observe = a.checks.Loop("poller", loop.tick, false).Begin
	return poller.New(store, config)
}
