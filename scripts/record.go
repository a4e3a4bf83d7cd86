package scripts

import (
	"context"
	"fmt"
	"slices"

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

	hash map[string]string // the stored fields, "rev" among them
}

// Rev is the revision that was read; empty: none.
func (r *Record) Rev() string { return r.hash[fieldRev] }

// Load reads the models with these uids, in that order, with policy and schedule resolved. A model that is not stored has
// Exists false; one that cannot be read carries a Fault. Duplicate uids share one record.
func (s *Store) Load(ctx context.Context, uids []string) (map[string]*Record, error) {
	records := make(map[string]*Record, len(uids))
	read, err := s.readStored(ctx, uids)
	if err != nil {
		return nil, err
	}
	for uid, reply := range read.hashes {
		hash, err := reply.Result()
		record := &Record{Model: decode(uid, hash), Exists: len(hash) > 0, hash: hash}
		if err != nil {
			record.Exists, record.hash, record.Fault = true, map[string]string{}, "hash: "+err.Error()
		}
		if record.Payload, err = read.payloads[uid].Result(); err != nil && !missing(err) {
			record.Fault = "payload: " + err.Error()
		}
		record.Brake = read.brake
		records[uid] = record
	}
	return records, s.resolve(ctx, records)
}

// stored is what was read of a batch of models.
type stored struct {
	hashes   map[string]*redis.MapStringStringCmd
	payloads map[string]*redis.StringCmd
	brake    model.Brake
}

// readStored fetches hash and payload of each model, and the brake, in one pipeline; a wrong type harms only its own reply.
func (s *Store) readStored(ctx context.Context, uids []string) (stored, error) {
	read := stored{make(map[string]*redis.MapStringStringCmd, len(uids)), make(map[string]*redis.StringCmd, len(uids)), model.Brake{}}
	if len(uids) == 0 {
		return read, nil
	}
	pipe := s.clients.Read.Pipeline()
	for _, uid := range uids {
		if read.hashes[uid] == nil {
			read.hashes[uid] = pipe.HGetAll(ctx, s.Keys.Model(uid))
			read.payloads[uid] = pipe.Get(ctx, s.Keys.Payload(uid))
		}
	}
	brake := pipe.HMGet(ctx, s.Keys.Brake(), brakeSettings...)
	commands, _ := pipe.Exec(ctx) // its error is the first one only, and may be a harmless one before a lost connection
	for _, command := range commands {
		if err := command.Err(); err != nil && !missing(err) && !redis.HasErrorPrefix(err, "WRONGTYPE") {
			return stored{}, fmt.Errorf("read models: %w", err)
		}
	}
	settings := make(map[string]string, len(brakeSettings))
	for i, value := range brake.Val() {
		settings[brakeSettings[i]], _ = value.(string)
	}
	read.brake = decodeBrake(settings)
	return read, nil
}

// resolve puts policy and schedule in force. What cannot be resolved becomes a fault with a safe replacement.
func (s *Store) resolve(ctx context.Context, records map[string]*Record) error {
	var names []string
	for _, record := range records {
		names = append(names, record.PolicyName)
	}
	slices.Sort(names)
	policies, err := s.Policies(ctx, slices.Compact(names))
	if err != nil {
		return err
	}
	asks := false
	for _, record := range records {
		s.resolveRecord(record, policies)
		asks = asks || record.Policy.AsksQueueDepth()
	}
	if asks {
		return s.readQueueDepth(ctx, records)
	}
	return nil
}

func (s *Store) resolveRecord(record *Record, policies map[string]policy.Policy) {
	p, found := policies[record.PolicyName]
	if !found {
		p = policy.Default()
		record.Fault = fmt.Sprintf("policy: expected the name of a stored policy, found %s", document.Found(record.PolicyName))
	}
	if err := record.Resolve(p, s.schedules.Get); err != nil {
		record.Fault = err.Error()
	}
}

// readQueueDepth tells the records how long the input list is, for expressions that ask.
func (s *Store) readQueueDepth(ctx context.Context, records map[string]*Record) error {
	depth, err := s.clients.Read.LLen(ctx, s.Keys.Input()).Result()
	if err != nil {
		return fmt.Errorf("read the length of the input list: %w", err)
	}
	for _, record := range records {
		record.QueueDepth = int(depth)
	}
	return nil
}
