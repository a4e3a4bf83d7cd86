package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/embedded"
	"github.com/refreshd/refreshd/internal/lab/bench"
	"github.com/refreshd/refreshd/internal/lab/conformance"
	"github.com/refreshd/refreshd/internal/lab/demo"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

func demoCommand(a *app) *cobra.Command {
	var life duration
	var port int
	var listen string
	command := &cobra.Command{
		Use:   "demo [--for 20s] [--port PORT]",
		Short: "Watch refreshes succeed, fail, retry, time out, give up and recover, with nothing to install",
		Long: `Run everything in one process and watch it: a Redis in memory, a web server whose feeds behave like the world, and the
real dispatcher, poller and workers. Both servers listen on the loopback interface only. Hours are seconds.

The dashboard shows the same in a browser, at the address that is printed first.

It prints one line for each thing that happens. With --for it fails when the audience did not see everything; all of it
takes about ten seconds. Another Redis, as in --redis, is never touched.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := a.requireOneQueue(); err != nil {
				return err
			}
			config := demo.Config{Out: a.stdout, For: time.Duration(life), Port: port, Queue: a.store.Queue, JSON: a.json()}
			config.Log = new(a.log.Level(max(zerolog.ErrorLevel, a.log.GetLevel()))) // the lines already show the warnings of the daemons
			if serves(listen) {
				config.Dashboard = func(queue *store.Queue) (func(context.Context) error, string, error) {
					at := a.pagesAt(listen)
					if _, err := at.show(queue); err != nil {
						return nil, "", err
					}
					return at.open.Run, at.open.URL(), nil
				}
			}
			return demo.Run(command.Context(), config)
		},
	}
	command.Flags().Var(&life, "for", "how long to run, and then end with a summary (default until Ctrl-C)")
	command.Flags().IntVar(&port, "port", 0, "`PORT` of the embedded Redis on 127.0.0.1 (default any that is free)")
	bindPages(command.Flags(), &listen)
	return command
}

func conformanceCommand(a *app) *cobra.Command {
	config := conformance.Config{Clock: time.Now}
	command := &cobra.Command{
		Use:   "conformance [--scenario NAME] -- PROGRAM [ARGUMENT...]",
		Short: "Play the server against a worker of your own, and show what it does right",
		Long: `Start a worker of your own again and again, and play the server: attempts that succeed and fail, that are superseded while it
works, that come twice, that cannot be read, that take too long; many at once; a Redis that is gone, or refuses writes (OOM, READONLY, BUSY
and the like), for a moment; SIGTERM.

The worker finds Redis in REDIS_URL, its queue in REFRESHD_QUEUE, and in REFRESHD_CONCURRENCY how many attempts to work on at the
same time. The payload of each model says what to do: clients/README.md has the list, and clients/ a worker for it in each language.

Without --redis it brings a Redis along. The exit code is 0 if all that a worker must do holds.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			config.Command, config.Redis, config.Environ, config.Stderr = args, a.redis, a.environ, a.stderr
			config.Log = new(a.log.Level(max(zerolog.ErrorLevel, a.log.GetLevel()))) // a scenario goes wrong on purpose
			if err := config.WithDefaults().Validate(); err != nil {
				return usageError{err}
			}
			began := time.Now()
			report, err := conformance.Run(command.Context(), config)
			show := func(report *conformance.Report) error { return a.showConformance(report, time.Since(began)) }
			return cmp.Or(result(a, show)(report, err), reported(!report.Holds))
		},
	}
	set := command.Flags()
	set.StringArrayVar(&config.Scenarios, "scenario", nil, "play only the scenario `NAME`, may be given several times")
	set.Var(count[int]{&config.Flood, "1 to 100000"}, "flood", "attempts of the scenario flood (default 200)")
	set.Var((*duration)(&config.Patience), "patience", "how long to wait for each thing that has to happen (default 10s)")
	return command
}

