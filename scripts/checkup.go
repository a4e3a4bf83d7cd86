package scripts

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/redis/go-redis/v9"
)

// Checkup is everything that Redis holds of one model, as it is read to be checked. What cannot be read is told, not hidden.
type Checkup struct {
	Record *Record
	// Broken says why the key of the model cannot be read as a hash; empty: it can.
	Broken string
	// Field names a field of the hash that cannot be read, with what was expected and found; empty: all can.
	Field string
	// PolicyMissing says that the model's policy is not stored or cannot be read.
	PolicyMissing bool
	// Schedule says what of schedule and retry window cannot be read; empty: all can.
	Schedule string

	Due, Running Standing
	// Payload says whether there is a payload; PayloadBroken why it cannot be read.
	Payload       bool
	PayloadBroken string
	History       bool // there is a history
}

// Standing is the place of a uid in a sorted set.
type Standing struct {
	In      bool
	Score   float64 // Unix ms
	Unknown bool    // the set cannot be read
}

// At reports whether the uid stands in the set with exactly this time.
func (s Standing) At(at time.Time) bool { return s.In && s.Score == float64(at.UnixMilli()) }

// checkupReplies are the replies about one model.
type checkupReplies struct {
	hash         *redis.MapStringStringCmd
	payload      *redis.StringCmd
	due, running *redis.FloatCmd
	history      *redis.IntCmd
}

// CheckUp reads models in one pipeline. A model that changes meanwhile may look torn: what is suspicious is to be read again with
// CheckUpClosely.
func (s *Store) CheckUp(ctx context.Context, uids []string) ([]*Checkup, error) {
	return s.checkUp(ctx, uids, s.clients.Read.Pipeline())
}

// closely is how many models are read in one step, in which Redis serves nobody else: below a millisecond.
const closely = 20

// CheckUpClosely reads models, each at one instant.
func (s *Store) CheckUpClosely(ctx context.Context, uids []string) ([]*Checkup, error) {
	all := make([]*Checkup, 0, len(uids))
	for chunk := range slices.Chunk(uids, closely) {
		checkups, err := s.checkUp(ctx, chunk, s.clients.Read.TxPipeline())
		if err != nil {
			return nil, err
		}
		all = append(all, checkups...)
	}
	return all, nil
}

func (s *Store) checkUp(ctx context.Context, uids []string, pipe redis.Pipeliner) ([]*Checkup, error) {
	if len(uids) == 0 {
		return nil, nil
	}
	k, replies := s.Keys, make([]checkupReplies, len(uids))
	for i, uid := range uids {
		replies[i] = checkupReplies{
			pipe.HGetAll(ctx, k.Model(uid)), pipe.Get(ctx, k.Payload(uid)),
			pipe.ZScore(ctx, k.Due(), uid), pipe.ZScore(ctx, k.Running(), uid), pipe.Exists(ctx, k.History(uid)),
		}
	}
	if err := execReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	checkups := make([]*Checkup, len(uids))
	for i, uid := range uids {
		checkups[i] = newCheckup(uid, replies[i])
	}
	return checkups, s.resolveCheckups(ctx, checkups)
}

// execReads runs a pipeline in which a key of the wrong type, or none, harms only its own reply.
func execReads(ctx context.Context, pipe redis.Pipeliner) error {
	commands, err := pipe.Exec(ctx)
	if len(commands) == 0 {
		return err
	}
	for _, command := range commands {
		if err := command.Err(); err != nil && !missing(err) && !redis.HasErrorPrefix(err, "WRONGTYPE") {
			return err
		}
	}
	return nil
}

func newCheckup(uid string, replies checkupReplies) *Checkup {
	hash, err := replies.hash.Result()
	c := &Checkup{Record: &Record{Model: decode(uid, hash), Exists: len(hash) > 0 || err != nil, hash: hash}}
	if err != nil {
		c.Broken, c.Record.hash = err.Error(), map[string]string{}
	}
	c.Field, c.Record.Fault = c.Record.Fault, ""
	c.Due, c.Running = newStanding(replies.due), newStanding(replies.running)
	if c.Record.Payload, err = replies.payload.Result(); err != nil && !missing(err) {
		c.PayloadBroken = err.Error()
	}
	c.Payload, c.History = !missing(err), replies.history.Val() > 0
	return c
}

func newStanding(reply *redis.FloatCmd) Standing {
	score, err := reply.Result()
	return Standing{In: err == nil, Score: score, Unknown: err != nil && !missing(err)}
}

// resolveCheckups puts policy and schedule in force and notes what cannot be.
func (s *Store) resolveCheckups(ctx context.Context, checkups []*Checkup) error {
	names := make([]string, len(checkups))
	for i, c := range checkups {
		names[i] = c.Record.PolicyName
	}
	slices.Sort(names)
	policies, err := s.Policies(ctx, slices.Compact(names))
	if err != nil && !redis.HasErrorPrefix(err, "WRONGTYPE") {
		return err
	}
	for _, c := range checkups {
		p, found := policies[c.Record.PolicyName]
		if c.PolicyMissing = !found; !found {
			p = policy.Default()
		}
		if err := c.Record.Resolve(p, s.schedules.Get); err != nil {
			c.Schedule = err.Error()
		}
	}
	return nil
}

// RevBroken reports whether the revision, by which a change is noticed, is missing or no number.
func (c *Checkup) RevBroken() bool {
	_, err := strconv.ParseInt(c.Record.Rev(), 10, 64)
	return err != nil
}

// Mend is Record.Mend, with a revision for a model that has none.
func (c *Checkup) Mend(now time.Time) *Transition {
	t := c.Record.Mend()
	if c.RevBroken() {
		t.set = []string{fieldRev, millis(now)}
	}
	return t
}
