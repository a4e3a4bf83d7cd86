package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/worker"
	"github.com/refreshd/refreshd/worker/handlers"
)

// workerFlags are the settings of a worker. Exactly one of exec, shell, http and fetch is given.
type workerFlags struct {
	exec, http, fetch string // a program to run, a URL to post to, a directory to download into
	shell             bool   // run the command of each payload

	allow     []string // with shell: beginnings of commands
	noLog     bool     // with exec
	killAfter duration // with exec: from SIGTERM to SIGKILL; default 2 s
	headers   []string // with http: "NAME: VALUE"
	asked     []string // with fetch: likewise

	download handlers.FetchOptions // with fetch
	pool     worker.Config
}

func (f *workerFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.exec, "exec", "", "run `PROGRAM` for each attempt, with the arguments that follow --; what it prints goes to stderr")
	flags.BoolVar(&f.shell, "shell", false, "DANGEROUS: run the text of the field command of each payload by sh -c; who may save a model of the queue may run anything as the user of this worker")
	flags.StringArrayVar(&f.allow, "shell-allow", nil, "with --shell: only commands that are `PREFIX`, or PREFIX and a space and plain words, may be given several times")
	flags.StringVar(&f.http, "http", "", "POST the payload of each attempt to `URL`")
	flags.StringVar(&f.fetch, "fetch", "", "download the input_url of each attempt into `DIR`")
	flags.BoolVar(&f.noLog, "no-log", false, "with --exec and --shell: do not send the end of what the program prints with the result, to be kept for a while")
	flags.Var(&f.killAfter, "kill-after", "with --exec and --shell: time to end after SIGTERM (default 2s)")
	flags.StringArrayVar(&f.headers, "http-header", nil, "with --http: `\"NAME: VALUE\"` to send, may be given several times")
	flags.Var(count[int64]{&f.download.MaxBytes, "at least 1"}, "max-bytes", "with --fetch: largest file to accept, in bytes (default 1 GiB)")
	flags.StringArrayVar(&f.download.AllowHosts, "allow-host", nil, "with --fetch: ask only `HOST`, or *.HOST for all names below it, may be given several times")
	flags.BoolVar(&f.download.AllowPrivate, "allow-private", false, "with --fetch: connect to this machine and to private networks too")
	flags.StringArrayVar(&f.asked, "fetch-header", nil, "with --fetch: `\"NAME: VALUE\"` to send to each address, but not on to another host, may be given several times; see --allow-host")
	flags.Var((*duration)(&f.download.Revalidate), "revalidate", "with --fetch: download the whole after so long, though the server says that nothing has changed (default 1w)")
	flags.StringSliceVar(&f.download.IgnoreParams, "fetch-ignore", nil, "with --fetch: `PARAMETERS` of a query, such as token,sig, that may be new each time without making it another feed")
	flags.Var((*duration)(&f.download.Stall), "stall", "with --fetch: give up when the server does not answer, or then sends less than --least-rate, for so long (default 1m)")
	flags.Var(count[int64]{&f.download.LeastRate, "at least 1"}, "least-rate", "with --fetch: bytes a second to expect of a body, over each --stall (default 1024)")
	flags.Var(count[int]{&f.pool.Concurrency, "1 to 10000"}, "concurrency", "attempts to work on at the same time (default 4)")
	flags.StringVar(&f.pool.Name, "worker-name", "", "`NAME` to show to people (default the name of the host)")
	flags.Var((*duration)(&f.pool.FenceEvery), "fence-every", "how often to ask whether the work still counts (default 1s)")
	flags.Var((*duration)(&f.pool.StatusEvery), "status-every", "shortest time between two statuses of one attempt (default 250ms)")
	flags.Var((*duration)(&f.pool.SignsEvery), "signs-every", "announce signs of life for silent_after, and give one at most so often: with --exec and --shell for output, with --fetch for what comes (default none)")
	flags.Var(count[int]{&f.pool.PushBatch, "1 to 10000"}, "push-batch", "messages to push at once (default 500)")
	flags.Var((*duration)(&f.pool.Linger), "linger", "how long to wait for work that does not stop (default 5s)")
	flags.Var((*duration)(&f.pool.FlushTimeout), "flush-timeout", "how long to try to push what is left at the end (default 3s)")
	flags.Var((*duration)(&f.pool.MaxBackoff), "max-backoff", "longest pause after an error of Redis (default 1s)")
}