func (a *app) showConformance(report *conformance.Report, took time.Duration) error {
	t := a.newTable("SCENARIO", "", "", "CHECK")
	holding := 0
	for _, c := range report.Checks {
		verdict, text := "ok", c.Text
		if c.Holds {
			holding++
		} else {
			verdict, text = "FAILS", c.Text+" (found: "+c.Found+")"
		}
		t.Row(c.Scenario, string(c.Level), verdict, text)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if cost := report.Cost; cost != nil {
		fmt.Fprintf(a.stdout, "\nan attempt costs %.1f commands in %.1f round trips; %d attempts ran at %.0f a second\n",
			cost.Commands, cost.RoundTrips, cost.Attempts, cost.PerSecond)
	}
	words := map[bool]string{true: "a worker of refreshd", false: "not yet a worker of refreshd: something that it must do fails"}[report.Holds]
	fmt.Fprintf(a.stdout, "%s of %d checks hold, in %.1f s: %s\n", strconv.Itoa(holding), len(report.Checks), took.Seconds(), words)
	return nil
}

type benchFlags struct {
	plan        bench.Plan
	dispatchers int
	pollers     int
	beside      bool
}

func benchCommand(a *app) *cobra.Command {
	var flags benchFlags
	command := &cobra.Command{
		Use: "bench", Short: "Measure how many cycles a second a Redis can do, what a cycle costs, and how late it is", Args: cobra.NoArgs,
		Long: `Measure a Redis with models, dispatchers and pollers of their own, and workers that only pop and push: how many cycles a
second it can do, from the start of an attempt to the model that waits again; what a cycle costs Redis and the daemons;
what a model takes in memory; and how late attempts start and results are applied when one comes each millisecond.

The queue of the measurement is named like --queue with -bench behind it, has one part, however many --queue has, and is
removed at the end: to Redis each part of a queue is a queue. Nothing else may use the Redis meanwhile: what else it does
is measured too. Without --redis it runs on an embedded one, which shows how a report looks and measures nothing.`,
		RunE: func(command *cobra.Command, _ []string) error { return a.bench(command, &flags) },
	}
	set := command.Flags()
	set.IntVar(&flags.plan.Models, "models", 20_000, "`N` models, all due at once")
	set.Var((*duration)(&flags.plan.Duration), "duration", "how long to make all models due again and again (default once)")
	set.IntVar(&flags.plan.Workers, "workers", 1, "`N` connections that pop up to 500 attempts at once, and push as many results")
	set.IntVar(&flags.plan.Paced, "paced", 2_000, "`N` models that become due one each millisecond; 0: lateness is not measured")
	set.IntVar(&flags.dispatchers, "dispatchers", 1, "`N` dispatchers, each a process")
	set.IntVar(&flags.pollers, "pollers", 1, "`N` pollers, each a process")
	set.BoolVar(&flags.beside, "beside-data", false, "measure a Redis that holds other data; they stay as they are")
	return command
}

func (a *app) bench(command *cobra.Command, flags *benchFlags) error {
	if err := a.requireOneQueue(); err != nil {
		return err
	}
	for name, count := range map[string]int{
		"models": flags.plan.Models, "workers": flags.plan.Workers, "dispatchers": flags.dispatchers, "pollers": flags.pollers, "paced": flags.plan.Paced + 1,
	} {
		if count < 1 {
			return usagef("--%s: expected at least 1, found %d", name, count)
		}
	}
	if a.redis == "" {
		server, err := embedded.Start(0)
		if err != nil {
			return err
		}
		defer server.Close()
		a.redis = server.URL()
		a.report("no --redis is given: this is the embedded one, in the same process, and its numbers are no measurement")
	}
	a.store.Queue = strings.TrimSuffix(a.store.Queue, "}") + "-bench" + a.store.Queue[len(strings.TrimSuffix(a.store.Queue, "}")):]
	a.queues.names = []string{a.store.Queue}
	return a.withOperator(command.Context(), func(o operate.Operator) error {
		return inPairs(a, benchPairs)(a.measure(command, o.Queue.Parts[0], flags))
	})
}

func (a *app) measure(command *cobra.Command, queue *store.Store, flags *benchFlags) (report bench.Report, err error) {
	switch keys, err := queue.Report().Size(command.Context()); {
	case err != nil:
		return report, err
	case keys > 0 && !flags.beside:
		return report, fmt.Errorf("expected an empty Redis, as what else it does is measured too, found %d keys; --beside-data measures it as it is", keys)
	}
	clients, err := redis.Connect(a.address(), a.connect)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, clients.Close()) }()
	plan := flags.plan
	plan.Start = func() (bench.Stop, error) { return a.startDaemons(command.InheritedFlags(), flags) }
	b := bench.Bench{Store: queue, Redis: clients.Write, Now: time.Now}
	return b.Run(command.Context(), plan)
}

