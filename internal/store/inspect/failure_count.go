package inspect

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/fingerprint"
)

// CountErrors counts failing models by the ids of their fingerprints.
func (s Part) CountErrors(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	failing, _ := model.ParseSelector("status=failing") // it always parses, and no other model has a fingerprint
	err := s.store.Report().EachSelected(ctx, failing, func(uids []string) error {
		ids, err := redis.ReadEach(ctx, s.store.Clients.Read, "read the fingerprints of models", uids, func(pipe goredis.Pipeliner, uid string) *goredis.StringCmd {
			return pipe.HGet(ctx, s.store.Keys.Model(uid), store.FieldError)
		})
		for _, id := range ids {
			if id != "" && fingerprint.ValidateID(id) == nil {
				counts[id]++
			}
		}
		return err
	})
	return counts, err
}

// ErrorCount is how many models a queue believes to be failing by a fingerprint, and its changes.
type ErrorCount struct {
	ID      string
	Counted int64

	kept, expires bool // the hash
	began, ended  string
}

// ErrorCounts reads the counts of these fingerprints, in their order.
func (s Part) ErrorCounts(ctx context.Context, ids []string) ([]ErrorCount, error) {
	return s.errorCounts(ctx, s.store.Clients.Read.Pipeline(), ids)
}

func (s Part) errorCounts(ctx context.Context, pipe goredis.Pipeliner, ids []string) ([]ErrorCount, error) {
	scores := redis.Map(ids, func(id string) *goredis.FloatCmd { return pipe.ZScore(ctx, s.store.Keys.Errors, id) })
	changes := redis.Map(ids, func(id string) *goredis.SliceCmd { return pipe.HMGet(ctx, s.store.Keys.Error(id), "began", "ended") })
	ttls := redis.Map(ids, func(id string) *goredis.DurationCmd { return pipe.TTL(ctx, s.store.Keys.Error(id)) })
	err := redis.ExecReads(ctx, pipe)
	counts := make([]ErrorCount, len(ids))
	for i, id := range ids {
		change := append(changes[i].Val(), nil, nil) // of a key of another type there are none
		counts[i] = ErrorCount{ID: id, Counted: int64(scores[i].Val()), kept: ttls[i].Val() == -1, expires: ttls[i].Val() > 0, began: redis.Text(change[0]), ended: redis.Text(change[1])}
	}
	return counts, redis.Wrap(err, "read the counts of fingerprints")
}

// Agrees reports whether so many models are counted, and the hash is kept while there are any and no longer.
func (c ErrorCount) Agrees(models int64) bool {
	return c.Counted == models && (models == 0 || !c.expires) && (models > 0 || !c.kept)
}

// RecountError writes down how many models are failing by a fingerprint; false: a model has begun or ceased to since the count was read, and
// nothing changes.
func (s Part) RecountError(ctx context.Context, was ErrorCount, models int64, now time.Time) (bool, error) {
	errors, past, known := s.store.Keys.Errors, s.store.Keys.PastErrors, s.store.Keys.Error(was.ID)
	written, err := s.store.Clients.WriteIf(ctx, func(tx *goredis.Tx) (bool, error) {
		is, err := s.errorCounts(ctx, tx.Pipeline(), []string{was.ID})
		return err == nil && is[0] == was, err
	}, func(pipe goredis.Pipeliner) {
		if models > 0 {
			pipe.ZAdd(ctx, errors, goredis.Z{Score: float64(models), Member: was.ID})
			pipe.ZRem(ctx, past, was.ID)
			pipe.Persist(ctx, known)
			return
		}
		pipe.ZRem(ctx, errors, was.ID)
		pipe.ZAdd(ctx, past, goredis.Z{Score: float64(now.UnixMilli()), Member: was.ID})
		pipe.Expire(ctx, past, 24*time.Hour)
		pipe.Expire(ctx, known, 24*time.Hour)
	}, errors, known)
	return written, redis.Wrap(err, "recount the models of a fingerprint")
}
