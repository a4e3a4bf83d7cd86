package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/health"
)

// healthFlags say where a daemon answers questions about its health.
type healthFlags struct {
	address  string
	patience duration
}

func (f *healthFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "health", "", "answer /livez and /readyz over HTTP on `ADDRESS`, as in 127.0.0.1:8080 (default nowhere)")
	f.patience = duration(10 * time.Minute)
	flags.Var(&f.patience, "health-patience", "how long /livez stays well while Redis fails, because a restart does not mend Redis")
}

// openHealth serves the health checks of the loops of this process. The caller calls the returned function when
// the process ends. Without an address there are no checks.
func (a *app) openHealth(ctx context.Context, flags *healthFlags) (func(), error) {
	if flags.address == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", flags.address)
	if err != nil {
		return nil, fmt.Errorf("--health: %w", err)
	}
	a.checks = health.NewChecks(time.Duration(flags.patience), time.Now)
	stop := context.AfterFunc(ctx, a.checks.Stop)
	server := &http.Server{
		Handler: a.checks, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	a.log.Info().Str("address", listener.Addr().String()).Msg("health is told at /livez and /readyz")
	return func() {
		stop()
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			a.log.Error().Err(err).Msg("health is told no more")
		}
	}, nil
}
