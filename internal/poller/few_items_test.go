package poller_test

import (
	"context"
	"testing"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// eachWay tests batches that are sent with templates, and without.
func eachWay(t *testing.T, test func(t *testing.T, b *bundle)) {
	for name, few := range map[string]int{"with templates": store.None, "without templates": 12} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.Store.Config.FewItems = few
				test(t, b)
			})
		})
	}
}

func TestAModelThatIsParkedAndLeavesInTheSameBatchIsParkedNoMore(t *testing.T) {
	for name, leave := range map[string]string{"removed": `{"type":"remove","uid":"m"}`, "asked for": `{"type":"run","uid":"m"}`, "accepted": `{"type":"accept","uid":"m"}`} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, b *bundle) {
				b.obey(doubting("m", "hold"))
				b.dispatch()
				b.Command(leave)
				b.hear(b.result("success", "m", `"metrics":{"rows":0}`))
				b.ExpectStats("both", map[string]int{"suspect": 1})
				if parked := b.Scores(b.Store.Keys.ParkedBy(string(model.BySuspect))); len(parked) != 0 {
					t.Errorf("got %v parked, want none", parked)
				}
			})
		})
	}
}

// starved has no memory while it commits.
type starved struct{ *store.Store }

func (s starved) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	s.Clients.Write.ConfigSet(ctx, "maxmemory", "1")
	defer s.Clients.Write.ConfigSet(ctx, "maxmemory", "0")
	return s.Store.Commit(ctx, batch)
}

// TestWithoutMemoryAMessageIsSettledAndCounted lets Redis refuse what needs memory, as long as a script has written nothing.
func TestWithoutMemoryAMessageIsSettledAndCounted(t *testing.T) {
	for name, few := range map[string]int{"with templates": store.None, "without templates": 12} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, testkit.Redis(t, "--save", "")) // private, as it has no memory for a while
			b.Store.Config.FewItems = few
			b.running("m")
			message := b.result("success", "m")
			b.hear(message)
			b.Say(message)
			round := b.roundOf(b.poller(starved{b.Store}, poller.Config{}))
			failIf(t, round.Settled != 1 || round.Left != 0, "want it settled, got %+v", round)
			b.ExpectStats("counted", map[string]int{"duplicate": 1, "success": 1})
		})
	}
}
