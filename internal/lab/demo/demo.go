// Package demo is refreshd in one process, for people who want to watch it: an embedded Redis, a web server on the loopback interface whose feeds
// fail like real ones, models that are due every few seconds, and the real dispatcher, poller and workers.
//
// Nothing is faked. The feeds answer over HTTP, the scripts run in Redis, and applications and owners send JSON messages to the control list.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
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
	// Log receives the log of the daemons. Defaults to none.
	Log *zerolog.Logger

	// Dashboard opens pages about the queue for a browser. It returns a function that serves them until its context ends, and their address.
	// Defaults to none.
	Dashboard func(*store.Queue) (serve func(context.Context) error, url string, err error)

	complete func() // called once when every behaviour was seen
}

// WithDefaults returns a copy with every unset field filled.
func (c Config) WithDefaults() Config {
	c.Log = cmp.Or(c.Log, new(zerolog.Nop()))
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

// run runs the daemons, prints the events, and at last a summary.
func run(ctx context.Context, s *servers, config Config) error {
	daemons, workers, err := newDaemons(s, config.Log)
	if err != nil {
		return err
	}
	start, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	pages := ""
	if config.Dashboard != nil {
		queue, err := store.Open(ctx, s.store.Clients, store.Config{Queue: s.store.Keys.Queue})
		if err != nil {
			return err
		}
		if daemons["dashboard"], pages, err = config.Dashboard(queue); err != nil {
			return err
		}
	}
	out := output{config.Out, config.JSON}
	p := progress{
		store: s.store, out: out, check: newChecklist(), outside: newOutside(s, start, out, workers), complete: config.complete,
		outbox: report.TailStart, statuses: map[string]status{}, planned: map[string]time.Time{},
	}
	out.begin(s.introduction(pages))
	if err := p.runBeside(ctx, daemons, config.For, config.Log); err != nil {
		return err
	}
	return p.conclude(context.WithoutCancel(ctx), config.For)
}
