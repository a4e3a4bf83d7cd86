package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/redisurl"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/ui/health"
	"github.com/refreshd/refreshd/internal/ui/metrics"
	"github.com/refreshd/refreshd/internal/ui/traces"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string // NAME=TEXT
	secrets        []string // names of variables that programs of a worker must not find

	log     zerolog.Logger
	checks  *health.Checks
	metrics *metrics.Metrics
	traces  *traces.Traces
	entered bool // the command itself has begun: later errors are not wrong usage

	// The settings of all commands. Each is a flag; settle says where else it may come from.
	redis    string // URL of Redis; "": defaultRedis, or the embedded one of up
	file     string // YAML with settings, by the names of the flags; "": none
	output   string // one of outputsOf the command; default table
	logLevel string // one of logLevels; default info
	connect  redis.ConnectOptions
	store    store.Config
	queues   queueNames // of store.Queue the first

	historyCap, journalCap, logCap int // 0: none, which is store.None

	by       string         // who wants a command; "": the user
	problems map[string]int // by kind, see printProblem
}

const defaultRedis = "redis://127.0.0.1:6379"

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "refreshd",
		Short: "Keep models fresh: refresh on a schedule, retry what fails, give up with a reason",
		Long: `refreshd starts a refresh attempt when a model is due, hands it to workers over two Redis lists, and when the
attempt fails decides when to try again.

Each flag can also be set by an environment variable, REFRESHD_ and its name in capitals (REFRESHD_MAX_QUEUED), and
by a line of the --config file (max-queued: 500). A flag goes before the environment, and that before the file.

Exit codes: 0 done, 1 failed, 2 wrong usage; 3 something differs, of apply --plan, import and shadow.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: a.prepare,
	}
	a.bindGlobals(root.PersistentFlags())
	root.SetFlagErrorFunc(plainFlagError)
	root.Version = readVersion().line()
	root.SetVersionTemplate("refreshd {{.Version}}\n")
	root.AddCommand(versionCommand(a))
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, build := range g.commands {
			command := build(a)
			command.GroupID = g.title
			root.AddCommand(command)
		}
	}
	documentRetry(root)
	addAliases(root)
	a.offerValues(root)
	return root
}

func (a *app) bindGlobals(flags *pflag.FlagSet) {
	flags.StringVar(&a.redis, "redis", "", "`URL` of Redis: redis, rediss, unix, redis-cluster or redis-sentinel (also REDIS_URL; default "+defaultRedis+")")
	a.queues.names = []string{store.DefaultQueue}
	flags.Var(&a.queues, "queue", "`NAME` of the queue, the prefix of its keys; daemons serve several: a,b or given several times")
	flags.StringVar(&a.file, "config", "", "YAML `FILE` with settings, by the names of the flags")
	flags.StringVarP(&a.output, "output", "o", outputTable, "`FORMAT` of what is printed: table or json; simulate and history also svg")
	flags.StringVar(&a.logLevel, "log-level", "info", "least `LEVEL` to log: "+strings.Join(logLevels, ", "))
	flags.StringVar(&a.connect.CAFile, "tls-ca", "", "PEM `FILE` of the authorities to trust instead of the system's")
	flags.StringVar(&a.connect.CertFile, "tls-cert", "", "PEM `FILE` of the certificate to show to Redis")
	flags.StringVar(&a.connect.KeyFile, "tls-key", "", "PEM `FILE` of the key of --tls-cert")
	flags.StringVar(&a.connect.ServerName, "tls-server-name", "", "`NAME` expected in the certificate of Redis")
	defaults := store.Config{}.WithDefaults()
	flags.IntVar(&a.historyCap, "history-cap", defaults.HistoryCap, "ended attempts to keep of each model; 0: none")
	flags.IntVar(&a.journalCap, "journal-cap", defaults.JournalCap, "transitions to keep in the journal, about; 0: none")
	flags.Var(count[int]{&a.store.MessageCap, "4096 to 67108864"}, "message-cap", "largest message to read, in bytes; larger ones are rejected (default 1 MiB)")
	flags.Var(count[int]{&a.store.RejectedCap, "at least 1"}, "rejected-cap", "unusable messages to keep (default 1000)")
	flags.IntVar(&a.logCap, "log-cap", defaults.LogCap, "logs of attempts to keep in the queue, of at most 64 KiB each; 0: none")
	flags.Var(count[int]{&a.store.OutboxCap, "at least 1"}, "outbox-cap", "entries of the outbox to keep, whoever reads them (default 100000)")
	flags.Var((*duration)(&a.store.OutboxKeep), "outbox-keep", "how long the outbox keeps an entry that somebody has not acknowledged (default 168h)")
}

// onScreen are the commands that somebody watches. Where nobody does, -o json makes lines for machines of all that they print.
var onScreen = map[string]bool{"up": true, "demo": true}

func (a *app) prepare(command *cobra.Command, _ []string) error {
	if err := a.settle(command); err != nil {
		return err
	}
	if err := oneOf("output", a.output, outputsOf(command)); err != nil {
		return err
	}
	if err := oneOf("log-level", a.logLevel, logLevels); err != nil {
		return err
	}
	a.log = newLogger(a.stderr, a.logLevel, isTerminal(a.stderr) || onScreen[command.Name()] && !a.json())
	redisLog.Store(&a.log)
	a.warnOfUnknownVariables(command.Root())
	a.entered = true
	if then, is := retried[command.CommandPath()]; is {
		command.SetContext(operate.WithRetry(command.Context(), operate.RetryFor, &a.log, then))
	}
	return nil
}

// connectTo makes the clients for an address. It dials nothing yet. The caller calls the returned function when it is done.
func (a *app) connectTo(address string) (*redis.Clients, func(), error) {
	a.connect.ClientName = "refreshd"
	clients, err := redis.Connect(address, a.connect)
	for _, queue := range a.queues.names {
		err = cmp.Or(err, a.configOf(queue).Validate())
	}
	if err != nil {
		return nil, nil, usageError{err}
	}
	return clients, func() {
		if err := clients.Close(); err != nil {
			a.log.Debug().Err(err).Msg("closing connections")
		}
	}, nil
}

// configOf returns the config of one of the queues.
func (a *app) configOf(queue string) store.Config {
	config := a.store
	config.Queue = queue
	config.Traces = a.traces != nil
	config.HistoryCap, config.JournalCap, config.LogCap = cmp.Or(a.historyCap, store.None), cmp.Or(a.journalCap, store.None), cmp.Or(a.logCap, store.None)
	return config.WithDefaults()
}

func (a *app) address() string { return cmp.Or(a.redis, defaultRedis) }

func (a *app) withClients(do func(*redis.Clients) error) error {
	if err := a.requireOneQueue(); err != nil {
		return err
	}
	clients, done, err := a.connectTo(a.address())
	if err != nil {
		return err
	}
	defer done()
	return do(clients)
}

// withOperator calls do with an operator of a queue that answers.
func (a *app) withOperator(ctx context.Context, do func(operate.Operator) error) error {
	by, err := a.wantedBy()
	if err != nil {
		return err
	}
	return a.withClients(func(clients *redis.Clients) error {
		queue, err := store.Open(ctx, clients, a.configOf(a.store.Queue))
		switch {
		case errors.Is(err, store.ErrUnread):
			return fmt.Errorf("%s: %w", redisurl.Redacted(a.address()), err)
		case err != nil:
			return usageError{err}
		}
		return do(a.operator(queue, by))
	})
}

// withStored is withOperator for commands that read stored models. It warns if nothing was ever stored in the queue.
func (a *app) withStored(ctx context.Context, do func(operate.Operator) error) error {
	return a.withOperator(ctx, func(o operate.Operator) error {
		if unused := operate.Unused(ctx, o); unused != "" {
			a.report(unused)
		}
		return do(o)
	})
}

func (a *app) operator(queue *store.Queue, by string) operate.Operator {
	host, _ := os.Hostname() // without one it is not named
	return operate.Operator{Queue: queue, By: by, From: strings.TrimSpace("command line " + host), Untold: a.warnOfUntold}
}

// warnOfUntold says that what is done is not kept.
func (a *app) warnOfUntold(key string, err error) {
	a.report(fmt.Sprintf("audit does not show what is done: %s: %v; refreshd acl prints users that may write it", key, err))
}

// wantedBy returns --by, or else the name of the user.
func (a *app) wantedBy() (string, error) {
	if a.by != "" {
		return operate.ReadBy(a.by)
	}
	if who, err := user.Current(); err == nil { // there is none in many containers
		return document.Shorten(who.Username, model.MaxBy), nil
	}
	return document.Shorten(a.getenv("USER"), model.MaxBy), nil
}

func (a *app) bindBy(flags *pflag.FlagSet) {
	flags.StringVar(&a.by, "by", "", "`NAME` of who wants it, for the journal (default your user's name)")
}

type ask func(ctx context.Context, o operate.Operator, args []string) error

// operates makes a command of an operator. The checks run before anything connects.
func (a *app) operates(use, short string, args cobra.PositionalArgs, do ask, checks ...func() error) *cobra.Command {
	return asking(use, short, args, a.withOperator, do, checks)
}

// onStored makes a command that reads stored models.
func (a *app) onStored(use, short string, args cobra.PositionalArgs, do ask, checks ...func() error) *cobra.Command {
	return asking(use, short, args, a.withStored, do, checks)
}

func asking(
	use, short string, args cobra.PositionalArgs, with func(context.Context, func(operate.Operator) error) error, do ask, checks []func() error,
) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(command *cobra.Command, args []string) error {
		for _, check := range checks {
			if err := check(); err != nil {
				return err
			}
		}
		return with(command.Context(), func(o operate.Operator) error { return do(operate.Acting(command.Context(), o), o, args) })
	}}
}

// plainFlagError names the wrong value of a flag without the words of its parser, or the known flag nearest to a mistyped one.
func plainFlagError(command *cobra.Command, err error) error {
	if args := command.Flags().Args(); command.HasSubCommands() && len(args) > 0 {
		err = cmp.Or(command.ValidateArgs(args), err) // the flag may be one of the command that was meant
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var known []string
		command.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, flag.Name) })
		if nearest := words.NearestWord(unknown.GetSpecifiedName(), known); nearest != "" {
			err = fmt.Errorf("%w; nearest: --%s", err, nearest)
		}
	}
	if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return refusedValue("--"+value.GetFlag().Name, value.GetFlag(), value.GetValue())
	}
	return usageError{err}
}

func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	names := redis.Map(commands, (*cobra.Command).Name)
	parent := &cobra.Command{Use: use, Short: short, Args: oneOfCommands(names...)}
	parent.RunE = func(*cobra.Command, []string) error {
		return usagef("%s: expected one of %s, found nothing", use, strings.Join(names, ", "))
	}
	parent.AddCommand(commands...)
	return parent
}

var groups = []struct {
	title    string
	commands builders
}{
	{"Run it", builders{demoCommand, upCommand, dispatcherCommand, pollerCommand, workerCommand, notifierCommand, dashboardCommand}},
	{"Models and policies", builders{modelCommand, historyCommand, explainCommand, policyCommand, applyCommand, scheduleCommand, simulateCommand}},
	{"Many models", builders{holdCommand, releaseCommand, calendarCommand, limitCommand, circuitCommand, bulkCommand, failuresCommand, suspectCommand, freshnessCommand, forecastCommand, levelCommand}},
	{"Look after it", builders{statsCommand, auditCommand, doctorCommand, rejectedCommand, undeliveredCommand, healthCommand, queueCommand, aclCommand, benchCommand}},
	{"Beside what you have", builders{adoptCommand, shadowCommand, conformanceCommand}},
}

type builders = []func(*app) *cobra.Command

const resumable = "; the same command goes on from there, and changes nothing of what is done"

// retried maps commands that change many models to the end of their error if Redis stays away. They wait for a Redis that stops answering. Empty:
// the command itself says how to go on.
var retried = map[string]string{
	"refreshd model put": resumable, "refreshd model import": resumable, "refreshd model run": "", "refreshd model rm": "", "refreshd model enable": "",
	"refreshd model disable": "", "refreshd failures run": "", "refreshd apply": resumable, "refreshd level": resumable, "refreshd hold": "",
	"refreshd policy put": resumable, "refreshd policy rm": resumable, "refreshd calendar put": resumable, "refreshd calendar rm": resumable,
}

func documentRetry(of *cobra.Command) {
	if _, is := retried[of.CommandPath()]; is {
		of.Long = cmp.Or(of.Long, of.Short+".") + `

A Redis that stops answering is asked again for two minutes, and nothing is done twice. After that the command says how
much is done, and how to go on. If it does not answer at the beginning, the command fails at once.`
	}
	for _, command := range of.Commands() {
		documentRetry(command)
	}
}
