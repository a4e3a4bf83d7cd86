package main

import (
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/trials/demo"
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

On a terminal it draws a table, in a pipe it prints one line for each thing that happens. With --for it fails when the
audience did not see everything; all of it takes about ten seconds. Another Redis, as in --redis, is never touched.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := a.requireOneQueue(); err != nil {
				return err
			}
			config := a.demoConfig(time.Duration(life), port)
			if serves(listen) {
				config.Dashboard = func(queue *store.Queue) (demo.Dashboard, error) {
					at := a.pagesAt(listen)
					_, err := at.show(queue)
					return at.open, err
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

func (a *app) demoConfig(life time.Duration, port int) demo.Config {
	config := demo.Config{Out: a.stdout, For: life, Port: port, Queue: a.store.Queue, JSON: a.json()}
	if terminal, ok := a.stdout.(*os.File); ok && isTerminal(terminal) && !config.JSON && a.getenv("TERM") != "dumb" {
		config.Screen, config.Color = demo.ScreenOf(terminal), a.getenv("NO_COLOR") == ""
		return config // a log would write over the table
	}
	config.Log = new(a.log.Level(max(zerolog.ErrorLevel, a.log.GetLevel()))) // what the daemons warn of stands in the lines
	return config
}
