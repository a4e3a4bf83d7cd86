package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/embedded"
	"github.com/refreshd/refreshd/internal/redisurl"
	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/scripts"
)

// upFlags are the settings of all daemons in one process.
type upFlags struct {
	loop       loopFlags
	dispatcher dispatcherFlags
	poller     pollerFlags
	worker     workerFlags
	models     string
	port       int
}

func upCommand(a *app) *cobra.Command {
	var flags upFlags
	command := &cobra.Command{
		Use:   "up [--models FILE] [--exec PROGRAM [-- ARGUMENT...] | --http URL | --fetch DIR]",
		Short: "Run all daemons in one process, with a Redis of its own if none is given",
		Long: `Run a dispatcher, a poller and, if --exec, --http or --fetch is given, a worker in one process.

Without --redis it brings a Redis along, on the loopback interface and in memory: for development, because everything is
forgotten at the end. The models of --models are saved at the start; one with an error is named, and the others run.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := flags.loop.lifetime(command.Context())
			defer cancel()
			return a.up(ctx, &flags, args)
		},
	}
	set := command.Flags()
	flags.loop.bind(set)
	flags.dispatcher.bind(set)
	flags.poller.bind(set)
	flags.worker.bind(set)
	set.StringVar(&flags.models, "models", "", "save the models of `FILE` at the start")
	set.IntVar(&flags.port, "port", 0, "`PORT` of the embedded Redis on 127.0.0.1 (default any that is free)")
	return command
}

func (a *app) up(ctx context.Context, flags *upFlags, args []string) error {
	address := a.redis
	if address != "" && flags.port != 0 {
		return usagef("--port: expected no --redis beside it, as it is the port of the embedded one, found %s", redisurl.Redacted(address))
	}
	if address == "" {
		server, err := embedded.Start(flags.port)
		if err != nil {
			return err
		}
		defer server.Close()
		address = server.URL()
	}
	store, done, err := a.open(address)
	if err != nil {
		return err
	}
	defer done()
	closeHealth, err := a.openHealth(ctx, &flags.loop.health)
	if err != nil {
		return err
	}
	defer closeHealth()
	crew, err := a.newCrew(ctx, flags, store, args)
	if err != nil {
		return usageError{err}
	}
	if a.redis == "" {
		if err := a.hint(address, store.Keys); err != nil {
			return err
		}
	}
	a.greet(ctx, "up", store, address)
	if err := a.checkSurroundings(ctx, store, &flags.loop); err != nil {
		return err
	}
	if err := a.putAtStart(ctx, store, flags.models); err != nil {
		return err
	}
	return crew.run(ctx)
}

// hint tells how to look into the embedded Redis.
func (a *app) hint(address string, keys scripts.Keys) error {
	port := address[strings.LastIndex(address, ":")+1:]
	if a.json() {
		return printJSONLine(a.stdout, map[string]string{"redis": address, "port": port, "queue": keys.Queue()})
	}
	_, err := fmt.Fprintf(a.stdout, `embedded Redis on 127.0.0.1:%s, in memory, gone when this ends. To look inside:
  redis-cli -p %[1]s HGETALL %[2]sUID
  redis-cli -p %[1]s LRANGE %[3]s 0 -1
  redis-cli -p %[1]s XREVRANGE %[4]s + - COUNT 10
  refreshd --redis %[5]s --queue '%[6]s' model ls
`, port, keys.Model(""), keys.Input(), keys.Journal(), address, keys.Queue())
	return err
}

// putAtStart saves the models of a file. One that is refused has been named, and keeps none of the others from running.
func (a *app) putAtStart(ctx context.Context, store *scripts.Store, path string) error {
	if path == "" {
		return nil
	}
	err := a.put(ctx, store, path, formatAuto)
	if errors.Is(err, errReported) {
		return nil
	}
	return err
}

// crew is all daemons of one process.
type crew struct {
	app     *app
	store   *scripts.Store
	makers  map[string]daemon // they make messages for the poller: dispatcher and worker
	poller  *poller.Poller
	pollers string // the name of the poller
	grace   time.Duration
}

func (a *app) newCrew(ctx context.Context, flags *upFlags, store *scripts.Store, args []string) (*crew, error) {
	if flags.poller.owner == "" {
		flags.poller.owner = strings.ToLower(rand.Text())
	}
	c := &crew{app: a, store: store, makers: make(map[string]daemon), pollers: flags.poller.owner, grace: time.Duration(flags.loop.grace)}
	dispatcher, err := flags.dispatcher.build(&flags.loop, store, a)
	if err != nil {
		return nil, err
	}
	c.makers["dispatcher"] = dispatcher
	if c.poller, err = flags.poller.build(&flags.loop, store, a); err != nil {
		return nil, err
	}
	if !flags.worker.wanted() && len(args) == 0 {
		return c, nil
	}
	worker, err := flags.worker.build(ctx, &flags.loop, store, args, a)
	if err != nil {
		return nil, err
	}
	c.makers["worker"] = worker
	return c, nil
}

// run runs all daemons until ctx ends, and stops them in two steps. Dispatcher and worker end first, and the poller goes on
// meanwhile: a worker that has to stop hands its attempts back as messages, and whoever applies them must still be there, or
// these models would wait for their deadlines.
func (c *crew) run(ctx context.Context) error {
	polling, stopPolling := context.WithCancel(context.WithoutCancel(ctx))
	defer stopPolling()
	polled := make(chan error, 1)
	go func() { polled <- c.app.runDaemon(polling, "poller", c.poller, c.grace) }()
	made := c.runMakers(ctx)
	stopPolling()
	return errors.Join(made, <-polled, c.drain(ctx))
}

func (c *crew) runMakers(ctx context.Context) error {
	var running sync.WaitGroup
	errs := make(chan error, len(c.makers))
	for name, maker := range c.makers {
		running.Go(func() { errs <- c.app.runDaemon(ctx, name, maker, c.grace) })
	}
	running.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// drainTime bounds how long up applies at its end what workers, also those of other processes, say meanwhile.
const drainTime = 5 * time.Second

// drain applies what was said while the poller stopped. What is left stands in Redis for the next poller.
func (c *crew) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	for ctx.Err() == nil {
		round, err := c.poller.RunOnce(ctx)
		if err != nil {
			return fmt.Errorf("apply the last messages: %w", err)
		}
		if round.Claimed == 0 {
			break
		}
	}
	return c.store.Resign(context.WithoutCancel(ctx), c.pollers)
}
