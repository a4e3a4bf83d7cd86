package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/bench"
	"github.com/refreshd/refreshd/scripts"
)

// benchFlags say what to measure.
type benchFlags struct {
	plan        bench.Plan
	dispatchers int
	pollers     int
	force       bool
}

func benchCommand(a *app) *cobra.Command {
	var flags benchFlags
	command := &cobra.Command{
		Use: "bench", Short: "Measure how many cycles a second this Redis can do, and what a cycle costs", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withStore(command.Context(), func(store *scripts.Store) error { return a.bench(command.Context(), store, &flags) })
		},
	}
	set := command.Flags()
	set.IntVar(&flags.plan.Models, "models", 20_000, "models in the queue")
	set.DurationVar(&flags.plan.Duration, "duration", 0, "how long to go on")
	set.IntVar(&flags.plan.Workers, "workers", 1, "connections that pop attempts and push results")
	set.IntVar(&flags.plan.Paced, "paced", 2000, "")
	set.DurationVar(&flags.plan.Spacing, "spacing", time.Millisecond, "")
	set.IntVar(&flags.dispatchers, "dispatchers", 1, "")
	set.IntVar(&flags.pollers, "pollers", 1, "")
	return command
}

func (a *app) bench(ctx context.Context, store *scripts.Store, flags *benchFlags) error {
	clients, err := scripts.Connect(a.address(), a.connect)
	if err != nil {
		return err
	}
	defer clients.Close()
	plan := flags.plan
	plan.Start = func() (bench.Stop, error) { return a.startDaemons(flags) }
	b := bench.Bench{Store: store, Redis: clients.Write, Now: time.Now}
	report, err := b.Run(ctx, plan)
	if err != nil {
		return err
	}
	return a.printJSON(report)
}

// startDaemons starts daemons as processes of their own, so that each costs what it costs.
func (a *app) startDaemons(flags *benchFlags) (bench.Stop, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var running []*exec.Cmd
	start := func(name string) error {
		command := exec.Command(self, name, "--redis", a.address(), "--queue", a.store.Queue)
		if err := command.Start(); err != nil {
			return fmt.Errorf("start a %s: %w", name, err)
		}
		running = append(running, command)
		return nil
	}
	for range flags.dispatchers {
		err = errors.Join(err, start("dispatcher"))
	}
	for range flags.pollers {
		err = errors.Join(err, start("poller"))
	}
	stop := func() (busy time.Duration, err error) {
		for _, command := range running {
			_ = command.Process.Signal(syscall.SIGTERM)
			err = errors.Join(err, command.Wait())
			used := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
			fmt.Fprintln(a.stderr, command.Args[1], used)
			busy += used
		}
		return busy, err
	}
	return stop, err
}
