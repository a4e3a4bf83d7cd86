// Package doctor checks what must hold of a queue whatever happens, and the Redis that it lives in, and repairs what is safe to repair.
//
// It may run beside busy daemons. It reads in chunks between which Redis serves others. What changes while it is read may look broken:
// it is read again, at one instant, before it is reported.
package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/scripts"
)

// Options tune a check. The zero value is usable, but for the clock.
type Options struct {
	// Now is the clock of this machine, to compare with that of Redis. Nil: they are not compared.
	Now func() time.Time
	// Repair repairs what is safe.
	Repair bool
	// Limit is how many findings of one code are reported one by one. Defaults to 20.
	Limit int
}

// checker is one run of all checks of one part of a queue.
type checker struct {
	store   *scripts.Store
	options Options
	report  *Report
	first   *checker        // of the first part, which the others are compared with; nil: this is it
	several bool            // the queue has several parts
	servers map[string]bool // that were checked already, by their run_id
	now     time.Time       // of the queue, when the run began

	lastPoller time.Time // the last heartbeat of any poller; zero: there is none

	wrongType map[string]bool  // the queue's own keys of a wrong type: while there is one, scripts refuse to write
	stored    map[string]bool  // names of the stored policies
	used      map[string]usage // by name of a policy
}

// usage is how a policy is used.
type usage struct {
	models  int
	example string // uid of one of them
}

func newChecker(store *scripts.Store, options Options) *checker {
	if options.Limit <= 0 {
		options.Limit = 20
	}
	return &checker{
		store: store, options: options, report: &Report{Counts: make(map[string]Count)}, servers: make(map[string]bool),
		wrongType: make(map[string]bool), stored: make(map[string]bool), used: make(map[string]usage),
	}
}

// Check checks all parts of a queue and the Redis that they live in. An error means that the check could not be finished; what was found
// until then is in the report.
func Check(ctx context.Context, queue *scripts.Queue, options Options) (*Report, error) {
	first := newChecker(queue.Parts[0], options)
	first.several = len(queue.Parts) > 1
	if err := first.check(ctx); err != nil {
		return first.report, first.inPart(err)
	}
	for _, part := range queue.Parts[1:] {
		c := newChecker(part, options)
		c.report, c.first, c.several, c.servers = first.report, first, true, first.servers
		if err := c.check(ctx); err != nil {
			return c.report, c.inPart(err)
		}
	}
	return first.report, nil
}

// check runs all checks.
func (c *checker) check(ctx context.Context) (err error) {
	if c.now, err = c.store.Now(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		c.preflight, c.keyTypes, c.storedPolicies, c.walk, c.sets, c.input, c.heartbeats, c.backlog, c.usedPolicies, c.policyUses,
		c.samePolicies, c.sameBrake,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// inPart says in which part a check has failed, if there are several.
func (c *checker) inPart(err error) error {
	if c.several {
		err = fmt.Errorf("%s: %w", c.store.Keys.Queue(), err)
	}
	return err
}

// policy is where a finding about a policy is: its name, and its part if there are several.
func (c *checker) policy(name string) string {
	if c.several {
		return c.store.Keys.Policies() + " " + name
	}
	return name
}

// Preflight checks only the Redis that a queue lives in, for daemons that begin.
func Preflight(ctx context.Context, store *scripts.Store, options Options) (*Report, error) {
	c := newChecker(store, options)
	return c.report, c.preflight(ctx)
}

// keyTypes checks the types of the keys that a queue has one of.
func (c *checker) keyTypes(ctx context.Context) error {
	k := c.store.Keys
	wants := map[string]string{
		k.Input(): "list", k.Output(): "list", k.Control(): "list", k.Due(): "zset", k.Running(): "zset", k.Policies(): "hash", k.PolicyUses(): "hash",
		k.Dispatchers(): "zset", k.Pollers(): "zset", k.Workers(): "zset", k.Journal(): "stream", k.Outbox(): "stream", k.Rejected(): "list",
		k.Stats(): "hash", k.Brake(): "hash", k.Wake(): "list", k.Lane(): "list", k.Holder(): "string",
		k.Forwarded(): "hash",
	}
	names := slices.Sorted(maps.Keys(wants))
	types, err := c.store.Types(ctx, names)
	if err != nil {
		return err
	}
	for i, name := range names {
		if types[i] != "none" && types[i] != wants[name] {
			c.wrongType[name] = true
			c.note(keyType.wanting(wants[name]), name, "a "+types[i])
		}
	}
	return nil
}

// walk checks once all keys of which a queue has many.
func (c *checker) walk(ctx context.Context) error {
	checks := map[scripts.KeyKind]func(context.Context, []string) error{
		scripts.KeyModel: c.models, scripts.KeyPayload: c.orphans(payloadOrphan), scripts.KeyHistory: c.orphans(historyOrphan),
		scripts.KeyClaimed: c.claimed, scripts.KeyTaken: c.taken,
	}
	return c.store.EachKey(ctx, func(keys []scripts.QueueKey) error {
		names := make(map[scripts.KeyKind][]string)
		for _, key := range keys {
			names[key.Kind] = append(names[key.Kind], key.Name)
		}
		for kind, names := range names {
			if err := checks[kind](ctx, names); err != nil {
				return err
			}
		}
		return nil
	})
}
