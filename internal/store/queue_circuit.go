package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

var measureCircuit = Load("measure-circuit.lua")

// queueCircuitFields are the fields of the hash <queue>:circuit:queue that a decision depends on.
var queueCircuitFields = []string{"on", "opened_at", "share", "window_ms", "min"}

// QueueCircuitStatus is the circuit of a queue and what it has counted within its window.
type QueueCircuitStatus struct {
	model.QueueCircuit
	OpenedAt            string // RFC 3339; empty: it is closed
	Successes, Failures int64
	Opened              int64 // how often
}

// CircuitChange is what a circuit has become.
type CircuitChange string

// The changes of a circuit.
const (
	CircuitUnchanged CircuitChange = ""
	CircuitOpened    CircuitChange = "opened"
	CircuitClosed    CircuitChange = "closed"
)

// MeasureCircuit opens or closes the circuit of the queue by what was counted within its window, and tells journal and outbox of it. What the
// release before has stored of it is kept.
func (s *Store) MeasureCircuit(ctx context.Context, now time.Time) (CircuitChange, error) {
	keys := []string{s.Keys.QueueCircuit(), s.Keys.Stats(), s.Keys.Journal(), s.Keys.Outbox(), s.Keys.FormerCircuit()}
	reply, err := runValues(ctx, s.Clients.Write, measureCircuit, 3, keys, Millis(now), model.FormatTime(now), s.config.JournalCap)
	if err != nil {
		return CircuitUnchanged, fmt.Errorf("measure the circuit of the queue: %w", err)
	}
	return CircuitChange(Text(reply[0])), nil
}

// QueueCircuit reads the circuit of the queue, also where only the release before has stored one.
func (s *Store) QueueCircuit(ctx context.Context) (QueueCircuitStatus, error) {
	pipe := s.Clients.Read.Pipeline()
	circuit, former, stats := pipe.HGetAll(ctx, s.Keys.QueueCircuit()), pipe.HGetAll(ctx, s.Keys.FormerCircuit()), pipe.HGetAll(ctx, s.Keys.Stats())
	if err := ExecReads(ctx, pipe); err != nil {
		return QueueCircuitStatus{}, fmt.Errorf("read the circuit of the queue: %w", err)
	}
	hash := circuit.Val()
	if hash["on"] == "" && len(former.Val()) > 0 {
		hash = former.Val()
	}
	status := QueueCircuitStatus{QueueCircuit: decodeQueueCircuit(hash), OpenedAt: hash["opened_at"], Opened: parseInt(hash["opened"])}
	for field, value := range stats.Val() {
		if strings.HasPrefix(field, model.QueueCircuitSucceeded) {
			status.Successes += parseInt(value)
		}
		if strings.HasPrefix(field, model.QueueCircuitFailed) {
			status.Failures += parseInt(value)
		}
	}
	return status, nil
}

// decodeQueueCircuit reads the circuit of a queue; settings that are absent or cannot be read are the defaults.
func decodeQueueCircuit(hash map[string]string) model.QueueCircuit {
	circuit := model.DefaultQueueCircuit()
	circuit.On = hash["on"] == "1"
	circuit.Open = hash["opened_at"] != ""
	read := circuit
	read.Share, _ = strconv.ParseFloat(hash["share"], 64)
	read.Window = time.Duration(parseInt(hash["window_ms"])) * time.Millisecond
	read.Min = int(parseInt(hash["min"]))
	if read.Validate() != nil {
		return circuit
	}
	return read
}

// SetQueueCircuit sets the circuit of the queue and switches it on or off, with the name of who does it. Switched off, it is closed. Whether it is to
// be open is not set.
func (s Fleet) SetQueueCircuit(ctx context.Context, circuit model.QueueCircuit, by string) error {
	if err := circuit.Validate(); err != nil {
		return err
	}
	set := change{fields: []string{
		"on", cmp.Or(flag(circuit.On), "0"), "share", strconv.FormatFloat(circuit.Share, 'f', -1, 64),
		"window_ms", strconv.FormatInt(circuit.Window.Milliseconds(), 10), "min", strconv.Itoa(circuit.Min),
	}}
	var was QueueCircuitStatus
	_, err := s.change(ctx, s.Keys.QueueCircuit(), order{}, func() (_ change, err error) {
		was, err = s.QueueCircuit(ctx)
		return set, err
	})
	if err != nil || circuit.On || !was.On && !was.Open {
		return Wrap(err, "set the circuit of the queue")
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	_, err = s.CloseCircuit(ctx, model.QueueCircuitKey, by, now)
	return err
}

// QueueCircuit adds up what all parts have counted. The settings are those of the first.
func (q QueueFleet) QueueCircuit(ctx context.Context) (sum QueueCircuitStatus, err error) {
	err = q.Each(func(part *Store) error {
		status, err := part.QueueCircuit(ctx)
		if part == q.Parts[0] {
			sum = status
			return err
		}
		sum.Successes, sum.Failures = sum.Successes+status.Successes, sum.Failures+status.Failures
		return err
	})
	return sum, err
}

// SetQueueCircuit sets the circuit of the queue in every part. Each measures for itself.
func (q QueueFleet) SetQueueCircuit(ctx context.Context, circuit model.QueueCircuit, by string) error {
	return q.write(func(part *Store) error { return part.Fleet().SetQueueCircuit(ctx, circuit, by) })
}
