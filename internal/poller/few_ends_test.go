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

func TestResultsThatFreePlacesAreAppliedFewAtATime(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		const places = 40
		var lines, results []string
		for i := range 2 * places {
			lines = append(lines, fmt.Sprintf(`{"type":"put","uid":"m%02d","payload":{"input_url":"http://feed/x"},"policy":{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":%d}]}}`, i, places))
		}
		b.obey(lines...)
		b.dispatch()
		b.dispatch()
		for i := range places {
			results = append(results, b.result("success", fmt.Sprintf("m%02d", i)))
		}
		n := &noting{Store: b.Store}
		p := b.poller(n, poller.Config{})
		b.Say(results[0])
		b.roundOf(p) // from now on it knows that places are freed
		n.settled = nil
		b.Say(results[1:]...)
		b.Command(`{"type":"put","uid":"plain","payload":{}}`)
		round := b.roundOf(p)
		if want := []int{16, 16, 8}; !slices.Equal(n.settled, want) || round.Applied != places || round.Started != places-1 || round.Left != 0 {
			t.Errorf("got %v messages settled by each commit, and %+v, want %v", n.settled, round, want)
		}
		b.ExpectStats("all ends and starts", map[string]int{"start": 2 * places, "success": places, "create": 2*places + 1})
	})
}
