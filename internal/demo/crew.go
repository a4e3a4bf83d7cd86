package demo

import "context"

// crew is the workers, who can be sent away and called back, as a deploy does.
type crew struct {
	work func(ctx context.Context) error // until ctx ends
	stop chan struct{}
	back chan struct{}
	gone chan struct{} // tells that the last worker has stopped after leave
}

func newCrew(work func(ctx context.Context) error) *crew {
	return &crew{work, make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}
}

// leave makes the workers stop as soon as they can. It is called once.
func (c *crew) leave() { c.stop <- struct{}{} }

// comeBack ends the time after leave. It is called once.
func (c *crew) comeBack() { c.back <- struct{}{} }

// run works, shift after shift, until ctx ends or a shift ends with an error.
func (c *crew) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.shift(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		c.gone <- struct{}{}
		select {
		case <-ctx.Done():
		case <-c.back:
		}
	}
	return nil
}

// shift works until ctx ends or the workers are sent away.
func (c *crew) shift(ctx context.Context) error {
	shift, end := context.WithCancel(ctx)
	defer end()
	done := make(chan error, 1)
	go func() { done <- c.work(shift) }()
	select {
	case <-ctx.Done():
	case <-c.stop:
	case err := <-done:
		return err
	}
	end()
	return <-done
}
