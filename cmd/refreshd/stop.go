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

// orders are the signals that tell a process to end. The first ends the context of the command. The second tells a daemon to
// hurry: not to wait for the grace, but to hand back what is in hand; any other command is killed by it, because whoever presses
// Ctrl-C twice does not want to wait. The third kills a daemon too.
type orders struct {
	hurry  chan struct{} // closed by the second order
	gentle atomic.Bool   // a daemon is listening to hurry
}

type ordersKey struct{}

// hurryOf is what the second order closes; asking for it makes that order gentle. nil: nobody gives orders.
func hurryOf(ctx context.Context) <-chan struct{} {
	o, ok := ctx.Value(ordersKey{}).(*orders)
	if !ok {
		return nil
	}
	o.gentle.Store(true)
	return o.hurry
}

// listen returns a context that ends with the first signal. The caller calls the returned function when no more are awaited.
func listen(parent context.Context) (context.Context, func()) {
	o := &orders{hurry: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithValue(parent, ordersKey{}, o))
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
			o.second(sent)
		case <-done:
		}
	}()
	return ctx, func() { signal.Stop(signals); close(done); cancel() }
}

func (o *orders) second(sent os.Signal) {
	if o.gentle.Load() {
		close(o.hurry)
		return
	}
	if number, ok := sent.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), number)
	}
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
	select {
	case err := <-ended:
		return err
	case <-hurry:
		timer.Reset(leastStop)
		limit = leastStop
	case <-timer.C:
		return cutOff(limit)
	}
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return cutOff(limit)
	}
}

func cutOff(limit time.Duration) error {
	return fmt.Errorf("expected the work in hand to end within %s, found it going on: cut off", limit)
}
