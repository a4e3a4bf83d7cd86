package doctor

import (
	"testing"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// TestACheckReturnsTheFaultOfEachOfItsCallsToRedis demands that a check that could not see all says so: else it would find nothing wrong.
func TestACheckReturnsTheFaultOfEachOfItsCallsToRedis(t *testing.T) {
	prepare := func(t testing.TB, queue *store.Queue) {
		must(t, queue.Fleet().PutPolicy(t.Context(), fixture.Policy(t, `{"name":"p1","rrule":"FREQ=DAILY"}`)))
		for i, part := range queue.Parts {
			b := fixture.OnPart(t, part)
			b.Fail(fixture.Homed(i), b.Clock())
			client, k := part.Clients.Write, part.Keys
			must(t, client.Del(t.Context(), k.Input).Err()) // the clock of a test answers for the pipeline that reads the fences of its entries
			must(t, client.Set(t.Context(), k.Payload("gone"), "{}", 0).Err())
			must(t, client.RPush(t.Context(), k.Claimed("p1"), "o{}").Err())
			must(t, client.ZAdd(t.Context(), k.Label("tenant=t1"), fixture.At(1, "gone")).Err())
		}
		must(t, flow.OfQueue(queue).PutHold(t.Context(), &model.Hold{ID: "h1", Since: fixture.SixOClock, Reason: "x"}))
	}
	fixture.EachFault(t, prepare, map[string]func(queue *store.Queue) error{
		"repair": func(queue *store.Queue) error { return check.Only(Check(t.Context(), queue, Options{Repair: true})) },
	})
}
