package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/ui/notifier"
	"github.com/refreshd/refreshd/model/document"
)

func notifierCommand(a *app) *cobra.Command {
	var flags notifierFlags
	bind := func(f *loopFlags, set *pflag.FlagSet) {
		f.bindLife(set)
		set.Var((*duration)(&f.tick), "tick", "longest sleep between two rounds (default 1s)")
	}
	command := a.loopCommand("notifier --routes FILE", "Notify people and programs: by webhook, by e-mail or in a list", bind,
		func(_ context.Context, loop *loopFlags, _ []string) (prepared, error) {
			return a.prepareNotifier(loop, &flags)
		})
	command.Long = `Deliver what the outbox holds, at least once each: models that were disabled, recovered, fail, are stale or fresh again, circuits that opened or
closed, and new errors that stop many models. FILE says which channels there are and which events go to which of them. What cannot be delivered is tried
again, and at last kept: see refreshd undelivered.`
	flags.bind(command.Flags())
	return command
}

type notifierFlags struct {
	routes    string // file
	dashboard string // URL
}

func (f *notifierFlags) bind(set *pflag.FlagSet) {
	set.StringVar(&f.routes, "routes", "", "`FILE` with the channels of the notifier, and what goes to which of them")
	set.StringVar(&f.dashboard, "dashboard-url", "", "`URL` at which people reach the dashboard: notices about models link to it")
}

func (a *app) prepareNotifier(loop *loopFlags, flags *notifierFlags) (prepared, error) {
	path, dashboard := flags.routes, strings.TrimRight(flags.dashboard, "/")
	if path == "" {
		return nil, errors.New("--routes: expected a file, found nothing")
	}
	at, err := url.Parse(dashboard)
	if dashboard != "" && (err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.RawQuery != "" || at.Fragment != "") {
		return nil, fmt.Errorf("--dashboard-url: expected a URL such as https://refreshd.example.com, found %s", document.Found(flags.dashboard))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--routes: %w", err)
	}
	routes, err := notifier.Read(path, bytes.NewReader(text), func(name string) string {
		a.secrets = append(a.secrets, name) // no program of a worker in this process is to find it
		return a.getenv(name)
	})
	if err != nil {
		return nil, err
	}
	config := notifier.Config{Tick: loop.tick, Backoff: loop.backoff, Clock: time.Now}
	if err := config.WithDefaults().Validate(); err != nil {
		return nil, err
	}
	return func(queue *store.Queue) (daemon, error) {
		if err := queue.RequireWhole(); err != nil {
			return nil, err
		}
		return forParts(a, queue, "notifier", loop.tick, func(at place) (*notifier.Notifier, error) {
			config := config // queues are opened side by side
			config.Log, config.Observe = at.log, at.observe
			if dashboard != "" {
				config.Dashboard = dashboard + "/q/" + url.PathEscape(queue.Name)
			}
			return notifier.New(at.part.Store, routes, config)
		})
	}, nil
}
