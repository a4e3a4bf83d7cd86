package flow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model/policy"
)

func TestPoliciesAndTheCircuitOfTheQueueAreSetAlikeInEveryPart(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		clients := b.Clients
		must(t, store.Create(t.Context(), clients, store.Config{Queue: "{q}"}, 3))
		q, err := store.Open(t.Context(), clients, store.Config{Queue: "{q}"})
		must(t, err)
		nightly := policy.Default()
		nightly.Name = "nightly"
		must(t, q.Fleet().PutPolicy(t.Context(), nightly))
		must(t, flow.OfQueue(q).SetQueueCircuit(t.Context(), aQueueCircuit(), "ann"))
		for _, part := range q.Parts {
			names, err := part.Report().PolicyNames(t.Context())
			must(t, err)
			circuit, err := flow.Of(part).QueueCircuit(t.Context())
			must(t, err)
			expectEqual(t, part.Keys.Queue, []string{"default", "nightly"}, names)
			expectEqual(t, part.Keys.Queue, aQueueCircuit(), circuit.QueueCircuit)
		}
		for _, want := range []bool{true, false} {
			removed, err := q.Fleet().RemovePolicy(t.Context(), "nightly")
			failIf(t, err != nil || removed != want, "want removed %v, got %v, %v", want, removed, err)
		}
	})
}

func TestEachPartTellsOfItsOwnCircuitThatIsTurnedByHand(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		clients := b.Clients
		must(t, store.Create(t.Context(), clients, store.Config{Queue: "{q}"}, 2))
		q, err := store.Open(t.Context(), clients, store.Config{Queue: "{q}"})
		must(t, err)
		_, err = flow.Of(q.Parts[1]).OpenCircuit(t.Context(), "queue", "bob", "", time.Now().Add(time.Hour), time.Now())
		must(t, err)
		for _, turn := range []func() (bool, error){
			func() (bool, error) { return flow.OfQueue(q).OpenCircuit(t.Context(), "queue", "ann", "", time.Hour) }, // one of them is open already
			func() (bool, error) { return flow.OfQueue(q).CloseCircuit(t.Context(), "queue", "ann") },
		} {
			changed, err := turn()
			failIf(t, !changed || err != nil, "want a change, got %v, %v", changed, err)
		}
		for i, want := range []string{"circuit_opened ann, circuit_closed ann, ", "circuit_opened bob, circuit_closed ann, "} {
			told := ""
			for _, entry := range clients.Read.XRange(t.Context(), q.Parts[i].Keys.Outbox, "-", "+").Val() {
				told += fmt.Sprint(entry.Values["event"], " ", entry.Values["by"], ", ")
			}
			expectEqual(t, q.Parts[i].Keys.Queue, want, told)
		}
	})
}

func TestAHoldIsAlikeInAllPartsAlsoIfItsCommandIsCarriedOutAgain(t *testing.T) {
	fixture.Parts(t, func(t *testing.T, queue *store.Queue) {
		first, second, client := queue.Parts[0], queue.Parts[1], queue.Parts[0].Clients.Write
		text, now := `{"type":"hold","id":"h1","for":"1h","reason":"they move"}`, time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
		entry := fmt.Sprintf("n%d %s", now.UnixMicro()+1, text)
		hold := func(now time.Time) error {
			return only(flow.Of(first).ApplyQueueCommand(t.Context(), fixture.Command(t, text), store.Claimed{Entry: entry}, now))
		}
		must(t, client.Set(t.Context(), second.Keys.Holds, "a text", 0).Err())
		err := hold(now)
		stopIf(t, err == nil, "want an error of the second part")
		must(t, client.Del(t.Context(), second.Keys.Holds).Err())
		must(t, hold(now.Add(time.Second)))
		read := func(part *store.Store) string { return client.HGet(t.Context(), part.Keys.Holds, "h1").Val() }
		expectEqual(t, "the hold of the second part", read(first), read(second))
	})
}

func TestAPartAloneIsNotSteered(t *testing.T) {
	fixture.Parts(t, func(t *testing.T, queue *store.Queue) {
		alone := check.Got(store.Open(t.Context(), queue.Parts[0].Clients, store.Config{Queue: "{q:1}"}))(t)
		err := flow.OfQueue(alone).SetQueueCircuit(t.Context(), aQueueCircuit(), "ann")
		want := "queue: expected the whole of {q}, found its part {q:1}"
		failIf(t, err == nil || err.Error() != want, "want %q, got %v", want, err)
	})
}
