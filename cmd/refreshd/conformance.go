package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/trials/conformance"
)

func conformanceCommand(a *app) *cobra.Command {
	var config conformance.Config
	command := &cobra.Command{
		Use:   "conformance [--scenario NAME] -- PROGRAM [ARGUMENT...]",
		Short: "Play the server against a worker of your own, and tell what it does right",
		Long: `Start a worker of your own again and again, and play the server: attempts that succeed and fail, that are superseded while it
works, that come twice, that cannot be read, that take too long; many at once; a Redis that is gone, or refuses writes (OOM, READONLY, BUSY
and the like), for a moment; SIGTERM.

The worker finds Redis in REDIS_URL, its queue in REFRESHD_QUEUE, and in REFRESHD_CONCURRENCY how many attempts to work on at the
same time. The payload of each model says what to do: docs/worker.md has the list, and clients/ a worker for it in each language.

Without --redis it brings a Redis along. The exit code is 0 if all that a worker must do holds.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			config.Command, config.Redis = args, a.redis
			return a.conformance(command, config)
		},
	}
	set := command.Flags()
	set.StringArrayVar(&config.Scenarios, "scenario", nil, "play only the scenario `NAME`, may be given several times")
	set.Var(count[int]{&config.Flood, "1 to 100000"}, "flood", "attempts of the scenario flood (default 200)")
	set.Var((*duration)(&config.Patience), "patience", "how long to wait for each thing that has to happen (default 10s)")
	return command
}

func (a *app) conformance(command *cobra.Command, config conformance.Config) error {
	log := a.log.Level(max(zerolog.ErrorLevel, a.log.GetLevel())) // what is played here goes wrong on purpose
	config.Environ, config.Stderr, config.Log = a.environ, a.stderr, &log
	if err := config.WithDefaults().Validate(); err != nil {
		return usageError{err}
	}
	began := time.Now()
	report, err := conformance.Run(command.Context(), config)
	if err != nil {
		return err
	}
	if a.json() {
		err = a.printJSON(report)
	} else {
		err = a.showConformance(report, time.Since(began))
	}
	if err == nil && !report.Holds {
		err = errReported
	}
	return err
}

// showConformance prints a line for each check, and what an attempt has cost.
func (a *app) showConformance(report conformance.Report, took time.Duration) error {
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
