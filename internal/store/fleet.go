package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Fleet has the operators' settings for many models of a part: policies, orders to worker pools, and rejected messages.
type Fleet struct{ store *Store }

// Fleet changes settings of many models of the part.
func (s *Store) Fleet() Fleet { return Fleet{s} }

// QueueFleet is Fleet of all parts of a queue.
type QueueFleet struct{ queue *Queue }

// Fleet changes settings of many models of the queue.
func (q *Queue) Fleet() QueueFleet { return QueueFleet{q} }

// Change changes every part at its instant; true: in one of them there was something to change.
func (q QueueFleet) Change(ctx context.Context, do func(part *Store, now time.Time) (bool, error)) (changed bool, err error) {
	err = q.queue.ChangeEach(func(part *Store) error {
		now, err := part.Now(ctx)
		if err != nil {
			return err
		}
		is, err := do(part, now)
		changed = changed || is
		return err
	})
	return changed, err
}

// Report reads a part for people and programs: models, policies, heartbeats and histories. It changes nothing.
type Report struct{ store *Store }

// Report reads the part for people and programs.
func (s *Store) Report() Report { return Report{s} }

// QueueReport is Report of all parts of a queue.
type QueueReport struct{ queue *Queue }

// Report reads the queue for people and programs.
func (q *Queue) Report() QueueReport { return QueueReport{q} }

var changeQueue = redis.LoadScript("change-queue.lua")

// FieldChanges is the field of <queue>:forwarded that counts the changes of operators' settings.
const FieldChanges = "changes"

// Order is the place of a queue command among all that the same part has claimed. A direct caller has the zero Order.
type Order struct{ Part, Number string }

// Change is an operator's change of one part of a queue. The zero Change changes nothing.
type Change struct {
	Fields  []string      // of the hash, each before its value; "": it goes
	Blocker model.Blocker // that it opens or closes; empty: none
	Recheck time.Time     // when a dispatcher rechecks it
	Hold    bool          // also if no model waits for it; and holds are counted
	Bulk    *BulkWish     // that begins, anew if there was one of its id; nil: none
	Deed    model.Deed    // what an actor does by it; without a verb: nothing. What was before and is after is read, unless it has that.
}

// The outcomes of scripts that change operators' settings.
const (
	ChangeConflict = iota // something has changed since it was read
	ChangeMade
	ChangeNone // there was nothing to change
)

// Compared lets try read, decide and write, until nothing of what operators set has changed from before it has read until it has written, and reports
// whether it has changed anything. The script that it writes with, in a context of its own, compares seen: so a request that Redis gets late, or
// twice, changes nothing.
func (s Fleet) Compared(ctx context.Context, try func(writing context.Context, seen string) (code int, err error)) (bool, error) {
	writing, retried := redis.TrackRetry(ctx)
	for range redis.MaxConflicts {
		seen, err := s.store.Clients.Read.HGet(ctx, s.store.Keys.Forwarded, FieldChanges).Result()
		if err = redis.IgnoreMissing(err); err != nil {
			return false, fmt.Errorf("read how often the queue has changed: %w", err)
		}
		if code, err := try(writing, seen); err != nil || code != ChangeConflict {
			return code == ChangeMade || *retried, err // there was something to change, and now there is not
		}
	}
	return false, redis.ErrConflicts
}

// Change carries out what decide reads and decides about a hash of the queue, and reports whether there was something to change.
func (s Fleet) Change(ctx context.Context, key string, by Order, decide func() (Change, error)) (bool, error) {
	return s.Compared(ctx, func(writing context.Context, seen string) (int, error) {
		c, err := decide()
		_, refused := errors.AsType[*document.Error](err)
		if err != nil && !refused || len(c.Fields) == 0 && c.Bulk == nil && by == (Order{}) {
			return ChangeNone, err
		}
		bulk, k, since, wish := cmp.Or(c.Bulk, &BulkWish{}), &s.store.Keys, "", map[string]string(nil)
		if c.Bulk != nil {
			since, wish = redis.Millis(bulk.Since), bulk.fields()
		}
		if c.Deed.Verb != "" && c.Deed.Before == "" && len(c.Fields) > 0 && ActorOf(ctx) != nil {
			if failed := s.compare(ctx, key, &c); failed != nil {
				return ChangeNone, failed
			}
		}
		deeds, deed, failed := s.DeedArgs(ctx, c.Deed)
		if failed != nil {
			return ChangeNone, failed
		}
		args := []any{seen, by.Part, by.Number, string(c.Blocker), redis.Millis(c.Recheck), redis.Flag(c.Hold), bulk.ID, since, len(c.Fields) / 2, deed}
		args = append(args, redis.Anys(c.Fields)...)
		for _, name := range slices.Sorted(maps.Keys(wish)) { // the same each time, for the simulation
			args = append(args, name, wish[name])
		}
		keys := []string{key, k.Blockers, k.Forwarded, k.Bulks, k.BulksEnded, k.Bulk(bulk.ID), deeds}
		code, failed := redis.RunScript(writing, s.store.Clients.Write, changeQueue, keys, args...).Int()
		if failed != nil || code == ChangeMade { // a command that is refused now was carried out before
			err = failed
		}
		return code, err
	})
}

// compare completes the deed of a change with what was before and is after.
func (s Fleet) compare(ctx context.Context, key string, c *Change) error {
	pairs := slices.Collect(slices.Chunk(c.Fields, 2))
	replies, err := redis.ReadEach(ctx, s.store.Clients.Read, "read what is to be changed", pairs, func(pipe goredis.Pipeliner, pair []string) *goredis.StringCmd {
		return pipe.HGet(ctx, key, pair[0])
	})
	var were, are []string
	for i, pair := range pairs {
		if err != nil {
			return err
		}
		was, is := model.Differing(replies[i], pair[1])
		if len(pairs) > 1 && was != is {
			is = pair[0] + " " + is
		}
		if was != is {
			were, are = append(were, was), append(are, is)
		}
	}
	c.Deed.Before, c.Deed.After = strings.Trim(strings.Join(were, ", "), ", "), strings.Join(are, ", ")
	return err
}
