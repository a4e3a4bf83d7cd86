package poller_test

import (
	"testing"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/report"
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
			past, err := report.Of(b.Store).History(t.Context(), uid)
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
		parked, err := flow.Of(b.Store).ParkedBy(t.Context(), []model.Blocker{model.BySuspect}, func(model.Blocker) int { return 10 })
		must(t, err)
		equal(t, [][]string{{"hold"}}, parked)

		b.obey(`{"type":"accept","uid":"hold","by":"ann"}`)
		accepted := b.record("hold")
		failIf(t, accepted.Parked() || !accepted.LastSuccessAt.Equal(held.ParkedSince) || !last("hold").Accepted || last("hold").Outcome != model.EventSuccess, "accept: %+v", last("hold"))
		success("hold", "20") // the accepted 49 is now usual
		b.obey(`{"type":"reject","uid":"hold","by":"ann"}`)
		rejected := b.record("hold")
		failIf(t, rejected.Parked() || rejected.AttemptNo != 1 || rejected.Trigger != model.TriggerRetry || last("hold").ErrorType != "suspect", "reject: %+v", rejected.State)
		b.obey(`{"type":"accept","uid":"tell"}`)
		failIf(t, !last("tell").Accepted || !b.record("tell").LastSuccessAt.Equal(last("tell").EndedAt), "a told success is accepted: %+v", last("tell"))
		past, err := report.Of(b.Store).History(t.Context(), "hold")
		must(t, err)
		failIf(t, len(past) != 5, "a verdict adds to the history: %d entries, want 5", len(past))

		b.obey(`{"type":"run","uid":"hold"}`)
		b.dispatch()
		uids := `"big_table_uid":"hold","refresh_attempt_uid":"` + b.record("hold").AttemptUID + `"`
		b.hear(`{"type":"ready",` + uids + `,"metrics":{"rows":20},"reply_to":"bigtables:reply:w1"}`)
		b.expectReplies("bigtables:reply:w1", `{`+uids+`,"verdict":"hold","reason":"rows 20: over 50% less than the usual 49"}`)
	})
}

func TestAWorkerThatAsksBeforeItPublishesGetsTheVerdictOnItsList(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		const list, uids = "bigtables:reply:w1", `{"big_table_uid":"a","refresh_attempt_uid":"`
		attempt := ""
		say := func(kind, rows, more string) {
			t.Helper()
			b.hear(`{"type":"` + kind + `","big_table_uid":"a","refresh_attempt_uid":"` + attempt + `","metrics":{"rows":` + rows + `}` + more + `}`)
		}
		ask := func(rows, verdict string) {
			t.Helper()
			before := b.record("a")
			say("ready", rows, `,"reply_to":"`+list+`"`)
			b.expectReplies(list, uids+attempt+`","verdict":`+verdict+`}`)
			equal(t, before.State, b.record("a").State)
			must(t, server.Client(t).Del(t.Context(), list).Err())
		}
		const doubt = `,"reason":"rows 0: expected at least 1"`
		b.obey(doubting("a", "hold"))
		b.dispatch()
		attempt = b.record("a").AttemptUID
		ask("5", `"publish"`)
		ask("0", `"hold"`+doubt)
		ask("0", `"hold"`+doubt)
		say("success", "0", `,"published":false`)
		held := b.record("a")
		failIf(t, !held.Held() || !held.Unpublished, "not published: %+v", held.State)
		ask("0", `"stale"`)

		b.obey(`{"type":"accept","uid":"a","by":"ann"}`)
		b.dispatch()
		attempt = b.record("a").AttemptUID
		ask("0", `"publish"`)
		say("success", "0", "")
		done := b.record("a")
		failIf(t, done.Unpublished || done.LastSuccessAt.IsZero(), "published: %+v", done.State)
		b.obey(`{"type":"run","uid":"a"}`)
		b.dispatch()
		attempt = b.record("a").AttemptUID
		ask("0", `"hold"`+doubt)
		past, err := report.Of(b.Store).History(t.Context(), "a")
		must(t, err)
		failIf(t, len(past) != 2 || !past[1].Good() || !past[1].Unpublished || past[0].Unpublished, "%+v", past)

		life := server.Client(t).TTL(t.Context(), list).Val()
		failIf(t, life > 0, "taken replies leave a list: %s", life)
		b.obey(`{"type":"remove","uid":"a"}`)
		say("ready", "0", `,"reply_to":"`+list+`"`)
		b.expectReplies(list, uids+attempt+`","verdict":"stale"}`)
		life = server.Client(t).TTL(t.Context(), list).Val()
		failIf(t, life <= 0, "a reply that nobody takes stays for ever")
	})
}

func TestAReadyReachesNoOtherListThanOneForReplies(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		b.obey(doubting("a", "hold"))
		b.dispatch()
		ready := `{"type":"ready","big_table_uid":"a","refresh_attempt_uid":"` + b.record("a").AttemptUID + `"`
		keys := server.Client(t).DBSize(t.Context()).Val()
		for _, bad := range []string{``, `,"reply_to":""`, `,"reply_to":7`, `,"reply_to":"bigtables-input"`, `,"reply_to":"other:reply:n"`, `,"reply_to":"bigtables:reply:a:b"`, `,"reply_to":"bigtables:reply:"`} {
			b.hear(ready + bad + `}`)
		}
		equal(t, "7", server.Client(t).HGet(t.Context(), "bigtables:stats", "malformed").Val())
		failIf(t, server.Client(t).DBSize(t.Context()).Val() != keys+1, "another key than rejected is written")
	})
}