// startDaemons starts daemons as processes of their own, so that their cost is realistic. They get their settings by the environment, where nobody
// else sees a password.
func (a *app) startDaemons(settings *pflag.FlagSet, flags *benchFlags) (bench.Stop, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start daemons: %w", err)
	}
	environ := os.Environ()
	settings.VisitAll(func(flag *pflag.Flag) {
		_, counts := flag.Value.(count[int])
		if unset := counts && flag.Value.String() == "0"; !unset && flag.Name != "config" && flag.Name != "output" {
			environ = append(environ, variable(flag.Name)+"="+flag.Value.String())
		}
	})
	var running []*exec.Cmd
	for i := range flags.dispatchers + flags.pollers {
		name := "dispatcher"
		if i >= flags.dispatchers {
			name = "poller"
		}
		daemon := exec.Command(self, name)
		daemon.Env, daemon.Stderr = environ, new(bytes.Buffer)
		if err := daemon.Start(); err != nil {
			_, stopErr := stopDaemons(running)
			return nil, errors.Join(fmt.Errorf("start a %s: %w", name, err), stopErr)
		}
		running = append(running, daemon)
	}
	return func() (time.Duration, error) { return stopDaemons(running) }, nil
}

// stopDaemons ends processes and returns their CPU time.
func stopDaemons(running []*exec.Cmd) (busy time.Duration, err error) {
	for _, daemon := range running {
		_ = daemon.Process.Signal(syscall.SIGTERM) // one that has ended already is waited for all the same
	}
	for _, daemon := range running {
		failed := daemon.Wait()
		status, known := daemon.ProcessState.Sys().(syscall.WaitStatus)
		early := known && status.Signaled() && status.Signal() == syscall.SIGTERM // it had not begun to listen for the signal yet
		if failed != nil && !early {
			err = errors.Join(err, fmt.Errorf("%s: %w: %s", daemon.Args[1], failed, daemon.Stderr))
		}
		busy += daemon.ProcessState.UserTime() + daemon.ProcessState.SystemTime()
	}
	return busy, err
}

func benchPairs(r *bench.Report) [][2]any {
	number := func(n *float64, unit string) string {
		if n == nil {
			return "unknown: this Redis does not say"
		}
		return strconv.FormatFloat(*n, 'f', 1, 64) + unit
	}
	spread := func(s *bench.Spread) string {
		if s == nil {
			return ""
		}
		return fmt.Sprintf("%.1f ms half of them, %.1f ms 99 %%, %.1f ms at most", s.P50, s.P99, s.Max)
	}
	return [][2]any{
		{"redis", r.RedisVersion}, {"models", strconv.Itoa(r.Models)}, {"cycles", strconv.Itoa(r.Cycles)},
		{"cycles a second", strconv.FormatFloat(r.CyclesPerSecond, 'f', 0, 64)},
		{"CPU of Redis", number(r.RedisCPU, " µs a cycle")}, {"CPU of the daemons", number(&r.DaemonCPU, " µs a cycle")},
		{"memory", number(r.BytesPerModel, " bytes a model")},
		{"starts late by", spread(r.StartLateness)}, {"results applied after", spread(r.ApplyLateness)},
	}
}
