package inspect

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/policy"
)

// Inspection is everything that Redis holds of one model, for checks. It shows unreadable parts.
type Inspection struct {
	Record *store.Record
	// Field names a field of the hash that cannot be read, with what was expected and found; empty: all can.
	Field string
	// PolicyMissing says that the model's policy is not stored or cannot be read.
	PolicyMissing bool
	// Schedule names the unreadable part of schedule and retry window; empty: there is none.
	Schedule string

	Sets []Membership // its places in store.ScoreIndexes
	// Indexes are its memberships of labels, blockers and limits, by its fields and in the index that was asked for.
	Indexes []IndexMembership
	// Payload says whether there is a payload; PayloadBroken why it cannot be read.
	Payload       bool
	PayloadBroken string
	History       bool // there is a history; of a model that was read atomically alone
}

// Membership is the place of a uid in a sorted set.
type Membership struct {
	In      bool
	Score   float64 // Unix ms
	Unknown bool    // the set cannot be read
}

// At reports whether the uid is in the set with exactly this time.
func (s Membership) At(at time.Time) bool {
	return s.In && s.Score == float64(at.UnixMilli())
}

// Inspect reads at most store.ScanCount models in one pipeline. A model that changes meanwhile may look torn: read it again with InspectAtomically.
func (s Part) Inspect(ctx context.Context, uids []string) ([]*Inspection, error) {
	all, err := s.inspect(ctx, uids, s.store.Clients.Read.Pipeline(), nil)
	if err != nil {
		return nil, err
	}
	return all, s.readIndexes(ctx, all)
}

// InspectAtomically reads models, each at one instant, and their membership of the indexes beside.
func (s Part) InspectAtomically(ctx context.Context, uids []string, beside ...store.Index) ([]*Inspection, error) {
	all := make([]*Inspection, 0, len(uids))
	for chunk := range slices.Chunk(uids, store.AtomicBatch) {
		before, err := s.inspect(ctx, chunk, s.store.Clients.Read.Pipeline(), nil)
		if err != nil {
			return nil, err
		}
		asked := make(map[string][]store.Index, len(chunk))
		for i, m := range before {
			asked[chunk[i]] = slices.Clone(beside)
			for _, standing := range indexesOf(&m.Record.Model) {
				asked[chunk[i]] = append(asked[chunk[i]], standing.Index)
			}
		}
		inspections, err := s.inspect(ctx, chunk, s.store.Clients.Read.TxPipeline(), asked)
		if err != nil {
			return nil, err
		}
		all = append(all, inspections...)
	}
	return all, nil
}

// inspect reads models, and in the same pipeline their places in the indexes that are asked for of each; nil: in none.
func (s Part) inspect(ctx context.Context, uids []string, pipe goredis.Pipeliner, asked map[string][]store.Index) ([]*Inspection, error) {
	if len(uids) == 0 {
		return nil, nil
	}
	reads := redis.Map(uids, func(uid string) func() *Inspection { return s.sendInspection(ctx, uid, pipe, asked) })
	members := redis.Map(uids, func(uid string) any { return uid })
	places := redis.Map(s.store.Keys.ScoreSets(), func(key string) *goredis.Cmd { return sendMembership(ctx, pipe, key, true, members...) })
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	inspections := redis.Map(reads, func(read func() *Inspection) *Inspection { return read() })
	for i, m := range inspections {
		m.Sets = redis.Map(places, func(reply *goredis.Cmd) Membership { return readMembership(reply, i) })
	}
	return inspections, s.resolveInspections(ctx, inspections)
}

// sendInspection asks for all of a model; read makes an inspection of the replies.
func (s Part) sendInspection(ctx context.Context, uid string, pipe goredis.Pipeliner, asked map[string][]store.Index) (read func() *Inspection) {
	k, m := &s.store.Keys, new(Inspection)
	hash, payload := pipe.HGetAll(ctx, k.Model(uid)), pipe.Get(ctx, k.Payload(uid))
	var history *goredis.IntCmd
	if asked != nil {
		history = pipe.Exists(ctx, k.History(uid))
	}
	places := redis.Map(asked[uid], func(index store.Index) *goredis.Cmd {
		return sendMembership(ctx, pipe, k.Index(index), index.Scored(), uid)
	})
	return func() *Inspection {
		fields, err := hash.Result()
		if m.Record = store.NewRecord(uid, fields); err != nil {
			m.Record.Broken, m.Record.Exists = true, true
		}
		m.Field, m.Record.Fault = m.Record.Fault, ""
		m.Record.ReplyTo, m.Record.Wire = s.store.Fleet().ReplyTo(), s.store.Wire()
		if m.Record.Payload, err = payload.Result(); err != nil && !redis.Missing(err) {
			m.PayloadBroken = err.Error()
		}
		m.Payload = !redis.Missing(err)
		if asked == nil {
			return m
		}
		m.History = history.Val() > 0
		m.Indexes = indexesOf(&m.Record.Model)
		for at := range m.Indexes { // one that it has joined since it was asked for is not known
			m.Indexes[at].Is.Unknown = true
		}
		for at, index := range asked[uid] {
			m.place(index).Is = readMembership(places[at], 0)
		}
		return m
	}
}

