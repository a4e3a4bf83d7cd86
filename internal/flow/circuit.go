package flow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// KeyCircuit is the circuit of one key, with its counts.
type KeyCircuit struct {
	Key string
	model.CircuitState
	Recent string `json:"recent"` // the last attempts, oldest first: 1 has failed, 0 was answered
	Opened int64  `json:"opened"` // how often it has opened
	By     string `json:"by"`     // who has opened it by hand; empty: nobody
	Reason string `json:"reason"` // why, as they said
	Parked int64  `json:"parked"` // models that wait for it

	OpenParts int // of a queue of several parts: in how many it is open
}

// Circuits reads the circuits of these keys, in their order; without any, of all that have counted anything within a week: it walks over the keys
// of Redis then.
func (f Flow) Circuits(ctx context.Context, names ...string) (circuits []KeyCircuit, err error) {
	if len(names) == 0 {
		if names, err = f.namesBehind(ctx, "list circuits", f.store.Keys.Circuit("")); err != nil {
			return nil, err
		}
	}
	for chunk := range slices.Chunk(names, redis.ScanCount) {
		pipe := f.store.Clients.Read.Pipeline()
		hashes := redis.Map(chunk, func(name string) *goredis.MapStringStringCmd { return pipe.HGetAll(ctx, f.store.Keys.Circuit(name)) })
		parked := redis.Map(chunk, func(name string) *goredis.IntCmd {
			return pipe.ZCard(ctx, f.store.Keys.ParkedBy(string(model.NewBlocker(model.BlockerCircuit, name))))
		})
		if err := redis.ExecReads(ctx, pipe); err != nil {
			return nil, fmt.Errorf("read circuits: %w", err)
		}
		for i, name := range chunk {
			circuit := newKeyCircuit(name, hashes[i].Val())
			circuit.Parked = parked[i].Val()
			circuits = append(circuits, circuit)
		}
	}
	return circuits, nil
}

func newKeyCircuit(name string, fields map[string]string) KeyCircuit {
	return KeyCircuit{
		Key: name, CircuitState: *store.ReadCircuit(fields), Recent: fields["recent"], Opened: redis.ParseInt(fields["opened"]), By: fields["by"], Reason: fields["reason"],
	}
}

