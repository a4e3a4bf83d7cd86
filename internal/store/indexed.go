package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

// Indexed are models of one index.
type Indexed struct {
	UIDs  []string
	Later bool // they wait for their time and nothing else, and it is over a minute away: hardly one starts while they are read
}

// EachIndexed visits the models that are disabled, wait or run, in chunks. Those that wait for their time come last, in its order, and may come
// twice. A model that moves to an index behind the walk may be missed.
func (s Report) EachIndexed(ctx context.Context, now time.Time, visit func(Indexed) error) error {
	k, seen := &s.store.Keys, newSeen()
	soon, err := s.store.Clients.Read.ZCount(ctx, k.Due, "-inf", strconv.FormatInt(now.Add(time.Minute).UnixMilli(), 10)).Result()
	if err != nil {
		return fmt.Errorf("count what starts soon: %w", err)
	}
	for _, key := range []string{k.Disabled, k.Parked, k.Urgent, k.Running, k.Due} {
		err := s.eachPage(ctx, key, func(from int64, uids []string) error {
			uids = slices.DeleteFunc(uids, func(uid string) bool { return seen.knows(uid, key != k.Due) })
			for chunk := range slices.Chunk(uids, redis.ScanCount) {
				if err := visit(Indexed{chunk, key == k.Due && from >= soon}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Two pages of a walk by rank share so many members: if more leave in front of the second one meanwhile, it is read again, from farther in front. If
// more join there than the rest of a page, some come twice, and if they are more than that and a page, all may.
const (
	rankPage   = 5 * redis.ScanCount
	rankShared = redis.ScanCount
)

// eachPage hands over the members of a sorted set in its order, with the rank from which on they were read.
func (s Report) eachPage(ctx context.Context, key string, visit func(from int64, uids []string) error) error {
	before, end := newSeen(), []string(nil) // what stood in the page before, and at its end
	for from, more := int64(0), true; more; from += rankPage - rankShared {
		page, err := s.store.Clients.Read.ZRange(ctx, key, from, from+rankPage-1).Result()
		if err != nil {
			return fmt.Errorf("read an index: %w", err)
		}
		follows := slices.ContainsFunc(end, func(uid string) bool { return slices.Contains(page, uid) })
		if !follows && from > 0 {
			from = max(0, from-rankPage) - rankPage + rankShared
			continue
		}
		more = len(page) == rankPage
		last := newSeen()
		end = slices.Clone(page[max(0, len(page)-rankShared):])
		page = slices.DeleteFunc(page, func(uid string) bool { last.knows(uid, true); return before.knows(uid, false) })
		if err := visit(from, page); err != nil {
			return err
		}
		before = last
	}
	return nil
}

var planNames = redis.Anys(fieldNames[:planFields])

// ReadPlanned reads only the plan of models that wait for their planned refresh, which takes half the time, and all fields of other models. It reads
// no payload. A model that has just begun may look like one that waits.
func (s Report) ReadPlanned(ctx context.Context, uids []string) ([]*Record, error) {
	pipe := s.store.Clients.Read.Pipeline()
	replies := redis.Map(uids, func(uid string) *goredis.StringSliceCmd {
		asked := append([]any{"hmget", s.store.Keys.Model(uid)}, planNames...)
		reply := goredis.NewStringSliceCmd(ctx, asked...) // the one of HMGET boxes each value
		_ = pipe.Process(ctx, reply)                      // it is put into the pipeline
		return reply
	})
	guess := s.store.policies.guess()
	guessed := pipe.HMGet(ctx, s.store.Keys.Policies, policyFields(guess)...)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read what is planned: %w", err)
	}
	all, records, others := make([]Record, len(uids)), make([]*Record, len(uids)), []string{}
	for i, uid := range uids {
		if all[i].Exists = true; replies[i].Err() == nil { // else it is none of these, and its key is broken
			all[i].Model = decode(uid, replies[i].Val())
		}
		records[i] = &all[i]
	}
	if err := s.store.resolve(ctx, slices.Values(records), s.store.compile(guess, guessed.Val())); err != nil {
		return nil, err
	}
	for i, uid := range uids {
		if r := records[i]; !r.Waiting() || r.Trigger != model.TriggerPlanned || !r.PlannedFor.IsZero() {
			records[i], others = nil, append(others, uid)
		}
	}
	whole, err := s.store.load(ctx, others, nil)
	return slices.AppendSeq(slices.DeleteFunc(records, func(r *Record) bool { return r == nil }), maps.Values(whole)), err
}

var errSeen = errors.New("seen")

// PicksAny reports whether a selector picks a model now, or more than so many would have to be looked at to know.
func PicksAny(ctx context.Context, s Report, selector model.Selector, most int) (bool, error) {
	from, may, err := s.store.source(ctx, selector)
	if err == nil && from.name == sourceAll { // all would be looked at
		may, err = s.models(ctx)
	}
	if err != nil || may > int64(most) {
		return err == nil, err
	}
	load, err := s.picker(ctx, selector, func(*Record) error { return errSeen })
	if err != nil {
		return false, err
	}
	looked := 0
	err = s.EachSelected(ctx, selector, func(uids []string) error {
		if looked += len(uids); looked > most {
			return errSeen
		}
		return load(uids)
	})
	if errors.Is(err, errSeen) {
		return true, nil
	}
	return false, err
}
