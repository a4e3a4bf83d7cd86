package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// Record is one model as it was read, with what a transition needs to notice that it has changed since.
type Record struct {
	model.Model
	// Exists is false for a model that is not stored.
	Exists bool
	// Broken: the key of the model holds something else than a hash, which Fault tells.
	Broken bool

	rev    string
	former string   // rev of the model that was removed on the way to this one; empty: none
	stored values   // of the fields, as they are stored
	others []string // names of fields that are none of a model: they go with the next transition
}

// NewRecord reads a hash.
func NewRecord(uid string, hash map[string]string) *Record {
	r := &Record{Exists: len(hash) > 0}
	rev, stored, labels, others := split(hash)
	r.rev, r.stored, r.others = rev, stored, others
	r.Model = decode(uid, r.stored)
	r.Labels = labels
	return r
}

// Rev is the revision that was read; empty: none.
func (r *Record) Rev() string { return r.rev }

// Status derives the status at now, see model.State; also of what is no model.
func (r *Record) Status(now time.Time, queued bool) model.Status {
	if r.Broken {
		return model.StatusBroken
	}
	return r.State.Status(now, queued)
}

// RefreshUnreadable reports whether there is a refresh_at that is no time. Without one the model waits for nothing.
func (r *Record) RefreshUnreadable() bool {
	return r.stored.of(fieldRefreshAt) != "" && r.RefreshAt.IsZero()
}

// Uses reports whether the model is stored and uses the policy that is, or was, stored under a name.
func (r *Record) Uses(name string) bool {
	return r.Exists && cmp.Or(r.PolicyName, DefaultPolicyName) == name
}

// Load reads the models with these uids, in that order, with payload, and with policy and schedule resolved. A model that is not
// stored has Exists false; one that cannot be read carries a Fault. Duplicate uids share one record.
func (s *Store) Load(ctx context.Context, uids []string) (map[string]*Record, error) {
	return s.load(ctx, uids, uids)
}

// load reads the models with these uids, and the payloads of some of them.
func (s *Store) load(ctx context.Context, uids, whole []string) (map[string]*Record, error) {
	records := make(map[string]*Record, len(uids))
	if len(uids) == 0 {
		return records, nil
	}
	hashes, payloads := make(map[string]*redis.MapStringStringCmd, len(uids)), make(map[string]*redis.StringCmd, len(uids))
	pipe := s.Clients.Read.Pipeline()
	for _, uid := range uids {
		if hashes[uid] == nil {
			hashes[uid] = pipe.HGetAll(ctx, s.Keys.Model(uid))
		}
	}
	for _, uid := range whole {
		if payloads[uid] == nil {
			payloads[uid] = pipe.Get(ctx, s.Keys.Payload(uid))
		}
	}
	settings := pipe.HMGet(ctx, s.Keys.QueueCircuit, queueCircuitFields...)
	guess := s.policies.guess()
	guessed := pipe.HMGet(ctx, s.Keys.Policies, policyFields(guess)...)
	if err := ExecReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	circuit := decodeQueueCircuit(NamedValues(queueCircuitFields, settings.Val()))
	for uid, reply := range hashes {
		hash, err := reply.Result()
		record := NewRecord(uid, hash)
		if err != nil {
			record.Exists, record.Broken, record.Fault = true, true, "hash: "+err.Error()
		}
		if payload := payloads[uid]; payload != nil {
			if record.Payload, err = payload.Result(); err != nil && !Missing(err) {
				record.Fault = "payload: " + err.Error()
			}
		}
		record.QueueCircuit, record.ReplyTo, record.Wire, record.Traces = circuit, s.ReplyTo(), s.Wire(), s.config.Traces
		records[uid] = record
	}
	texts, _ := guessed.Result() // of a key of another type none: it is asked for again, and that is an error
	return records, s.resolve(ctx, records, s.compile(guess, texts))
}

// NamedValues gives the values of HMGET their names.
func NamedValues(names []string, values []any) map[string]string {
	named := make(map[string]string, len(names))
	for i, value := range values {
		named[names[i]], _ = value.(string)
	}
	return named
}

// PolicyNames lists the policies that records name.
func PolicyNames(records iter.Seq[*Record]) (names []string) {
	for record := range records {
		names = append(names, record.PolicyName)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// resolve puts policy and schedule in force; some policies are known already. What cannot be resolved becomes a fault with a safe
// replacement.
func (s *Store) resolve(ctx context.Context, records map[string]*Record, policies map[string]policy.Policy) error {
	names := PolicyNames(maps.Values(records))
	s.policies.mu.Lock()
	s.policies.last = slices.DeleteFunc(slices.Clone(names[:min(len(names), maxGuessed)]), func(name string) bool { return name == "" })
	s.policies.mu.Unlock()
	unknown := slices.DeleteFunc(names, func(name string) bool { _, known := policies[name]; return known })
	more, err := s.Policies(ctx, unknown)
	if err != nil {
		return err
	}
	maps.Copy(policies, more)
	asks := false
	for _, record := range records {
		p, found := policies[record.PolicyName]
		if !found {
			p = policy.Default()
			record.Fault = fmt.Sprintf("policy: expected the name of a stored policy, found %s", document.Found(record.PolicyName))
		}
		if err := record.Resolve(p, s.Schedules.Get); err != nil {
			record.Fault = err.Error()
		}
		asks = asks || p.AsksQueueDepth()
	}
	if !asks {
		return nil
	}
	depth, err := s.Clients.Read.LLen(ctx, s.Keys.Input).Result()
	for _, record := range records {
		record.QueueDepth = int(depth)
	}
	return Wrap(err, "read the length of the input list")
}
