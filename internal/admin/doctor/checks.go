// Package doctor checks the invariants of a queue and its Redis, and makes repairs that are safe.
//
// It may run beside busy daemons. It reads in chunks between which Redis serves others. What changes while it is read may look broken:
// it is read again, at one instant, before it is reported.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/store/inspect"
	"github.com/refreshd/refreshd/model"
)

// Options tune a check. The zero value is usable, but for the clock.
type Options struct {
	// Now is the clock of this machine, to compare with the clock of Redis. Nil: they are not compared.
	Now func() time.Time
	// Repair makes the safe repairs.
	Repair bool
	// Limit is how many findings of one code are reported one by one. Defaults to 20.
	Limit int
}

type checker struct {
	store   *store.Store
	in      inspect.Part // the same part, for what only a check reads
	options Options
	report  *Report
	first   *checker        // of the first part, which the others are compared with; nil: this is it
	several bool            // the queue has several parts
	servers map[string]bool // that were checked already, by their run_id
	now     time.Time       // of the queue, when the run began

	wrongType map[string]bool     // keys of a wrong type
	refused   string              // what Redis has answered to a repair; empty: it takes all
	stored    map[string]bool     // names of the stored policies
	used      map[string]usage    // by name of a policy
	closedBy  map[string][]string // the stored policies that name a calendar, by its name
	failing   map[string]int64    // by the id of a fingerprint
}

type usage struct {
	models  int
	example string // uid of one of them
}

func newChecker(store *store.Store, options Options) *checker {
	if options.Limit <= 0 {
		options.Limit = 20
	}
	return &checker{
		store: store, in: inspect.Of(store), options: options, report: &Report{Counts: make(map[string]Count)}, servers: make(map[string]bool),
		wrongType: make(map[string]bool), stored: make(map[string]bool), used: make(map[string]usage),
		closedBy: make(map[string][]string), failing: make(map[string]int64),
	}
}

// Check checks all parts of a queue and their Redis. An error means that it could not check some of them completely; the report has what it found.
func Check(ctx context.Context, queue *store.Queue, options Options) (*Report, error) {
	mending := store.WithActor(ctx, nil) // all repairs are one deed
	report, err := eachPart(queue, options, func(c *checker) error { return c.check(mending) })
	if mended := report.Repaired(); mended > 0 {
		err = errors.Join(err, queue.NoteDeed(ctx, model.Deed{Verb: "doctor repair", Number: mended}))
	}
	return report, err
}

// Preflight checks only the Redis that a queue lives in, for daemons that begin. It takes no longer than patience for each part.
func Preflight(ctx context.Context, queue *store.Queue, options Options, patience time.Duration) (*Report, error) {
	return eachPart(queue, options, func(c *checker) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return c.preflight(ctx)
	})
}

// eachPart checks every part of a queue, also behind one that cannot be checked, into one report.
func eachPart(queue *store.Queue, options Options, check func(*checker) error) (*Report, error) {
	first := newChecker(queue.Parts[0], options)
	first.several = len(queue.Parts) > 1
	var failed []error
	for i, part := range queue.Parts {
		c := first
		if i > 0 {
			c = newChecker(part, options)
			c.report, c.several, c.servers = first.report, true, first.servers
			if failed == nil { // compare only with a part that was checked completely
				c.first = first
			}
		}
		if err := check(c); err != nil {
			if c.several {
				err = fmt.Errorf("%s: %w", c.store.Keys.Queue, err)
			}
			failed = append(failed, err)
		}
	}
	return first.report, errors.Join(failed...)
}

func (c *checker) check(ctx context.Context) (err error) {
	k := c.store.Keys
	for _, step := range []struct {
		do    func(context.Context) error
		reads []string // of these keys none may have a wrong type
	}{
		{c.commands, nil}, {c.preflight, nil}, {c.readTime, nil}, {c.keyTypes, nil}, {c.storedPolicies, []string{k.Policies}}, {c.walk, nil}, {c.sets, nil},
		{c.bulkSet, []string{k.Bulks}}, {c.input, []string{k.Input}}, {c.processes, nil}, {c.rechecks, []string{k.Blockers}}, {c.heartbeats, nil}, {c.zoneData, []string{k.Zones}},
		{c.backlog, nil}, {c.usedPolicies, nil}, {c.unusedPolicies, []string{k.Policies, k.PolicyUses}},
		{c.errorCounts, []string{k.Errors, k.PastErrors, k.Failing}}, {c.flowTexts, nil}, {c.calendars, []string{k.Calendars, k.Policies}},
		{c.sameSettings, nil}, {c.sameQueueCircuit, nil},
	} {
		if c.readable(step.reads...) {
			err = step.do(ctx)
		}
		if err != nil {
			break
		}
	}
	if c.refused != "" {
		c.note(repairRefused, c.store.Keys.Queue, c.refused)
	}
	return err
}

