package dispatcher_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/model/policy"
)

const circuitOfHosts = `{"timeout":"1m","retries":["10m","10m"],"on_exhausted":"give_up","circuit":{"key":"{host(input_url)}","open_after":"3 of 5","on":["http_5xx","timeout"],"probe":"5m"}}`

// broken opens the circuit of host t1 by three failures; the other models of the host wait.
func (b *bundle) broken(d *dispatcher.Dispatcher, waiting int) {
	b.t.Helper()
	uids := uidsOf("t1", 3+waiting)
	b.fleet(circuitOfHosts, uids[:3]...)
	b.settle(d)
	b.failWith(policy.Failure{ErrorType: "http_503"}, uids[:3]...)
	b.fleet(circuitOfHosts, append(uidsOf("t2", 1), uids[3:]...)...)
	b.settle(d)
}

// probed lets a probe try it when its time has come.
func (b *bundle) probed(d *dispatcher.Dispatcher, waiting int) {
	b.t.Helper()
	b.broken(d, waiting)
	b.Clock.Turn(5 * time.Minute)
	b.settle(d)
}

// events are what a stream tells under these names.
func (b *bundle) events(stream string, names ...string) (found []string) {
	b.t.Helper()
	entries, err := b.Redis.XRange(b.t.Context(), stream, "-", "+").Result()
	must(b.t, err)
	for _, entry := range entries {
		if name, _ := entry.Values["event"].(string); slices.Contains(names, name) {
			found = append(found, name)
		}
	}
	return found
}

func TestAnOpenCircuitParksTheModelsOfItsKeyUncountedAndTellsOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.broken(d, 4)
		equal(t, map[string]int{"t2": 1}, counts(b.runs()))
		parked := b.Scores(b.Store.Keys.ParkedBy("circuit:host=t1"))
		failIf(t, len(parked) != 4, "want four parked, got %v", parked)
		hash := b.Model("t1/m03")
		failIf(t, hash["attempt_no"] != "" || hash["failing_since"] != "", "a parked model was counted: %v", hash)
		for _, stream := range []string{b.Store.Keys.Journal, b.Store.Keys.Outbox} {
			diff := cmp.Diff([]string{"circuit_opened"}, b.events(stream, "circuit_opened", "circuit_closed"))
			failIf(t, diff != "", "%s: %s", stream, diff)
		}
	})
}

func TestAProbeWhoseWorkerDiesIsSettledByItsDeadline(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.probed(d, 2)
		b.Redis.Del(t.Context(), b.Store.Keys.Input)
		b.Clock.Turn(time.Minute)
		b.settle(d)
		hash := b.circuit("host=t1")
		failIf(t, hash["probe"] != "" || hash["opened_at"] == "", "the circuit is %v", hash)
		b.Clock.Turn(5 * time.Minute)
		b.settle(d)
		n := len(b.runs()["t1"])
		failIf(t, n != 1, "want the next probe, got %d", n)
	})
}

func (b *bundle) circuit(key string) map[string]string {
	b.t.Helper()
	hash, err := b.Redis.HGetAll(b.t.Context(), b.Store.Keys.Circuit(key)).Result()
	must(b.t, err)
	return hash
}
