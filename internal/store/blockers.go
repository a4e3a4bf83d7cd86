package store

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// blockerCache keeps what the texts of holds, limits and calendars say: dispatchers read them once a round.
type blockerCache struct {
	mu    sync.Mutex
	texts [3][]string
	gates model.Blockers
}

// read reads fields and values of <queue>:holds, <queue>:limits and <queue>:calendars. What cannot be read stops nothing; doctor tells of it.
func (c *blockerCache) read(s *Store, texts [3][]string) model.Blockers {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.EqualFunc(texts[:], c.texts[:], slices.Equal) {
		return c.gates
	}
	c.texts = texts
	c.gates = model.Blockers{Calendars: map[string]schedule.Calendar{}, Limits: map[string]model.Limit{}, Part: s.Place, Parts: len(s.AllParts())}
	for pair := range slices.Chunk(texts[0], 2) {
		if pair[0] == HoldChanges {
			c.gates.HoldChanges = pair[1]
			continue
		}
		hold, _ := ReadHold(pair[0], pair[1])
		c.gates.Holds = append(c.gates.Holds, hold)
	}
	slices.SortFunc(c.gates.Holds, CompareHolds)
	for pair := range slices.Chunk(texts[1], 2) {
		limit, err := ReadLimit(pair[0], pair[1])
		if key, failed := policy.ParseKey(limit.Name); err == nil && failed == nil {
			c.gates.QueueLimits = append(c.gates.QueueLimits, model.QueueLimit{Key: key, Limit: limit})
		} else if err == nil {
			c.gates.Limits[limit.Name] = limit
		}
	}
	for pair := range slices.Chunk(texts[2], 2) {
		if calendar, err := ReadCalendar(pair[1]); err == nil {
			c.gates.Calendars[pair[0]] = calendar
		}
	}
	return c.gates
}

// Blockers reads what may keep models of the queue from starting.
func (s Fleet) Blockers(ctx context.Context) (model.Blockers, error) {
	keys := []string{s.store.Keys.Holds, s.store.Keys.Limits, s.store.Keys.Calendars}
	hashes, err := redis.ReadEach(ctx, s.store.Clients.Read, "read holds, limits and calendars", keys, func(pipe goredis.Pipeliner, key string) *goredis.MapStringStringCmd {
		return pipe.HGetAll(ctx, key)
	})
	if err != nil {
		return model.Blockers{}, err
	}
	var texts [3][]string
	for i, hash := range hashes {
		for _, name := range slices.Sorted(maps.Keys(hash)) {
			texts[i] = append(texts[i], name, hash[name])
		}
	}
	return new(blockerCache).read(s.store, texts), nil
}

// MaxBlockers bounds how many gates are looked at.
const MaxBlockers = 1000

// CircuitFields are the fields of the hash <queue>:circuit:<key> that a decision depends on.
var CircuitFields = []string{"opened_at", "probe_at", "probe"}

// ReadCircuit reads the CircuitFields of a circuit.
func ReadCircuit(fields map[string]string) *model.CircuitState {
	c := &model.CircuitState{Probe: fields["probe"]}
	c.OpenedAt, _ = ReadStoredTime(fields["opened_at"])
	c.ProbeAt, _ = ReadStoredTime(fields["probe_at"])
	return c
}

// ReadQueueCircuit reads the circuit of a queue; settings that are absent or cannot be read are the defaults.
func ReadQueueCircuit(hash map[string]string) model.QueueCircuit {
	circuit := model.DefaultQueueCircuit()
	circuit.On = hash["on"] == "1"
	circuit.Open = hash["opened_at"] != ""
	read := circuit
	read.Share, _ = strconv.ParseFloat(hash["share"], 64)
	read.Window = time.Duration(redis.ParseInt(hash["window_ms"])) * time.Millisecond
	read.Min = int(redis.ParseInt(hash["min"]))
	if read.Validate() != nil {
		return circuit
	}
	return read
}

// queueCircuitFields are the fields of the hash <queue>:circuit:queue that a decision depends on.
var queueCircuitFields = []string{"on", "opened_at", "share", "window_ms", "min"}
