package scripts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// KeyCircuit is the circuit of one key, with what it has counted.
type KeyCircuit struct {
	Key string
	model.CircuitState
	Recent string // the last attempts, oldest first: 1 has failed, 0 was answered
	Opened int64  // how often it has opened
	By     string // who has opened it by hand; empty: nobody
	Parked int64  // models that wait for it
}

// Circuits reads the circuits of all keys that have counted anything within a week, in their order. It walks over the keys of Redis.
func (s *Store) Circuits(ctx context.Context) ([]KeyCircuit, error) {
	var names []string
	prefix := s.Keys.Circuit("")
	err := s.scanKeys(ctx, "list circuits", prefix, func(keys []string) error {
		for _, key := range keys {
			names = append(names, strings.TrimPrefix(key, prefix))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var circuits []KeyCircuit
	for chunk := range slices.Chunk(names, scanCount) {
		pipe := s.clients.Read.Pipeline()
		hashes := sendEach(chunk, func(name string) *redis.MapStringStringCmd { return pipe.HGetAll(ctx, s.Keys.Circuit(name)) })
		parked := sendEach(chunk, func(name string) *redis.IntCmd {
			return pipe.ZCard(ctx, s.Keys.ParkedBy(string(model.NewGate(model.GateCircuit, name))))
		})
		if err := execReads(ctx, pipe); err != nil {
			return nil, fmt.Errorf("read circuits: %w", err)
		}
		for i, name := range chunk {
			fields := hashes[i].Val()
			circuits = append(circuits, KeyCircuit{name, *readCircuit(fields), fields["recent"], whole(fields["opened"]), fields["by"], parked[i].Val()})
		}
	}
	slices.SortFunc(circuits, func(a, b KeyCircuit) int { return cmp.Compare(a.Key, b.Key) })
	return circuits, nil
}

// OpenCircuit opens the circuit of a key by hand, until a probe from an instant on is answered.
func (s *Store) OpenCircuit(ctx context.Context, key, by string, probeAt, now time.Time) error {
	pipe := s.clients.Write.TxPipeline()
	pipe.HSet(ctx, s.Keys.Circuit(key), "opened_at", model.FormatTime(now), "probe_at", model.FormatTime(probeAt), "by", by)
	pipe.HDel(ctx, s.Keys.Circuit(key), "probe")
	pipe.HIncrBy(ctx, s.Keys.Circuit(key), "opened", 1)
	pipe.Expire(ctx, s.Keys.Circuit(key), max(circuitKept, 2*probeAt.Sub(now)))
	_, err := pipe.Exec(ctx)
	return wrap(err, "open a circuit")
}

// circuitKept is how long a circuit is kept after its last attempt.
const circuitKept = 7 * 24 * time.Hour

// CloseCircuit closes the circuit of a key by hand: what it has counted is forgotten, and its models are let go. false: it was not open.
func (s *Store) CloseCircuit(ctx context.Context, key string, now time.Time) (bool, error) {
	pipe := s.clients.Write.TxPipeline()
	closed := pipe.HDel(ctx, s.Keys.Circuit(key), "opened_at")
	pipe.HDel(ctx, s.Keys.Circuit(key), "probe_at", "probe", "recent", "by")
	s.lookNow(ctx, pipe, model.NewGate(model.GateCircuit, key), now)
	_, err := pipe.Exec(ctx)
	return err == nil && closed.Val() > 0, wrap(err, "close a circuit")
}