// namesBehind lists the rests of keys behind these prefixes, in order. It walks once over the keys of Redis.
func (f Flow) namesBehind(ctx context.Context, doing string, prefixes ...string) (names []string, err error) {
	err = f.store.Report().ScanKeys(ctx, doing, redis.AnyPrefix(prefixes...), func(keys []string) error {
		for _, key := range keys {
			for _, prefix := range prefixes {
				if name, is := strings.CutPrefix(key, prefix); is {
					names = append(names, name)
				}
			}
		}
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

var turnCircuit = redis.LoadScript("turn-circuit.lua")

// OpenCircuit opens the circuit of a key by hand, at least until probeAt: from then on a probe may close it, or the counts of the queue. true: it was
// closed before, which journal and outbox note.
func (f Flow) OpenCircuit(ctx context.Context, key, by, reason string, probeAt, now time.Time) (bool, error) {
	kept := max(circuitKept, 2*probeAt.Sub(now))
	return f.turnCircuit(ctx, model.Deed{Verb: "circuit open", What: key, By: by, Reason: reason}, CircuitOpened, key, by, document.Shorten(reason, document.MaxText), model.FormatTime(probeAt), kept, now)
}

// CloseCircuit closes the circuit of a key by hand: its counts are forgotten, and its models may start. false: it was not open.
func (f Flow) CloseCircuit(ctx context.Context, key, by string, now time.Time) (bool, error) {
	return f.turnCircuit(ctx, model.Deed{Verb: "circuit close", What: key, By: by}, CircuitClosed, key, by, "", "", circuitKept, now)
}

// circuitKept is how long a circuit is kept after its last attempt.
const circuitKept = 7 * 24 * time.Hour

func (f Flow) turnCircuit(ctx context.Context, d model.Deed, to CircuitChange, key, by, reason, probeAt string, kept time.Duration, now time.Time) (bool, error) {
	keys := []string{f.store.Keys.Circuit(key), f.store.Keys.Blockers, f.store.Keys.Stats, f.store.Keys.Journal, f.store.Keys.Outbox, f.store.Keys.Forwarded}
	deeds, deed, err := f.store.Fleet().DeedArgs(ctx, d)
	if err != nil {
		return false, err
	}
	keys = append(keys, deeds)
	keep := any(kept.Milliseconds())
	if key == model.QueueCircuitKey { // it has settings
		keep = ""
	}
	blocker := string(model.NewBlocker(model.BlockerCircuit, key))
	changed, err := f.store.Fleet().Compared(ctx, func(writing context.Context, seen string) (int, error) {
		opened, err := f.store.Clients.Read.HGet(ctx, keys[0], "opened_at").Result()
		if err = redis.IgnoreMissing(err); err != nil {
			return store.ChangeNone, err
		}
		return redis.RunScript(writing, f.store.Clients.Write, turnCircuit, keys, string(to), key, blocker, by, redis.Millis(now), model.FormatTime(now),
			probeAt, keep, f.store.Config.JournalCap, reason, seen, opened, deed).Int()
	})
	return changed, redis.Wrap(err, "turn a circuit")
}

// Circuits reads the circuits of these or all keys from all parts, open ones first. If several parts have opened one, it shows the first opening.
func (q Queue) Circuits(ctx context.Context, keys ...string) ([]KeyCircuit, error) {
	read := func(part *store.Store) ([]KeyCircuit, error) { return Of(part).Circuits(ctx, keys...) }
	return store.SumOf(q.queue, read, func(c *KeyCircuit) string { return c.Key }, (*KeyCircuit).add, func(a, b KeyCircuit) int {
		return cmp.Or(store.TrueFirst(a.Open(), b.Open()), cmp.Compare(a.Key, b.Key))
	})
}

// OpenCircuits reads the open circuits, also the one of the queue. Its cost does not grow with the models.
func (q Queue) OpenCircuits(ctx context.Context) ([]KeyCircuit, error) {
	names := []string{model.QueueCircuitKey}
	err := q.queue.Each(func(part *store.Store) error {
		blockers, err := Inspect(part).WaitedFor(ctx, store.MaxBlockers)
		for _, blocker := range blockers {
			if kind, name := blocker.Split(); kind == model.BlockerCircuit {
				names = append(names, name)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	circuits, err := q.Circuits(ctx, slices.Compact(names)...)
	return slices.DeleteFunc(circuits, func(c KeyCircuit) bool { return !c.Open() }), err
}

func (c *KeyCircuit) add(other *KeyCircuit) {
	c.Key, c.Opened, c.Parked, c.Recent = other.Key, c.Opened+other.Opened, c.Parked+other.Parked, c.Recent+other.Recent
	if !other.Open() {
		return
	}
	c.OpenParts++
	if !c.Open() || other.OpenedAt.Before(c.OpenedAt) {
		c.CircuitState, c.By, c.Reason = other.CircuitState, other.By, other.Reason
	}
}

var measureCircuit = redis.LoadScript("measure-circuit.lua")

// QueueCircuitStatus is the circuit of a queue and the counts of its window.
type QueueCircuitStatus struct {
	model.QueueCircuit
	OpenedAt            string // RFC 3339; empty: it is closed
	Successes, Failures int64
	Opened              int64 // how often
}

// CircuitChange is the new state of a circuit.
type CircuitChange string

// The changes of a circuit.
const (
	CircuitUnchanged CircuitChange = ""
	CircuitOpened    CircuitChange = "opened"
	CircuitClosed    CircuitChange = "closed"
)

// MeasureCircuit opens or closes the circuit of the queue by the counts of its window, and notes it in journal and outbox.
func (f Flow) MeasureCircuit(ctx context.Context, now time.Time) (CircuitChange, error) {
	keys := []string{f.store.Keys.QueueCircuit, f.store.Keys.Stats, f.store.Keys.Journal, f.store.Keys.Outbox}
	reply, err := redis.RunScript(ctx, f.store.Clients.Write, measureCircuit, keys, redis.Millis(now), model.FormatTime(now), f.store.Config.JournalCap).Result()
	changed, is := reply.(string)
	if err == nil && !is {
		err = fmt.Errorf("expected a text, found %v", reply)
	}
	return CircuitChange(changed), redis.Wrap(err, "measure the circuit of the queue")
}

// QueueCircuit reads the circuit of the queue.
func (f Flow) QueueCircuit(ctx context.Context) (QueueCircuitStatus, error) {
	pipe := f.store.Clients.Read.Pipeline()
	circuit, stats := pipe.HGetAll(ctx, f.store.Keys.QueueCircuit), pipe.HGetAll(ctx, f.store.Keys.Stats)
	err := redis.ExecReads(ctx, pipe)
	hash := circuit.Val()
	status := QueueCircuitStatus{QueueCircuit: store.ReadQueueCircuit(hash), OpenedAt: hash["opened_at"], Opened: redis.ParseInt(hash["opened"])}
	for field, value := range stats.Val() {
		if strings.HasPrefix(field, model.QueueCircuitSucceeded) {
			status.Successes += redis.ParseInt(value)
		}
		if strings.HasPrefix(field, model.QueueCircuitFailed) {
			status.Failures += redis.ParseInt(value)
		}
	}
	return status, redis.Wrap(err, "read the circuit of the queue")
}

// SetQueueCircuit sets the circuit of the queue and switches it on or off, with the name of who does it. Switched off, it is closed. Whether it is to
// be open is not set.
func (f Flow) SetQueueCircuit(ctx context.Context, circuit model.QueueCircuit, by string) error {
	if err := circuit.Validate(); err != nil {
		return err
	}
	set := store.Change{Deed: model.Deed{Verb: "circuit set", What: model.QueueCircuitKey, By: by}, Fields: []string{
		"on", cmp.Or(redis.Flag(circuit.On), "0"), "share", strconv.FormatFloat(circuit.Share, 'f', -1, 64),
		"window_ms", strconv.FormatInt(circuit.Window.Milliseconds(), 10), "min", strconv.Itoa(circuit.Min),
	}}
	var was QueueCircuitStatus
	_, err := f.store.Fleet().Change(ctx, f.store.Keys.QueueCircuit, store.Order{}, func() (_ store.Change, err error) {
		was, err = f.QueueCircuit(ctx)
		return set, err
	})
	if err != nil || circuit.On || !was.On && !was.Open {
		return redis.Wrap(err, "set the circuit of the queue")
	}
	now, err := f.store.Now(ctx)
	if err != nil {
		return err
	}
	_, err = f.CloseCircuit(ctx, model.QueueCircuitKey, by, now)
	return err
}

// QueueCircuit adds up the counts of all parts, with the settings of the first.
func (q Queue) QueueCircuit(ctx context.Context) (sum QueueCircuitStatus, err error) {
	err = q.queue.Each(func(part *store.Store) error {
		status, err := Of(part).QueueCircuit(ctx)
		if part == q.queue.Parts[0] {
			sum = status
			return err
		}
		sum.Successes, sum.Failures = sum.Successes+status.Successes, sum.Failures+status.Failures
		return err
	})
	return sum, err
}

// SetQueueCircuit sets the circuit of the queue in every part. Each measures for itself.
func (q Queue) SetQueueCircuit(ctx context.Context, circuit model.QueueCircuit, by string) error {
	return q.queue.ChangeEach(func(part *store.Store) error { return Of(part).SetQueueCircuit(ctx, circuit, by) })
}

// OpenCircuit opens the circuit of a key in every part, for a time; false: it was open in all.
func (q Queue) OpenCircuit(ctx context.Context, key, by, reason string, probeAfter time.Duration) (bool, error) {
	return q.queue.Fleet().Change(ctx, func(part *store.Store, now time.Time) (bool, error) {
		return Of(part).OpenCircuit(ctx, key, by, reason, now.Add(probeAfter), now)
	})
}

// CloseCircuit closes the circuit of a key in every part; false: it was open in none.
func (q Queue) CloseCircuit(ctx context.Context, key, by string) (bool, error) {
	return q.queue.Fleet().Change(ctx, func(part *store.Store, now time.Time) (bool, error) { return Of(part).CloseCircuit(ctx, key, by, now) })
}
