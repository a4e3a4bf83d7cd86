package store

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestOneNotifierAloneSettlesALineAndNoNoticeIsForgotten(t *testing.T) {
	testkit.Both(t, func(t *testing.T, s *testkit.Server) {
		b := newBench(t, s)
		ctx := t.Context()
		if entries, err := b.Outbox().ReadOutbox(ctx, 1); err != nil || len(entries) != 0 {
			t.Fatal(entries, err)
		}
		push := func(notice string) {
			t.Helper()
			must(t, b.redis.XAdd(ctx, &redis.XAddArgs{Stream: b.Keys.Outbox, Values: []string{"event", "disabled"}}).Err())
			entries, err := b.Outbox().ReadOutbox(ctx, 1)
			if err != nil || len(entries) != 1 {
				t.Fatal(entries, err)
			}
			told := []Addressed{{"ops", "ops", b.now, notice}}
			if n, err := b.Outbox().Route(ctx, []Routed{{ID: entries[0].ID, Told: told}}); err != nil || n != 1 {
				t.Fatal(n, err)
			}
		}
		line := func() *Mailbox {
			t.Helper()
			line, err := b.Outbox().ReadMailbox(ctx, "ops", "ops", 10)
			must(t, err)
			return line
		}
		settle := func(what string, line *Mailbox, to Settlement, want bool) {
			t.Helper()
			to.At = b.now
			if settled, err := b.Outbox().Settle(ctx, line, to); err != nil || settled != want {
				t.Errorf("%s: settled %t, %v, want %t", what, settled, err, want)
			}
		}
		push("n1")
		mine, other := line(), line()
		settle("taken in hand", mine, Settlement{Delivery: Delivery{By: "me", Size: 1}, Next: b.now.Add(time.Second)}, true)
		b.unchanged(func() {
			settle("by another who read before", other, Settlement{Delivery: Delivery{By: "other", Size: 1}, Next: b.now}, false)
		})
		push("n2")
		settle("told", mine, Settlement{Next: b.now, Done: 1, Counter: "notices_told"}, true)
		b.unchanged(func() {
			// The delivery is what it was when that one read: none.
			settle("told again", other, Settlement{Next: b.now, Done: 1, Counter: "notices_told"}, false)
			settle("over, though another has come", mine, Settlement{}, false)
		})
		if rest := line(); len(rest.Notices) != 1 || rest.Notices[0] != "n2" {
			t.Errorf("left %v", rest.Notices)
		}
		settle("failed", line(), Settlement{Delivery: Delivery{Tries: 3}, Next: b.now, Done: 0}, true)
		last := line()
		settle("given up", last, Settlement{Delivery: last.Delivery, Next: b.now, Done: 1, Undelivered: "HTTP 500"}, true)
		settle("over", line(), Settlement{}, true)
		if all, err := b.Outbox().Undelivered(ctx); err != nil || len(all) != 1 || all[0].Tries != 3 || all[0].Reason != "HTTP 500" || all[0].Notices[0] != "n2" {
			t.Errorf("kept %+v, %v", all, err)
		}
		if n := b.redis.Exists(ctx, b.Keys.Recipients("ops"), b.Keys.Notices("ops"), b.Keys.Deliveries).Val(); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}
