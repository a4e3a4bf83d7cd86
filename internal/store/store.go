// Package store is the only door to Redis: every key, and one typed method for each script.
//
// A loop reads a batch of models, a pure function in package model decides, and one script compares and sets. Scripts check
// first and write after; a refused item changes nothing, and has a code, not an error.
package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model/schedule"
)

// Config sizes what one queue keeps. The zero value is usable.
type Config struct {
	// Queue is the name of the queue and the prefix of its keys. Defaults to "bigtables".
	Queue string
	// JournalCap is how many transitions the journal keeps, approximately; None: no journal. Defaults to 100,000.
	JournalCap int
	// HistoryCap is how many ended attempts each model keeps; None: no history. Defaults to 10.
	HistoryCap int
	// RejectedCap is how many messages the rejected list keeps. Defaults to 1,000.
	RejectedCap int
	// LogCap is how many logs of attempts the queue keeps, of at most 64 KiB each; None: no logs. Defaults to 200.
	LogCap int
	// MessageCap is the largest message of workers and applications that is read, in bytes, 4 KiB to 64 MiB. Larger ones are
	// rejected, with their beginning. Defaults to 1 MiB.
	MessageCap int
	// NewErrorAbove is how many models one fingerprint of failures may stop before the operators are notified; None: they never are.
	// Defaults to 50.
	NewErrorAbove int
	// Traces lets the entry of each attempt that is started name its trace. Defaults to false.
	Traces bool
	// OutboxKeep is how long the outbox keeps an entry that somebody has not acknowledged, at least a minute. Defaults to 7 days.
	OutboxKeep time.Duration
	// OutboxCap is how many entries the outbox keeps, read or not. Defaults to 100,000.
	OutboxCap int
	// Grace is for how long nothing expires after Redis or all dispatchers were away, as workers could not speak meanwhile; negative: not at all.
	// Defaults to 15 s; with a Clock, which jumps where nothing happens, to none.
	Grace time.Duration
	// FewItems is up to how many items of a batch are sent without templates; None: none is. Defaults to 12: to read two templates costs the script as
	// much as to read the lines of six or seven ends and starts each.
	FewItems int
	// Clock replaces the clock of Redis, for tests and simulation. Defaults to nil: Redis TIME, read once per batch.
	Clock func() time.Time
}

// None is the cap that keeps nothing.
const None = -1

// DefaultQueue is the queue of a program that names none.
const DefaultQueue = "bigtables"

// WithDefaults returns a copy with every unset field filled.
func (c Config) WithDefaults() Config {
	c.Queue = cmp.Or(c.Queue, DefaultQueue)
	c.JournalCap = cmp.Or(c.JournalCap, 100_000)
	c.HistoryCap = cmp.Or(c.HistoryCap, 10)
	c.RejectedCap = cmp.Or(c.RejectedCap, 1_000)
	c.LogCap = cmp.Or(c.LogCap, 200)
	c.MessageCap = cmp.Or(c.MessageCap, 1<<20)
	c.NewErrorAbove = cmp.Or(c.NewErrorAbove, 50)
	c.FewItems = cmp.Or(c.FewItems, 12)
	if c.Clock == nil {
		c.Grace = cmp.Or(c.Grace, 15*time.Second)
	}
	c.OutboxKeep, c.OutboxCap = cmp.Or(c.OutboxKeep, 7*24*time.Hour), cmp.Or(c.OutboxCap, 100_000)
	return c
}

// Validate reports the first field out of range.
func (c Config) Validate() error {
	for name, value := range map[string]int{"journal cap": c.JournalCap, "history cap": c.HistoryCap, "log cap": c.LogCap} {
		if value < 1 && value != None {
			return fmt.Errorf("%s: expected at least 1, or none, found %d", name, value)
		}
	}
	if c.RejectedCap < 1 {
		return fmt.Errorf("rejected cap: expected at least 1, found %d", c.RejectedCap)
	}
	if c.OutboxKeep < time.Minute || c.OutboxCap < 1 {
		return fmt.Errorf("outbox: expected to keep at least 1 entry for 1m, found %d for %s", c.OutboxCap, c.OutboxKeep)
	}
	if c.MessageCap < 4<<10 || c.MessageCap > 64<<20 {
		return fmt.Errorf("message cap: expected 4096 to 67108864 bytes, found %d", c.MessageCap)
	}
	_, err := NewKeys(c.Queue)
	return err
}

// Store is one queue in Redis, or one part of it. It is safe for concurrent use and keeps nothing but caches.
type Store struct {
	// Keys names the queue's keys, for messages to people.
	Keys Keys

	Config    Config // as it was opened; settings of the queue may change it
	Clients   *redis.Clients
	queue     *Queue // that has this part; it has no other if the part was opened by itself
	Place     int    // its number among the parts
	Schedules schedule.Cache
	policies  policyCache
	blockers  blockerCache
}

// New returns the store of a queue. It takes over no connection: the caller closes the clients.
func New(clients *redis.Clients, config Config) (*Store, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, err
	}
	keys := newKeys(config.Queue)
	if clients.Clustered && !keys.Tagged() {
		return nil, fmt.Errorf("queue: expected braces on Redis Cluster as in %q, found %q", "{"+config.Queue+"}", config.Queue)
	}
	s := &Store{Keys: keys, Config: config, Clients: clients}
	s.queue = &Queue{Name: config.Queue, Parts: []*Store{s}}
	return s, nil
}

// clockArg is the time argument of a reading script; empty: the script asks Redis.
func (s *Store) clockArg() string {
	if s.Config.Clock == nil {
		return ""
	}
	return redis.Millis(s.Config.Clock())
}

// Now reads the one clock.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	err = redis.Retry(ctx, func(ctx context.Context) error { // the client of a node has no hook
		now, err = s.readTime(s.askTime(ctx, s.Clients.Read))
		return err
	})
	return now, err
}

// askTime asks for the clock, also in a pipeline; nil: Config.Clock replaces it. On a cluster it asks the node of the queue, outside of the pipeline.
func (s *Store) askTime(ctx context.Context, client goredis.Cmdable) *goredis.TimeCmd {
	if s.Config.Clock != nil {
		return nil
	}
	if s.Clients.Clustered {
		node, err := s.node(ctx)
		if err != nil {
			clock := goredis.NewTimeCmd(ctx, "time")
			clock.SetErr(err)
			return clock
		}
		client = node
	}
	return client.Time(ctx)
}

func (s *Store) readTime(clock *goredis.TimeCmd) (time.Time, error) {
	if clock == nil {
		return s.Config.Clock(), nil
	}
	return clock.Val().UTC().Truncate(time.Millisecond), redis.Wrap(clock.Err(), "read the clock of redis")
}
