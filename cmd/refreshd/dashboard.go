package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/ui/dashboard"
	"github.com/refreshd/refreshd/model/document"
)

type dashboardFlags struct {
	listen    string
	hosts     []string
	proxies   []string
	token     string
	tokenFile string
	readOnly  bool
}

func dashboardCommand(a *app) *cobra.Command {
	var flags dashboardFlags
	command := a.loopCommand("dashboard", "Show the queue in a browser, and steer it from there", (*loopFlags).bindLife,
		func(_ context.Context, loop *loopFlags, _ []string) (prepared, error) {
			config, err := a.dashboardConfig(loop, &flags)
			return (&pages{app: a, config: config}).show, err
		})
	command.Long = `Serve pages about the queue, or about each of several: rates and lateness, models, why one refreshes when it does, failures by fingerprint.
Without a token it listens on the loopback interface only. Whoever can read its pages can do what its buttons do, unless it is --read-only,
the token is that of a viewer, or its user of Redis is one (refreshd acl).`
	f, set := &flags, command.Flags()
	set.StringVar(&f.listen, "listen", dashboard.DefaultListen, "`ADDRESS` to serve on; beyond loopback only with a token")
	set.StringArrayVar(&f.hosts, "host", nil, "another `NAME` by which browsers may ask for it, such as that of a proxy in front")
	set.StringArrayVar(&f.proxies, "trusted-proxy", nil, "addresses as `CIDR`, such as 10.0.0.0/8, of proxies in front: the client is who they name in X-Forwarded-For")
	set.StringVar(&f.token, "token", "", "`TEXT` that whoever looks must know, at least 16 bytes (default none; better as REFRESHD_TOKEN or --token-file)")
	set.StringVar(&f.tokenFile, "token-file", "", "`FILE` with the token, or with a line ROLE NAME TOKEN for each, of which ROLE is viewer or operator: a viewer is offered no action, and the journal has NAME")
	set.BoolVar(&f.readOnly, "read-only", false, "offer and accept no action")
	set.StringVar(&a.by, "by", "", "`NAME` of who wants what is done there, for the journal (default dashboard)")
	return command
}

func (a *app) dashboardConfig(loop *loopFlags, flags *dashboardFlags) (dashboard.Config, error) {
	config := dashboard.Config{
		Listen: flags.listen, Hosts: flags.hosts, ReadOnly: flags.readOnly, By: a.by, Grace: min(loop.grace, time.Second), Clock: time.Now, Log: &a.log,
	}
	for _, text := range flags.proxies {
		proxy, err := netip.ParsePrefix(text)
		if err != nil {
			return config, usageError{document.Refuse("--trusted-proxy", "addresses such as 10.0.0.0/8 or 127.0.0.1/32", document.Found(text))}
		}
		config.TrustedProxies = append(config.TrustedProxies, proxy)
	}
	if flags.token != "" {
		config.Tokens = []dashboard.Token{{Text: flags.token}}
	}
	if flags.tokenFile != "" {
		if flags.token != "" {
			return config, usagef("--token: expected it or --token-file, found both")
		}
		text, err := os.ReadFile(flags.tokenFile)
		if err != nil {
			return config, fmt.Errorf("--token-file: %w", err)
		}
		if config.Tokens, err = dashboard.ReadTokens(flags.tokenFile, string(text)); err != nil {
			return config, usagef("--token-file: %v", err)
		}
	}
	return config, config.WithDefaults().Validate()
}

// pages is the dashboard of all queues of a process: the first queue that answers opens it, the others are added.
type pages struct {
	app    *app
	config dashboard.Config
	yields bool // to whoever has its port, and takes any that is free
	mu     sync.Mutex
	open   *dashboard.Dashboard // guarded by mu; nil: not yet
}

// show returns a daemon that serves the pages of a queue.
func (p *pages) show(queue *store.Queue) (daemon, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	config := p.config.WithDefaults()
	config.Observe = p.app.checks.Loop(p.app.loopName("dashboard", queue.Name), config.Tick, false).Begin
	if open := p.open; open != nil {
		return daemonFunc(func(ctx context.Context) error { open.Show(ctx, queue, config.Observe); return nil }), nil
	}
	open, err := dashboard.Open([]*store.Queue{queue}, config)
	if errors.Is(err, syscall.EADDRINUSE) && p.yields {
		config.Listen = "127.0.0.1:0"
		open, err = dashboard.Open([]*store.Queue{queue}, config)
	}
	if err != nil {
		return nil, err
	}
	p.open = open
	p.app.log.Info().Str("address", open.URL()).Msg("the dashboard is served")
	return open, nil
}

func (p *pages) url() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		return ""
	}
	return p.open.URL()
}

// close ends a dashboard that may never have run.
func (p *pages) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != nil {
		p.open.Close()
	}
}

type daemonFunc func(context.Context) error

func (run daemonFunc) Run(ctx context.Context) error { return run(ctx) }

// bindPages adds the flag of a command that also serves a dashboard.
func bindPages(flags *pflag.FlagSet, listen *string) {
	flags.StringVar(listen, "dashboard", dashboard.DefaultListen, "serve the dashboard on `ADDRESS` of loopback, port 0 is any that is free, as for the default when it is taken; off: nowhere")
}

func serves(listen string) bool { return listen != "" && listen != "off" }

// pagesAt returns the dashboard of such a command, on loopback.
func (a *app) pagesAt(listen string) *pages {
	return &pages{app: a, yields: listen == dashboard.DefaultListen, config: dashboard.Config{Listen: listen, By: a.by, Grace: time.Second, Clock: time.Now, Log: &a.log}}
}