func (c *checker) readTime(ctx context.Context) (err error) {
	c.now, err = c.store.Now(ctx)
	return err
}

func (c *checker) readable(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return c.wrongType[key] })
}

func (c *checker) keyTypes(ctx context.Context) error {
	wants := c.store.Keys.Types()
	switch _, err := c.store.Report().Types(ctx, []string{c.store.Keys.Deeds}); {
	case redis.Refused(err): // to users of older releases
		c.note(deedsRefused, c.store.Keys.Deeds, err.Error())
		delete(wants, c.store.Keys.Deeds)
	case err != nil:
		return err
	}
	names := slices.Sorted(maps.Keys(wants))
	types, err := c.store.Report().Types(ctx, names)
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

// walk checks in one pass all kinds of keys that a queue has many of.
func (c *checker) walk(ctx context.Context) error {
	k := c.store.Keys
	claimed := ownedLists{k.Claimed, k.Pollers, claimedOrphan, claimedLapsed, c.in.AddExpiredPoller}
	leave := func(ctx context.Context, owner string) error { _, err := c.store.Pool().Leave(ctx, owner); return err }
	taken := ownedLists{k.Taken, k.Workers, takenOrphan, takenLapsed, leave}
	checks := []struct {
		key   func(name string) string
		want  string
		check func(context.Context, []string) error // of keys of the wanted type; nil: only the type is checked
	}{
		{k.Payload, "string", c.orphans("a payload")}, {k.History, "list", c.orphans("a history")}, {k.Claimed, "list", c.owned(claimed)},
		{k.Taken, "list", c.owned(taken)}, {k.Reply, "list", nil}, {k.Bulk, "hash", each(c.bulk)}, {k.Error, "hash", c.fingerprints},
		{k.Told, "list", nil}, {k.Notices, "list", nil}, {k.Summary, "hash", each(c.summary)}, {k.Recipients, "zset", nil}, {k.Label, "set", c.index(store.KeyLabel)},
		{k.ParkedBy, "zset", c.blockers}, {k.Limit, "zset", c.index(store.KeyLimit)}, {k.Rate, "string", nil}, {k.Circuit, "hash", c.circuits},
	}
	return redis.ReadAhead(ctx, func(ctx context.Context, visit func([]string) error) error {
		return c.store.Report().ScanKeys(ctx, "walk over the keys", redis.AnyPrefix(k.Queue+":"), visit) // one may come twice
	}, func(ctx context.Context, keys []string) (check func() error, err error) {
		models, err := c.models(ctx, named(keys, k.Model))
		if err != nil {
			return nil, err
		}
		payloads, err := c.in.WithoutModel(ctx, named(keys, k.Payload))
		keys = slices.DeleteFunc(keys, func(key string) bool { // no poller owns commands, and other payloads are read with their models
			return key == k.ClaimedCommands || strings.HasPrefix(key, k.Payload(""))
		})
		keys = append(keys, redis.Map(payloads, k.Payload)...)
		return func() error {
			err := models()
			for _, one := range checks {
				names := named(keys, one.key)
				if err == nil && len(names) > 0 {
					names, err = c.typed(ctx, one.key, one.want, names)
				}
				if err == nil && len(names) > 0 && one.check != nil {
					err = one.check(ctx, names)
				}
			}
			return err
		}, err
	})
}

// named are the names in those keys that have one in this way.
func named(keys []string, key func(name string) string) (names []string) {
	prefix := key("")
	for _, found := range keys {
		if name, is := strings.CutPrefix(found, prefix); is {
			names = append(names, name)
		}
	}
	return names
}
