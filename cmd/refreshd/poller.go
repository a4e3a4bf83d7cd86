package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/scripts"
)

// pollerFlags are the settings that only a poller has.
type pollerFlags struct {
	owner string
	lease duration
}

func (f *pollerFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.owner, "owner", "", "`NAME` of this poller, shared with no other (default random)")
	flags.Var(&f.lease, "lease", "how long a poller may be silent before others take over its messages (default 10s)")
}

func (f *pollerFlags) build(loop *loopFlags, store poller.Store, a *app) (*poller.Poller, error) {
	return poller.New(store, poller.Config{
		Owner: f.owner, Batch: loop.batch, Log: &a.log, Clock: time.Now,
		Lease: time.Duration(f.lease), Tick: time.Duration(loop.tick), Backoff: time.Duration(loop.backoff),
		Observe: a.checks.Loop("poller", time.Duration(loop.tick), false).Begin,
	})
}

func pollerCommand(a *app) *cobra.Command {
	var loop loopFlags
	var own pollerFlags
	command := a.loopCommand("poller", "Apply the results of workers and the messages of applications", &loop,
		func(_ context.Context, store *scripts.Store, _ []string) (daemon, error) {
			return own.build(&loop, store, a)
		})
	loop.bind(command.Flags())
	own.bind(command.Flags())
	return command
}
