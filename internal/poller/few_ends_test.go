package poller_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
)

// noting notes how many messages each commit settles.
type noting struct {
	*store.Store
	settled []int
}

func (n *noting) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	n.settled = append(n.settled, len(slices.DeleteFunc(slices.Clone(batch.Items), func(item store.Item) bool { return item.Message.Entry == "" })))
	return n.Store.Commit(ctx, batch)
}

const places = 40

// crowdOfMany saves twice as many one-shots of a host as may run, starts half of them, and lets a poller apply a first result: from now on it knows
// that places are freed. It returns the other results.
func (b *bundle) crowdOfMany() (n *noting, p *poller.Poller, results []string) {
	b.t.Helper()
	var lines []string
	for i := range 2 * places {
		lines = append(lines, fmt.Sprintf(`{"type":"put","uid":"m%02d","payload":{"input_url":"http://feed/x"},"policy":{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":%d}]}}`, i, places))
	}
	b.obey(lines...)
	b.dispatch()
	b.dispatch()
	for i := range places {
		results = append(results, b.result("success", fmt.Sprintf("m%02d", i)))
	}
	n = &noting{Store: b.Store}
	p = b.poller(n, poller.Config{})
	b.Say(results[0])
	b.roundOf(p)
	n.settled = nil
	return n, p, results[1:]
}

func TestResultsThatFreePlacesAreAppliedFewAtATime(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		n, p, results := b.crowdOfMany()
		b.Say(results...)
		b.Command(`{"type":"put","uid":"plain","payload":{}}`)
		round := b.roundOf(p)
		if want := []int{20, 16, 4}; !slices.Equal(n.settled, want) || round.Applied != places || round.Started != places-1 || round.Left != 0 {
			t.Errorf("got %v messages settled by each commit, and %+v, want %v", n.settled, round, want)
		}
		b.ExpectStats("all ends and starts", map[string]int{"start": 2 * places, "success": places, "create": 2*places + 1})
	})
}

func TestAResultThatIsBlockedHoldsUpNoneOfTheOthers(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		_, p, results := b.crowdOfMany()
		b.Redis.Set(t.Context(), b.Store.Keys.Rejected, "no list", 0)
		b.Say(append([]string{"garbage"}, results...)...)
		if first := b.roundOf(p); first.Left == first.Waiting {
			t.Errorf("got %+v: want a poller that goes on at once, as most are still to be decided", first)
		}
		if round := b.roundOf(p); round.Left != 1 || round.Waiting != 1 {
			t.Errorf("got %+v, want one left, which waits for a key of another type", round)
		}
		b.ExpectStats("all ends", map[string]int{"start": 2 * places, "success": places, "create": 2 * places, "parked": places})
	})
}