// sendMembership asks by one command for the scores of many uids in a sorted set, or whether one is in a set. Unlike redis.ZMScore, it
// distinguishes none from 0.
func sendMembership(ctx context.Context, pipe goredis.Pipeliner, key string, sorted bool, uids ...any) *goredis.Cmd {
	args := []any{"sismember", key}
	if sorted {
		args[0] = "zmscore"
	}
	return pipe.Do(ctx, append(args, uids...)...)
}

func readMembership(reply *goredis.Cmd, at int) Membership {
	value, err := reply.Result()
	if all, sorted := value.([]any); sorted {
		value = all[at]
	}
	switch value := value.(type) {
	case float64:
		return Membership{In: true, Score: value}
	case string: // of RESP2
		score, err := strconv.ParseFloat(value, 64)
		return Membership{In: err == nil, Score: score, Unknown: err != nil}
	case int64: // of a set
		return Membership{In: value == 1}
	default:
		return Membership{Unknown: err != nil}
	}
}

// resolveInspections puts policy and schedule in force, and notes those that it cannot.
func (s Part) resolveInspections(ctx context.Context, inspections []*Inspection) error {
	records := redis.Map(inspections, func(c *Inspection) *store.Record { return c.Record })
	policies, err := s.store.Policies(ctx, store.PolicyNames(slices.Values(records)))
	if err != nil && !goredis.HasErrorPrefix(err, "WRONGTYPE") {
		return err
	}
	for _, c := range inspections {
		p, found := policies[c.Record.PolicyName]
		if c.PolicyMissing = !found; !found {
			p = policy.Default()
		}
		if err := c.Record.Resolve(p, s.store.Schedules.Get); err != nil {
			c.Schedule = err.Error()
		}
	}
	return nil
}

// LacksPolicy reports whether a model names a policy that is not stored or cannot be read, at one instant.
func (s Part) LacksPolicy(ctx context.Context, uid, name string) (bool, error) {
	pipe := s.store.Clients.Read.TxPipeline()
	named, text := pipe.HGet(ctx, s.store.Keys.Model(uid), "policy"), pipe.HGet(ctx, s.store.Keys.Policies, name)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return false, fmt.Errorf("read the policy of a model: %w", err)
	}
	_, err := s.store.Report().ParsePolicy(text.Val()) // none is an empty text, which cannot be read either
	return named.Val() == name && err != nil, nil
}

// RevBroken reports whether the revision, which shows changes, is missing or no number.
func (c *Inspection) RevBroken() bool {
	_, err := strconv.ParseInt(c.Record.Rev(), 10, 64)
	return err != nil
}

// Mend is Record.Mend, with a revision for a model that has none.
func (c *Inspection) Mend(now time.Time) *store.Transition {
	t := c.Record.Mend()
	if c.RevBroken() {
		t.Revise(now)
	}
	return t
}

// WithoutModel picks the uids that have no model key.
func (s Part) WithoutModel(ctx context.Context, uids []string) (without []string, err error) {
	if len(uids) == 0 {
		return nil, nil
	}
	keys := redis.Map(uids, s.store.Keys.Model)
	if found, err := s.store.Clients.Read.Exists(ctx, keys...).Result(); err != nil || found == int64(len(keys)) {
		return nil, redis.Wrap(err, "look for models")
	}
	exist, err := redis.ReadEach(ctx, s.store.Clients.Read, "look for models", uids, func(pipe goredis.Pipeliner, uid string) *goredis.IntCmd {
		return pipe.Exists(ctx, s.store.Keys.Model(uid))
	})
	for i, uid := range uids {
		if err == nil && exist[i] == 0 {
			without = append(without, uid)
		}
	}
	return without, err
}

// OwnedList reads how long a claimed or taken list is, and the last heartbeat of its owner in the set of pollers or workers, both at one instant;
// false: the owner is not known.
func (s Part) OwnedList(ctx context.Context, list, owners, owner string) (entries int64, heartbeat time.Time, known bool, err error) {
	pipe := s.store.Clients.Read.TxPipeline()
	length, seen := pipe.LLen(ctx, list), pipe.ZScore(ctx, owners, owner)
	err = redis.Wrap(redis.ExecReads(ctx, pipe), fmt.Sprintf("read the list of %q", owner))
	// If the set of owners cannot be read, nothing is known about this one.
	return length.Val(), time.UnixMilli(int64(seen.Val())).UTC(), !redis.Missing(seen.Err()), err
}
