package flow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func ruled(t *testing.T, b *bench, name, rule string) {
	t.Helper()
	p := policy.Default()
	p.Name, p.Rule = name, rule
	must(t, b.Fleet().PutPolicy(t.Context(), p))
}

func bulksOf(t *testing.T, b *bench) []flow.Bulk {
	t.Helper()
	bulks, err := flow.Of(b.Store).Bulks(t.Context())
	must(t, err)
	return bulks
}

func TestABulkIsReadAsItWasWritten(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.Redis.HSet(t.Context(), b.Keys.Stats, "start", 77)
		b.Redis.SAdd(t.Context(), b.Keys.Label("tenant=t1"), "a", "b")
		rate, _ := policy.ReadRate("50/s")
		wish := model.Bulk{Action: model.BulkDisable, Selector: fixture.Picks(t, "tenant=t1"), Rate: rate, Force: true, Reason: "not paid", By: "ann"}
		begun, err := flow.Of(b.Store).BeginBulk(t.Context(), "x", wish)
		must(t, err)
		failIf(t, begun.Size != 2 || begun.Ticket != 77 || !begun.Since.Equal(b.Clock()), "expected two models and the 77th ticket, found %+v", begun)
		read := bulksOf(t, b)[0]
		read.Place, read.Rest, read.Seen, read.Next = "s/all/0/7", []string{"a", "b"}, 20, b.Clock().Add(time.Second)
		for _, outcome := range []model.Outcome{model.Applied, model.Busy, model.Busy, model.Already, model.Unchanged} {
			read.Count(outcome)
		}
		if moved, err := flow.Of(b.Store).MoveBulk(t.Context(), &read, b.Clock()); err != nil || !moved {
			t.Fatalf("expected it moved, found %t, %v", moved, err)
		}
		again := bulksOf(t, b)[0]
		expectEqual(t, "bulk", fmt.Sprintf("%+v", read), fmt.Sprintf("%+v", again))
		failIf(t, again.Refusals() != 2 || again.Problem != "", "expected two refusals, found %+v", again)
		hash := b.Redis.HGetAll(t.Context(), b.Keys.Bulk("x")).Val()
		for field, want := range map[string]string{"refused": "2", "refused:busy": "2", "already": "1", "unchanged": "1", "picked": "5", "done": "1", "rate": "50/s"} {
			failIf(t, hash[field] != want, "%s: expected %s, found %s", field, want, hash[field])
		}
	})
}

func TestABulkIsMovedOnlyByWhomReadItLast(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		ruled(t, b, "a", "FREQ=DAILY")
		ruled(t, b, "b", "FREQ=DAILY")
		read := bulksOf(t, b)
		b.Step(time.Second)
		ruled(t, b, "a", "FREQ=HOURLY") // begins anew
		var moved []bool
		for i := range read {
			read[i].Place, read[i].Seen, read[i].Done = "x/7", 20, 3
			is, err := flow.Of(b.Store).MoveBulk(t.Context(), &read[i], b.Clock())
			must(t, err)
			moved = append(moved, is)
		}
		expectEqual(t, "moved", []bool{false, true}, moved)
		bulks := bulksOf(t, b) // the older first
		if len(bulks) != 2 || bulks[0].Policy() != "b" || bulks[0].Seen != 20 || bulks[0].Done != 3 || bulks[0].Place != "x/7" || bulks[1].Place != store.WalkBegins {
			t.Fatalf("expected the bulk of b moved alone, found %+v", bulks)
		}
		bulks[0].Place = store.WalkEnds
		behind := bulks[0]
		for i, want := range []bool{true, false} { // it is over, and nobody moves it any more
			moved, err := flow.Of(b.Store).MoveBulk(t.Context(), []*flow.Bulk{&bulks[0], &behind}[i], b.Clock())
			failIf(t, err != nil || moved != want, "expected moved %t, found %t, %v", want, moved, err)
		}
		left := bulksOf(t, b)
		failIf(t, len(left) != 1, "expected the bulk of b over, found %+v", left)
		ended, err := flow.Of(b.Store).EndedBulks(t.Context())
		failIf(t, err != nil || len(ended) != 1 || ended[0].Policy() != "b" || !ended[0].EndedAt.Equal(b.Clock()) || ended[0].Cancelled,
			"expected the bulk of b among those that are over, found %+v, %v", ended, err)
		b.Step(time.Hour)
		ruled(t, b, "b", "FREQ=HOURLY")
		if ended, err := flow.Of(b.Store).EndedBulks(t.Context()); err != nil || len(ended) != 0 || len(bulksOf(t, b)) != 2 {
			t.Errorf("expected it begun anew, found %+v and %+v, %v", ended, bulksOf(t, b), err)
		}
		ttl := b.Redis.TTL(t.Context(), b.Keys.Bulk(store.ReplanID("b"))).Val()
		failIf(t, ttl > 0, "expected it to stay, found %v", ttl)
	})
}

func TestWhatWasOverForADayIsForgotten(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, id := range []string{"x", "y"} {
			must(t, only(flow.Of(b.Store).BeginBulk(t.Context(), id, model.Bulk{Action: model.BulkRun})))
			cancelled, err := flow.Of(b.Store).CancelBulk(t.Context(), id)
			stopIf(t, err != nil || !cancelled, "expected it cancelled, found %t, %v", cancelled, err)
			b.Step(25 * time.Hour)
		}
		ended, err := flow.Of(b.Store).EndedBulks(t.Context())
		failIf(t, err != nil || len(ended) != 1 || ended[0].ID != "y", "expected y alone, found %+v, %v", ended, err)
		if cancelled, err := flow.Of(b.Store).CancelBulk(t.Context(), "nobody"); err != nil || cancelled || b.Redis.Exists(t.Context(), b.Keys.Bulk("nobody")).Val() > 0 {
			t.Errorf("expected nothing to cancel and nothing written, found %t, %v", cancelled, err)
		}
	})
}

// One that another release has stored may be read by that one.
func TestAPolicyThatCannotBeReadIsNotWalkedFor(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		ruled(t, b, "a", "FREQ=DAILY")
		ruled(t, b, "b", "FREQ=DAILY")
		b.Redis.HSet(t.Context(), b.Keys.Policies, "a", `{"alignment":{"of":"tomorrow"}}`)
		bulks := bulksOf(t, b)
		failIf(t, len(bulks) != 2 || bulks[0].Problem == "" || bulks[1].Problem != "", "expected b readable and a not, found %+v", bulks)
	})
}
