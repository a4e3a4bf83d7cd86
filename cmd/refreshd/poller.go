package main

import (
	"time"

	"github.com/rs/zerolog"
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

func (f *pollerFlags) build(loop *loopFlags, store poller.Store, log *zerolog.Logger) (*poller.Poller, error) {
	return poller.New(store, poller.Config{
		Owner: f.owner, Batch: loop.batch, Log: log,
		Lease: time.Duration(f.lease), Tick: time.Duration(loop.tick), Backoff: time.Duration(loop.backoff),
	})
}

func pollerCommand(a *app) *cobra.Command {
	var loop loopFlags
	var own pollerFlags
	command := a.loopCommand("poller", "Apply the results of workers and the messages of applications", &loop,
		func(store *scripts.Store, _ []string, log *zerolog.Logger) (daemon, error) {
			return own.build(&loop, store, log)
		})
	loop.bind(command.Flags())
	own.bind(command.Flags())
	return command
}
