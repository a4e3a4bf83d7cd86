package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/rs/zerolog"
)

// Config tunes a demo. Only Out is required.
type Config struct {
	// Out receives everything that the demo prints.
	Out io.Writer
	// For is how long the demo lasts. Defaults to 0: until the context of Run ends.
	For time.Duration
	// Port is where the embedded Redis listens on 127.0.0.1. Defaults to 0: any free port.
	Port int
	// Queue is the name of the queue. Defaults to "bigtables".
	Queue string
	// JSON prints one object a line instead of text.
	JSON bool
	// Screen makes the demo draw a table that fits, unless JSON is set. Defaults to nil: one line for each thing that happens.
	Screen Screen
	// Color colors the table.
	Color bool
	// Log receives the log of the daemons. Defaults to none.
	Log *zerolog.Logger

	// Dashboard opens pages about the queue for a browser, which are served while the demo runs. Defaults to none.
	Dashboard func(*store.Queue) (Dashboard, error)

	complete func() // called once when every behaviour was seen
}

// Dashboard is a server of pages.
type Dashboard interface {
	// Run serves until ctx ends.
	Run(ctx context.Context) error
	URL() string
}

// WithDefaults returns a copy with every unset field filled.
func (c Config) WithDefaults() Config {
	if c.Log == nil {
		nop := zerolog.Nop()
		c.Log = &nop
	}
	if c.complete == nil {
		c.complete = func() {}
	}
	return c
}

// Validate reports the first field out of range.
func (c Config) Validate() error {
	switch {
	case c.Out == nil:
		return errors.New("out: expected a writer, found nil")
	case c.For < 0:
		return fmt.Errorf("for: expected a duration of at least 0, found %s", c.For)
	}
	return nil
}

// ErrNotSeen means that the time was over before everything had happened that the demo promises.
var ErrNotSeen = errors.New("the demo ended before everything was seen")

// Run runs the demo and prints a summary. The error is ErrNotSeen only when For is set: without it the user ends the demo at any time.
func Run(ctx context.Context, config Config) error {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return err
	}
	s, err := open(config.Port, config.Queue)
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, s, config), s.close())
}

// run runs the daemons, shows what happens until the time is over, and prints what was seen and counted.
func run(ctx context.Context, s *servers, config Config) error {
	daemons, err := newDaemons(s, config.Log)
	if err != nil {
		return err
	}
	start, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	if config.Dashboard != nil {
		queue, err := s.openQueue(ctx)
		if err != nil {
			return err
		}
		if daemons.dashboard, err = config.Dashboard(queue); err != nil {
			return err
		}
	}
	out := config.output()
	p := newProgress(s.store, out, newOutside(s, start, out, daemons.workers), config.complete)
	out.begin(s.introduction(daemons.dashboard))
	if err := p.runBeside(ctx, daemons, config.For); err != nil {
		return err
	}
	return p.conclude(context.WithoutCancel(ctx), config.For)
}

func (c Config) output() output {
	switch {
	case c.JSON:
		return jsonLines{c.Out}
	case c.Screen != nil:
		return newTable(c.Out, c.Screen, c.Color)
	default:
		return textLines{c.Out}
	}
}
