// Package conformance plays the server against somebody's worker: real dispatchers and pollers, and between the worker and Redis a proxy
// that counts what the worker asks and cuts its connections. clients/README.md says what the worker under test has to do.
package conformance

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/internal/embedded"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/redisurl"
	"github.com/refreshd/refreshd/model/document"
)

// Config configures the test. Command is required.
type Config struct {
	// Command is the worker: a program and its arguments. It is started once for each scenario, without a shell.
	Command []string
	// Environ is its environment beside REDIS_URL, REFRESHD_QUEUE and REFRESHD_CONCURRENCY, as "name=value".
	Environ []string
	// Redis is the URL of a single Redis without TLS; its queues are named conformance-… and removed at the end. Defaults to one in
	// this process.
	Redis string
	// Scenarios are the names of those to play. Defaults to all.
	Scenarios []string
	// Flood is how many attempts the scenario of that name has. 1 to 100,000. Defaults to 200.
	Flood int
	// Patience is how long each thing may take that is waited for. 1 s to 10 min. Defaults to 10 s.
	Patience time.Duration
	// Clock measures how long the worker pauses. Required.
	Clock func() time.Time
	// Stderr gets the output of the worker, line by line behind the name of the scenario. Defaults to nothing.
	Stderr io.Writer
	// Log receives the log of the daemons. Defaults to none.
	Log *zerolog.Logger
}

// WithDefaults returns a copy with every unset field filled.
func (c Config) WithDefaults() Config {
	c.Flood = cmp.Or(c.Flood, 200)
	c.Patience = cmp.Or(c.Patience, 10*time.Second)
	c.Log = cmp.Or(c.Log, new(zerolog.Nop()))
	c.Stderr = cmp.Or(c.Stderr, io.Discard)
	if len(c.Scenarios) == 0 {
		c.Scenarios = Names()
	}
	return c
}

// Validate reports the first field out of range.
func (c Config) Validate() error {
	switch {
	case len(c.Command) == 0:
		return errors.New("conformance: expected the command of a worker, found nothing")
	case c.Clock == nil:
		return errors.New("conformance: expected a clock, found nothing")
	case c.Flood < 1 || c.Flood > 100_000:
		return document.Refuse("flood", "1 to 100000", strconv.Itoa(c.Flood))
	case c.Patience < time.Second || c.Patience > 10*time.Minute:
		return document.Refuse("patience", "1s to 10m", c.Patience.String())
	}
	for _, name := range c.Scenarios {
		if !slices.Contains(Names(), name) {
			return document.Refuse("scenario", "one of "+strings.Join(Names(), ", "), document.Found(name))
		}
	}
	return nil
}

// Level says how much a check matters.
type Level string

// The levels.
const (
	Must   Level = "must"   // without it refreshes are lost, late or done for nothing
	Should Level = "should" // without it people know less, or a refresh waits longer
)

// Check is one thing that a worker does or does not.
type Check struct {
	Scenario string `json:"scenario"`
	Level    Level  `json:"level"`
	Text     string `json:"check"`
	Holds    bool   `json:"holds"`
	Found    string `json:"found,omitempty"` // found instead
}

// Cost is the cost of an attempt of the flood for Redis.
type Cost struct {
	Attempts   int     `json:"attempts"`
	Commands   float64 `json:"commands_per_attempt"`
	RoundTrips float64 `json:"round_trips_per_attempt"`
	PerSecond  float64 `json:"attempts_per_second"`
}

// Report has the findings, in the order of the scenarios.
type Report struct {
	Holds  bool    `json:"holds"` // all that must hold
	Checks []Check `json:"checks"`
	Cost   *Cost   `json:"cost,omitempty"` // nil: the flood was not played, or did not end
}

// atOnce is how many scenarios are played side by side: each has daemons and a worker.
const atOnce = 8

// Run plays the scenarios, some of them side by side. The error says that they could not be played.
func Run(ctx context.Context, config Config) (report Report, err error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return report, err
	}
	if config.Redis == "" {
		server, err := embedded.Start(0)
		if err != nil {
			return report, err
		}
		defer server.Close()
		config.Redis = server.URL()
	}
	address, err := redisurl.Parse(config.Redis)
	if err != nil {
		return report, err
	}
	if address.Topology != redisurl.Single || address.TLS {
		return report, document.Refuse("redis", "the URL of a single Redis without TLS, as all that the worker says to it is counted", address.String())
	}
	clients, err := redis.Connect(config.Redis, redis.ConnectOptions{ClientName: "refreshd-conformance"})
	if err != nil {
		return report, err
	}
	stages := make([]*stage, len(config.Scenarios))
	errs := make([]error, len(stages))
	var playing errgroup.Group
	playing.SetLimit(atOnce)
	for i, name := range config.Scenarios {
		playing.Go(func() error { stages[i], errs[i] = play(ctx, &config, clients, address, name); return nil })
	}
	_ = playing.Wait() // all errors are reported
	if err := errors.Join(append(errs, clients.Close(), ctx.Err())...); err != nil {
		return report, err
	}
	report.Holds = true
	for _, s := range stages {
		report.Checks = append(report.Checks, s.checks...)
		report.Cost = cmp.Or(report.Cost, s.cost)
	}
	for _, c := range report.Checks {
		report.Holds = report.Holds && (c.Holds || c.Level != Must)
	}
	return report, nil
}
