package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/scripts"
)

// Config tunes a demo. Only Out is required.
type Config struct {
	// Out receives everything that the audience reads.
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
	// Log receives the trouble of the daemons. Defaults to silence.
	Log *zerolog.Logger

	complete func() // called once when everything was seen
}

// WithDefaults returns a copy with every unset field filled.
func (c Config) WithDefaults() Config {
	if c.Log == nil {
		silent := zerolog.Nop()
		c.Log = &silent
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

// Run plays the demo and prints a summary. The error is ErrNotSeen only when For is set: without it the audience leaves when
// it likes.
func Run(ctx context.Context, config Config) error {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return err
	}
	s, err := build(config.Port, config.Queue)
	if err != nil {
		return err
	}
	return errors.Join(play(ctx, s, config), s.close())
}

// play runs the daemons under the eyes of the audience until the time is over, and then concludes.
func play(ctx context.Context, s *stage, config Config) error {
	daemons, err := newDaemons(s, config.Log)
	if err != nil {
		return err
	}
	start, err := s.seats.Now(ctx)
	if err != nil {
		return err
	}
	director := newDirector(s.site, start, s.outside(), s.feeds, daemons.crew)
	watcher := newWatcher(s.seats, config.view(), director, config.complete)
	watcher.view.begin(s.introduction())
	if err := perform(ctx, config, daemons, watcher); err != nil {
		return err
	}
	return conclude(context.WithoutCancel(ctx), s.seats, watcher, config)
}

// perform returns when everything that it started has ended. That the time is over is no error.
func perform(ctx context.Context, config Config, daemons *daemons, watcher *watcher) error {
	ctx, end := config.limit(ctx)
	defer end()
	wait := daemons.start(ctx)
	err := watcher.run(ctx)
	end()
	wait()
	return err
}

// limit ends the demo when its time is over.
func (c Config) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.For == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.For)
}

func (c Config) view() view {
	switch {
	case c.JSON:
		return objects{c.Out}
	case c.Screen != nil:
		return newTable(c.Out, c.Screen, c.Color)
	default:
		return pipe{c.Out}
	}
}

// conclude prints what was seen and counted, and returns what is missing of it.
func conclude(ctx context.Context, store *scripts.Store, watcher *watcher, config Config) error {
	stats, err := store.Stats(ctx)
	if err != nil {
		return err
	}
	check := watcher.check
	check.counters(stats.Counters)
	check.tick()
	watcher.view.summary(check, stats.Counters)
	if config.For > 0 && !check.complete() {
		return fmt.Errorf("%w: %d of %d in %s; what is missing has no mark above",
			ErrNotSeen, check.count(), len(behaviours), config.For)
	}
	return nil
}
