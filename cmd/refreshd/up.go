package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/embedded"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redisurl"
	"github.com/refreshd/refreshd/internal/store"
)

type upFlags struct {
	loop       loopFlags
	dispatcher dispatcher.Config
	poller     poller.Config
	worker     workerFlags
	notifier   notifierFlags // without routes there is none
	models     string        // file with models to save at the start; "": none
	port       int           // of the embedded Redis; 0: any that is free
	pages      string        // address of the dashboard; "" or off: none
}

func upCommand(a *app) *cobra.Command {
	var flags upFlags
	command := &cobra.Command{
		Use:   "up [--models FILE] [--exec PROGRAM [-- ARGUMENT...] | --shell | --http URL | --fetch DIR]",
		Short: "Run all daemons in one process, with a Redis of its own if none is given",
		Long: `Run a dispatcher, a poller, a worker if --exec, --shell, --http or --fetch is given, and a notifier if --routes is, in one process.

Without --redis it brings a Redis along, on the loopback interface and in memory: for development, because everything is
forgotten at the end. The models of --models are saved at the start; one with an error is named, and the others run.

It logs text for people; -o json makes lines for machines of all that it prints.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			if a.redis != "" && flags.port != 0 {
				own := a.origin(command.Flags().Lookup("redis"))
				return usagef("--port: expected no %s beside it, as it is the port of the embedded Redis, found %s", own, redisurl.Redacted(a.redis))
			}
			return a.up(command.Context(), &flags, args)
		},
	}
	set := command.Flags()
	flags.loop.bind(set)
	bindDispatcher(set, &flags.dispatcher)
	bindPoller(set, &flags.poller)
	flags.worker.bind(set)
	flags.notifier.bind(set)
	set.StringVar(&flags.models, "models", "", "save the models of `FILE` at the start")
	set.IntVar(&flags.port, "port", 0, "`PORT` of the embedded Redis on 127.0.0.1 (default any that is free)")
	bindPages(set, &flags.pages)
	return command
}

func (a *app) up(ctx context.Context, flags *upFlags, args []string) error {
	address := a.redis
	if flags.models != "" && a.queues.several() {
		return usagef("--models: expected one --queue, in which they are saved, found %s", &a.queues)
	}
	if address == "" {
		server, err := embedded.Start(flags.port)
		if err != nil {
			return err
		}
		defer server.Close()
		address = server.URL()
	}
	flags.worker.pool.Lease = flags.dispatcher.WorkerLease
	build, err := a.prepareDaemons(ctx, flags, args)
	if err != nil {
		return usageError{err}
	}
	pages := a.pagesAt(flags.pages)
	defer pages.close()
	return a.withLife(ctx, "up", address, &flags.loop, func(ctx context.Context, queue *store.Queue) error {
		daemons, err := build(queue)
		if err != nil {
			return usageError{err}
		}
		if serves(flags.pages) {
			if daemons.dashboard, err = pages.show(queue); err != nil {
				return fmt.Errorf("--dashboard: %w", err)
			}
		}
		if a.redis == "" {
			if err := a.hint(address, pages.url(), queue.Parts[0].Keys); err != nil {
				return err
			}
		}
		if err := a.preflight(ctx, queue, &flags.loop); err != nil {
			return err
		}
		if flags.models != "" {
			// A refused model was reported, and does not stop the others.
			by, err := a.wantedBy()
			if err == nil {
				o := a.operator(queue, by)
				err = a.put(operate.WithRetry(operate.Acting(ctx, o), operate.RetryFor, &a.log, ""), o, flags.models, definitions.FormatAuto, false)
			}
			if err != nil && !errors.Is(err, errReported) {
				return err
			}
		}
		return daemons.run(ctx)
	})
}

// hint prints how to look into the embedded Redis, and the address of the dashboard.
func (a *app) hint(address, browser string, keys store.Keys) error {
	port := address[strings.LastIndex(address, ":")+1:]
	if a.json() {
		return print.JSONLine(a.stdout, map[string]string{"redis": address, "port": port, "queue": keys.Queue, "dashboard": browser})
	}
	_, err := fmt.Fprintf(a.stdout, `embedded Redis on 127.0.0.1:%s, in memory, gone when this ends. To look inside:
  redis-cli -p %[1]s HGETALL %[2]sUID
  redis-cli -p %[1]s LRANGE %[3]s 0 -1
  redis-cli -p %[1]s XREVRANGE %[4]s + - COUNT 10
  refreshd --redis %[5]s --queue '%[6]s' model ls
`, port, keys.Model(""), keys.Input, keys.Journal, address, keys.Queue)
	return err
}

type daemons struct {
	app        *app
	queue      *store.Queue
	dispatcher daemon
	worker     daemon // nil: other processes work
	dashboard  daemon // nil: none
	notifier   daemon
	pollers    parts[*poller.Poller]
	flags      *upFlags
}

// prepareDaemons checks the flags of all daemons, and returns a function that builds them.
func (a *app) prepareDaemons(ctx context.Context, flags *upFlags, args []string) (func(*store.Queue) (*daemons, error), error) {
	if flags.poller.Owner == "" {
		flags.poller.Owner = store.NewOwner(time.Now)
	}
	dispatcher, err := a.prepareDispatcher(&flags.loop, flags.dispatcher)
	if err != nil {
		return nil, err
	}
	notifier, worker := prepared(none), prepared(none)
	if flags.notifier.routes != "" {
		if notifier, err = a.prepareNotifier(&flags.loop, &flags.notifier); err != nil {
			return nil, err
		}
	}
	// After the notifier, because programs of the worker must not find its secrets.
	if w := &flags.worker; w.shell || w.exec+w.http+w.fetch != "" || len(args) > 0 {
		if worker, err = a.prepareWorker(ctx, &flags.loop, w, args); err != nil {
			return nil, err
		}
	}
	pollers, err := a.preparePollers(&flags.loop, flags.poller)
	return func(queue *store.Queue) (*daemons, error) {
		d := &daemons{app: a, queue: queue, flags: flags}
		var errs [4]error
		d.dispatcher, errs[0] = dispatcher(queue)
		d.worker, errs[1] = worker(queue)
		d.notifier, errs[2] = notifier(queue)
		d.pollers, errs[3] = pollers(queue)
		return d, cmp.Or(errs[:]...)
	}, err
}

func none(*store.Queue) (daemon, error) { return nil, nil }

// run runs all daemons until ctx ends, and stops them in three steps. The dispatcher ends first, so that nothing starts without a worker, then the
// worker. The poller still applies the attempts that the worker hands back; otherwise these would wait for their deadlines.
func (d *daemons) run(ctx context.Context) error {
	begin := func(ctx context.Context, name string, loop daemon, grace time.Duration) <-chan error {
		ended := make(chan error, 1)
		if loop == nil {
			ended <- nil
			return ended
		}
		go func() { ended <- d.app.runDaemon(ctx, name, d.queue, loop, grace) }()
		return ended
	}
	after, grace := context.WithoutCancel(ctx), d.flags.loop.grace
	notifying, stopNotifying := context.WithCancel(after)
	defer stopNotifying()
	notified := begin(notifying, "notifier", d.notifier, grace)
	polling, stopPolling := context.WithCancel(after)
	defer stopPolling()
	polled := begin(polling, "poller", d.pollers, grace)
	working, stopWorking := context.WithCancel(after)
	defer stopWorking()
	worked := begin(working, "worker", d.worker, grace)
	served := begin(ctx, "dashboard", d.dashboard, leastStop)
	err := d.app.runDaemon(ctx, "dispatcher", d.queue, d.dispatcher, leastStop) // the grace is the worker's, which waits for it
	stopWorking()
	err = errors.Join(err, <-worked)
	stopPolling()
	err = errors.Join(err, <-polled, <-served, d.drain(ctx))
	stopNotifying()
	return errors.Join(err, <-notified)
}

// drainTime bounds how long up applies the last messages at its end, including messages of other workers.
const drainTime = 5 * time.Second

// drain applies the messages that arrived while the pollers stopped, in all parts concurrently. The rest stays in Redis.
func (d *daemons) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	return sideBySide(len(d.pollers), func(i int) error {
		for ctx.Err() == nil {
			round, err := d.pollers[i].RunOnce(ctx)
			if err != nil {
				return fmt.Errorf("apply the last messages: %w", err)
			}
			if round.Claimed == round.Waiting {
				break
			}
		}
		return d.queue.Parts[i].Resign(context.WithoutCancel(ctx), d.flags.poller.Owner)
	})
}
