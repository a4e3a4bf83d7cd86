package demo

import (
	"context"
	"errors"
	"testing"
)

func TestCrewStopsWhenSentAwayAndWorksAgainWhenCalledBack(t *testing.T) {
	shifts, ended := make(chan struct{}), make(chan struct{})
	c := newCrew(func(ctx context.Context) error {
		shifts <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil
	})
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.run(ctx) }()
	<-shifts
	c.leave()
	<-ended
	<-c.gone
	c.comeBack()
	<-shifts
	end()
	<-ended
	if err := <-done; err != nil {
		t.Errorf("run = %v, want no error", err)
	}
}

func TestCrewTellsTheErrorOfItsWork(t *testing.T) {
	broken := errors.New("broken")
	c := newCrew(func(context.Context) error { return broken })
	if err := c.run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("run = %v, want %v", err, broken)
	}
}

func TestCrewThatIsAwayEndsAtOnce(t *testing.T) {
	c := newCrew(func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.run(ctx) }()
	c.leave()
	<-c.gone
	end()
	if err := <-done; err != nil {
		t.Errorf("run = %v, want no error", err)
	}
}
