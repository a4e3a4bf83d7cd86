package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

// LostProbes returns the uids of probes that no running attempt makes, by the keys of their circuits. It reads circuit and model one after the other;
// DropProbe reads both at once.
func (s Part) LostProbes(ctx context.Context, keys []string) (lost map[string]string, err error) {
	probes, err := redis.ReadEach(ctx, s.store.Clients.Read, "read probes", keys, func(pipe goredis.Pipeliner, key string) *goredis.StringCmd {
		return pipe.HGet(ctx, s.store.Keys.Circuit(key), "probe")
	})
	if err != nil {
		return nil, err
	}
	lost = map[string]string{}
	for i, key := range keys {
		if uid := probes[i]; uid != "" {
			is, err := s.probes(ctx, s.store.Clients.Read.TxPipeline(), uid, key)
			if err != nil {
				return nil, err
			}
			if !is {
				lost[key] = uid
			}
		}
	}
	return lost, nil
}

// probes reports whether a model makes the probe of a circuit, or makes it no more.
func (s Part) probes(ctx context.Context, pipe goredis.Pipeliner, uid, key string) (bool, error) {
	probe, counted := pipe.HGet(ctx, s.store.Keys.Circuit(key), "probe"), pipe.HGet(ctx, s.store.Keys.Model(uid), "counted_by")
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return false, fmt.Errorf("read the probe of a circuit: %w", err)
	}
	state := model.State{Counted: counted.Val()}
	return probe.Val() != uid || slices.Contains(model.CountedBy(state.Counted, model.BlockerCircuit), key), nil
}

// DropProbe lets another model try a circuit whose probe no running attempt makes; false: there is another probe, or its attempt goes on.
func (s Part) DropProbe(ctx context.Context, key, uid string, now time.Time) (bool, error) {
	blocker := goredis.Z{Score: float64(now.UnixMilli()), Member: string(model.NewBlocker(model.BlockerCircuit, key))}
	dropped, err := s.store.Clients.WriteIf(ctx, func(tx *goredis.Tx) (bool, error) {
		is, err := s.probes(ctx, tx.Pipeline(), uid, key)
		return !is, err
	}, func(pipe goredis.Pipeliner) {
		pipe.HDel(ctx, s.store.Keys.Circuit(key), "probe")
		pipe.ZAddXX(ctx, s.store.Keys.Blockers, blocker)
	}, s.store.Keys.Circuit(key), s.store.Keys.Model(uid))
	return dropped, redis.Wrap(err, "drop the probe of a circuit")
}