// workerGrace converts --grace: in the config of a worker 0 is the default.
func (f *loopFlags) workerGrace() time.Duration { return cmp.Or(f.grace, -1) }

func (a *app) prepareWorker(ctx context.Context, loop *loopFlags, own *workerFlags, args []string) (prepared, error) {
	handlers := make(map[string]worker.Handler, len(a.queues.names))
	for _, queue := range a.queues.names {
		handler, err := own.handler(queue, a.queues.several(), a.secrets, args)
		if err != nil {
			return nil, err
		}
		handlers[queue] = handler
	}
	config := own.pool
	config.Log, config.Clock, config.Hurry = &a.log, time.Now, hurryOf(ctx)
	config.Grace, config.Backoff = loop.workerGrace(), loop.backoff
	if err := config.WithDefaults().Validate(); err != nil {
		return nil, err
	}
	if own.exec != "" || own.shell {
		if err := shield(); err != nil {
			return nil, err
		}
	}
	return func(queue *store.Queue) (daemon, error) {
		config := config
		config.Log = a.logOf(queue.Name)
		if a.traces != nil {
			config.Trace = a.traces.Run(queue.Name)
		}
		queues, drop := a.checked(queue, config)
		pool, err := worker.NewForParts(queues, a.metrics.Work(queue.Name, handlers[queue.Name]), config)
		if err == nil {
			a.metrics.Pool(queue.Name, pool, config.WithDefaults().Concurrency)
		}
		return &workerPool{pool, drop}, err
	}, nil
}

// workerPool leaves the health checks when it ends: an operator may stop it alone.
type workerPool struct {
	*worker.Pool
	drop func()
}

func (p *workerPool) Run(ctx context.Context) error {
	defer p.drop()
	return p.Pool.Run(ctx)
}

// handler returns the handler of --exec, --shell, --http or --fetch; exactly one must be given. Each of several queues fetches into its own directory,
// as their uids may be equal. Programs do not find secret variables.
func (f *workerFlags) handler(queue string, several bool, secrets, args []string) (worker.Handler, error) {
	var given []string
	for _, flag := range [][2]string{{"--exec", f.exec}, {"--shell", mark(f.shell, "on")}, {"--http", f.http}, {"--fetch", f.fetch}} {
		if flag[1] != "" {
			given = append(given, flag[0])
		}
	}
	if len(given) != 1 {
		found := cmp.Or(strings.Join(given, " and "), "none")
		return nil, errors.New("worker: expected one of --exec PROGRAM, --shell, --http URL and --fetch DIR, found " + found)
	}
	if f.exec == "" && len(args) > 0 {
		return nil, errors.New("worker: expected arguments only with --exec, found " + strings.Join(args, " "))
	}
	if !f.shell && len(f.allow) > 0 {
		return nil, errors.New("worker: expected --shell-allow only with --shell, found it without")
	}
	programs := handlers.ExecOptions{
		Queue: queue, Secrets: secrets, KillAfter: time.Duration(f.killAfter), Stdout: os.Stderr, Stderr: os.Stderr, Log: !f.noLog,
	}
	switch {
	case f.exec != "":
		return handlers.Exec(append([]string{f.exec}, args...), programs)
	case f.shell:
		return handlers.Shell(f.allow, programs)
	case f.http != "":
		header, err := readHeader("--http-header", f.headers)
		if err != nil {
			return nil, err
		}
		header.Set("Refreshd-Queue", queue)
		return handlers.HTTP(f.http, handlers.HTTPOptions{Header: header})
	case several && strings.HasPrefix(queue, "."):
		return nil, fmt.Errorf("--fetch: expected several queues whose names do not begin with a dot, as each gets a directory, found %q", queue)
	}
	dir, options := f.fetch, f.download
	if several {
		dir = filepath.Join(dir, queue)
	}
	header, err := readHeader("--fetch-header", f.asked)
	if err != nil {
		return nil, err
	}
	options.Header, options.UserAgent = header, "refreshd/"+readVersion().Version+" (+https://github.com/refreshd/refreshd)"
	return handlers.Fetch(dir, options)
}

