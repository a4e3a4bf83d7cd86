package flow_test

import (
	"strings"
	"testing"

	miniredis "github.com/alicebob/miniredis/v2/server"
	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// Between any two commands of a call Redis may go away.
func TestACallThatIsCutOffSaysWhatItWanted(t *testing.T) {
	b := fixture.NewBench(t, testkit.Miniredis(t))
	ctx, k := t.Context(), b.Keys
	for _, test := range []struct {
		command, key, want string
		call               func() error
	}{
		{"EVALSHA", "", "measure the circuit of the queue: ", func() error { return only(flow.Of(b.Store).MeasureCircuit(ctx, b.Clock())) }},
		{"HGETALL", k.QueueCircuit, "read the circuit of the queue: ", func() error { return only(flow.Of(b.Store).QueueCircuit(ctx)) }},
		{"HGETALL", k.Stats, "read the circuit of the queue: ", func() error { return only(flow.Of(b.Store).QueueCircuit(ctx)) }},
		{"HGETALL", k.Stats, "set the circuit of the queue: read the circuit of the queue: ", func() error { return flow.Of(b.Store).SetQueueCircuit(ctx, aQueueCircuit(), "ann") }},
		{"EVALSHA", "", "set the circuit of the queue: ", func() error { return flow.Of(b.Store).SetQueueCircuit(ctx, aQueueCircuit(), "ann") }},
		{"EVALSHA", "", "turn a circuit: ", func() error { return turn(b, flow.CircuitClosed, "queue", 0) }},
	} {
		b.Loading(test.command, test.key)
		if err := test.call(); err == nil || !strings.HasPrefix(err.Error(), test.want) || !goredis.HasErrorPrefix(err, "LOADING") {
			t.Errorf("%s %s: error %v, want %q and the words of Redis", test.command, test.key, err, test.want)
		}
	}
}

func TestAMeasurementThatNoScriptMakesIsAnError(t *testing.T) {
	b := fixture.NewBench(t, testkit.Miniredis(t))
	b.AnswerTo("EVALSHA", "", func(peer *miniredis.Peer) { peer.WriteLen(0) })
	err := only(flow.Of(b.Store).MeasureCircuit(t.Context(), b.Clock()))
	failIf(t, err == nil || !strings.HasPrefix(err.Error(), "measure the circuit of the queue: ") || !strings.Contains(err.Error(), ": expected "),
		"error %v, want what was expected", err)
}
