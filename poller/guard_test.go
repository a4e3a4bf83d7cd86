package poller_test

import (
	"testing"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// record is a model as it is stored.
func (b *bundle) record(uid string) *store.Record {
	b.t.Helper()
	records, err := b.Store.Load(b.t.Context(), []string{uid})
	must(b.t, err)
	return records[uid]
}

// doubting is a one-shot whose policy doubts a success with less than half of the usual rows.
func doubting(uid, on string) string {
	return `{"type":"put","uid":"` + uid + `","payload":{"n":1},"policy":{"timeout":"1m","retries":["1s"],"on_exhausted":"give_up","on_suspect":"` + on +
		`","guard":[{"rows":{"min":1}},{"rows":{"drop":"50%"}}]}}`
}

func TestADoubtedSuccessWaitsForAVerdictOrFailsOrIsToldOf(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		success := func(uid, rows string) {
			t.Helper()
			b.obey(`{"type":"run","uid":"` + uid + `"}`)
			b.dispatch()
			b.hear(`{"type":"success","big_table_uid":"` + uid + `","refresh_attempt_uid":"` + b.record(uid).AttemptUID + `","metrics":{"rows":` + rows + `}}`)
		}
		last := func(uid string) model.Attempt {
			t.Helper()
			past, err := b.Store.Report().History(t.Context(), uid)
			must(t, err)
			stopIf(t, len(past) == 0, "%s has no history", uid)
			return past[0]
		}
		const reason = "rows 49: over 50% less than the usual 100"
		for _, on := range []string{"tell", "fail", "hold"} {
			b.obey(doubting(on, on))
			b.dispatch()
			b.hear(`{"type":"success","big_table_uid":"` + on + `","refresh_attempt_uid":"` + b.record(on).AttemptUID + `","metrics":{"rows":100}}`)
			success(on, "100")
			success(on, "100")
			success(on, "49")
		}
		failIf(t, last("tell").Suspect != reason || last("tell").Outcome != model.EventSuccess, "tell: %+v", last("tell"))
		failIf(t, last("fail").ErrorType != "suspect" || last("fail").Reason != reason || b.record("fail").AttemptNo != 1, "fail: %+v", last("fail"))
		held := b.record("hold")
		failIf(t, !held.Held() || held.AttemptNo != 0 || last("hold").Suspect != reason || last("hold").Outcome != model.EventSuspect, "hold: %+v", held.State)
		parked, err := b.Store.ParkedBy(t.Context(), []model.Blocker{model.BySuspect}, func(model.Blocker) int { return 10 })
		must(t, err)
		equal(t, [][]string{{"hold"}}, parked)

		b.obey(`{"type":"accept","uid":"hold","by":"ann"}`)
		accepted := b.record("hold")
		failIf(t, accepted.Parked() || !accepted.LastSuccessAt.Equal(held.ParkedSince) || !last("hold").Accepted || last("hold").Outcome != model.EventSuccess, "accept: %+v", last("hold"))
		success("hold", "49") // of 100, 100, 100 and the accepted 49 the usual is 100
		b.obey(`{"type":"reject","uid":"hold","by":"ann"}`)
		rejected := b.record("hold")
		failIf(t, rejected.Parked() || rejected.AttemptNo != 1 || rejected.Trigger != model.TriggerRetry || last("hold").ErrorType != "suspect", "reject: %+v", rejected.State)
		b.obey(`{"type":"accept","uid":"tell"}`)
		failIf(t, !last("tell").Accepted || !b.record("tell").LastSuccessAt.Equal(last("tell").EndedAt), "a told success is accepted: %+v", last("tell"))
		past, err := b.Store.Report().History(t.Context(), "hold")
		must(t, err)
		failIf(t, len(past) != 5, "a verdict adds to the history: %d entries, want 5", len(past))
	})
}