// readHeader reads lines "NAME: VALUE". Errors do not repeat them: headers hold secrets.
func readHeader(flag string, lines []string) (http.Header, error) {
	header := http.Header{}
	for i, line := range lines {
		name, value, found := strings.Cut(line, ":")
		if !found || !httpName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			return nil, fmt.Errorf(`%s: expected one line "NAME: VALUE", found something else as number %d`, flag, i+1)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	return header, nil
}

var httpName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func workerCommand(a *app) *cobra.Command {
	var own workerFlags
	command := a.loopCommand("worker", "Refresh models: run a program, call a web service, or download", (*loopFlags).bindLife,
		func(ctx context.Context, loop *loopFlags, args []string) (prepared, error) {
			return a.prepareWorker(ctx, loop, &own, args)
		})
	command.Use = "worker --exec PROGRAM [-- ARGUMENT...] | --shell | --http URL | --fetch DIR"
	command.Args = cobra.ArbitraryArgs
	own.bind(command.Flags())
	bindWorkerLease(command.Flags(), &own.pool.Lease)
	command.Long = `Refresh models: run a program, call a web service, or download. refreshd worker ls shows the workers of a queue, refreshd worker quiet, resume and stop ask
one, or all of a HOST or of a process HOST:PID. They obey with their next heartbeat, within a second.

--shell runs what refreshd import crontab has written: {"command": "…"} by sh -c, with an empty input. It is dangerous: whoever may save a model of the queue
may run any command as the user of the worker. Bound it by that user, by the Redis users of refreshd acl, and by --shell-allow: a command is then refused
unless it is a PREFIX, or a PREFIX followed by a space and words of letters, digits and _./:=,@%+- alone, which a shell only hands on. Other commands are
failures.`
	command.AddCommand(
		lists(a, "List the workers that send heartbeats, with what each has in hand", func(o operate.Operator, ctx context.Context) ([]*operate.WorkerPool, error) {
			return operate.ReadPools(ctx, o.Queue, "")
		}, poolHeader, poolRow),
		a.orderCommand(store.PoolQuiet, "quiet NAME", "Let a worker take no new attempts, and finish what it has",
			"A quiet worker goes on with its heartbeats, until refreshd worker resume or stop. So it can be watched until it has nothing in hand."),
		a.orderCommand("", "resume NAME", "Let a quiet worker take attempts again", ""),
		a.orderCommand(store.PoolStop, "stop NAME", "Stop a worker as SIGTERM does",
			`It finishes what it has within its --grace, hands back the rest, uncounted, and ends with exit code 0. systemd with Restart=always and Kubernetes start it anew:
there, scale it down instead. A process that serves several queues has a worker for each, and ends with the last. Of refreshd up only the worker ends.`))
	return command
}

var poolHeader = []any{"WORKER", "STATE", "IN HAND", "SINCE", "LAST HEARTBEAT", "ASKED BY"}

func poolRow(p **operate.WorkerPool) []any {
	return []any{(*p).Name, (*p).State(), (*p).Taken, (*p).Since, (*p).LastSignAt, (*p).OrderBy}
}

func (a *app) orderCommand(verb, use, short, long string) *cobra.Command {
	command := a.operates(use, short, cobra.ExactArgs(1), func(ctx context.Context, o operate.Operator, names []string) error {
		return table(a, poolHeader, poolRow)(operate.OrderPools(ctx, o, verb, names[0]))
	})
	command.Long = long
	a.bindBy(command.Flags())
	return command
}
