package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// stopSignals tell a process to end. The first ends the context of the command. The second tells a daemon to hurry: not to wait
// for the grace, but to hand back what is in hand; any other command is killed by it, because whoever presses Ctrl-C twice does
// not want to wait. The third kills a daemon too.
type stopSignals struct {
	hurry  chan struct{} // closed by the second signal
	daemon atomic.Bool   // a daemon listens to hurry
}

type stopSignalsKey struct{}

// hurryOf is what the second signal closes; to ask for it is to be a daemon. nil: this process awaits no signals.
func hurryOf(ctx context.Context) <-chan struct{} {
	s, ok := ctx.Value(stopSignalsKey{}).(*stopSignals)
	if !ok {
		return nil
	}
	s.daemon.Store(true)
	return s.hurry
}

// listen returns a context that ends with the first signal. The caller calls the returned function when no more are awaited.
func listen(parent context.Context) (context.Context, func()) {
	s := &stopSignals{hurry: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithValue(parent, stopSignalsKey{}, s))
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		cancel()
		select {
		case sent := <-signals:
			signal.Stop(signals) // the next one kills
			if s.daemon.Load() {
				close(s.hurry)
			} else if number, ok := sent.(syscall.Signal); ok {
				_ = syscall.Kill(os.Getpid(), number)
			}
		case <-done:
		}
	}()
	return ctx, func() { signal.Stop(signals); close(done); cancel() }
}

// leastStop is how long a daemon may take to end in any case. A round takes milliseconds, unless Redis hangs.
const leastStop = 2 * time.Second

// bounded runs a daemon until it ends; when ctx has ended, for no longer than limit, or leastStop when there is hurry. A daemon
// that is cut off has done nothing by halves, since each of its writes is one script: the next one finds the rest.
func bounded(ctx context.Context, loop daemon, limit time.Duration, hurry <-chan struct{}) error {
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limit = max(limit, leastStop)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-hurry:
			hurry, limit = nil, leastStop
			timer.Reset(limit)
		case <-timer.C:
			return fmt.Errorf("expected the work in hand to end within %s, found it going on: cut off", limit)
		}
	}
}
