package demo

import (
	"context"
	"errors"
	"testing"
)

func TestWorkersStopWhenToldAndWorkAgainAfterARestart(t *testing.T) {
	shifts, ended := make(chan struct{}), make(chan struct{})
	w := newWorkers(func(ctx context.Context) error {
		shifts <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil
	})
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.run(ctx) }()
	<-shifts
	w.stop <- struct{}{}
	<-ended
	<-w.stopped
	w.restart <- struct{}{}
	<-shifts
	end()
	<-ended
	if err := <-done; err != nil {
		t.Errorf("run = %v, want no error", err)
	}
}

func TestWorkersReturnTheErrorOfTheirWork(t *testing.T) {
	broken := errors.New("broken")
	w := newWorkers(func(context.Context) error { return broken })
	if err := w.run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("run = %v, want %v", err, broken)
	}
}

func TestStoppedWorkersEndAtOnce(t *testing.T) {
	w := newWorkers(func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.run(ctx) }()
	w.stop <- struct{}{}
	<-w.stopped
	end()
	if err := <-done; err != nil {
		t.Errorf("run = %v, want no error", err)
	}
}
