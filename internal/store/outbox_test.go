package store

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func TestAnEntryOfTheOutboxGoesWhenAllHaveReadItOrNobodyHasInTime(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		ctx, key := t.Context(), b.Keys.Outbox
		written := func(age time.Duration, sequence int) { // on the clock of Redis
			now, err := b.Now(ctx)
			must(t, err)
			id := fmt.Sprintf("%d-%d", now.Add(-age).UnixMilli(), sequence)
			must(t, b.redis.XAdd(ctx, &redis.XAddArgs{Stream: key, ID: id, Values: []string{"event", "disabled"}}).Err())
		}
		expect := func(what string, unread, counted, left int64) {
			t.Helper()
			got, err := b.TrimOutbox(ctx)
			must(t, err)
			all, _ := strconv.ParseInt(b.redis.HGet(ctx, b.Keys.Stats, "outbox_expired").Val(), 10, 64)
			expectEqual(t, what+": went unread, of all, and left", [3]int64{unread, counted, left}, [3]int64{int64(got), all, b.redis.XLen(ctx, key).Val()})
		}
		expect("nothing", 0, 0, 0)
		written(2*time.Hour, 1)
		written(time.Hour+time.Minute, 1)
		for i := range 7 {
			written(time.Minute, i+1)
		}
		expect("nobody reads", 2, 2, 7)
		b.config.OutboxCap = 5
		expect("too many", 2, 4, 5)
		// Two groups: ours, and that of a foreign program.
		foreign := "billing"
		must(t, only(b.Outbox().ReadOutbox(ctx, 1)))
		must(t, b.redis.XGroupCreate(ctx, key, foreign, "0").Err())
		entries, err := b.Outbox().ReadOutbox(ctx, 4)
		stopIf(t, err != nil || len(entries) != 4, "%v, %v", entries, err)
		expect("read, and not acknowledged", 0, 4, 5)
		var routed []Routed
		for _, entry := range entries {
			routed = append(routed, Routed{ID: entry.ID})
		}
		for i, want := range []int{3, 0} {
			n, err := b.Outbox().Route(ctx, routed[1:])
			must(t, err)
			expectEqual(t, fmt.Sprint("routed ", i), want, n)
		}
		expect("the first of ours is pending", 0, 4, 5)
		must(t, only(b.Outbox().Route(ctx, routed[:1])))
		expect("the others have not read", 0, 4, 5)
		read := &redis.XReadGroupArgs{Group: foreign, Consumer: "c", Streams: []string{key, ">"}, Count: 3, Block: -1}
		streams, err := b.redis.XReadGroup(ctx, read).Result()
		must(t, err)
		for _, message := range streams[0].Messages[:2] {
			b.redis.XAck(ctx, key, foreign, message.ID)
		}
		expect("two were acknowledged by both", 0, 4, 3)
		must(t, b.redis.XGroupDestroy(ctx, key, foreign).Err())
		expect("ours alone", 0, 4, 1)
		if left, err := b.Outbox().ReadOutbox(ctx, 9); err != nil || len(left) != 1 {
			t.Errorf("what nobody has read is left: %v, %v", left, err)
		}
	}, func(c *Config) { c.Clock, c.OutboxKeep, c.OutboxCap = nil, time.Hour, 100 })
}

func TestWhatFailsFromAFailureOnStandsInTheOutboxWithItsReason(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(runningKeys())
		record := b.load("m1")
		record.Policy.FailingFrom = record.AttemptNo
		b.mustApply(record.Decide(record.Fail(policy.Failure{Reason: "HTTP 503", ErrorType: "http_503"}, b.now), b.now))
		entries := b.redis.XRange(t.Context(), b.Keys.Outbox, "-", "+").Val()
		if len(entries) != 1 || entries[0].Values["event"] != "failing" || entries[0].Values["reason"] != "HTTP 503" || entries[0].Values["error_type"] != "http_503" || entries[0].Values["refresh_why"] == "" {
			t.Errorf("got %v", entries)
		}
	})
}

func TestTheIDsOfAStreamAreComparedAsNumbers(t *testing.T) {
	for _, ids := range [][2]string{{"9-0", "10-0"}, {"1-9", "1-10"}, {"1-0", "1-1"}} {
		failIf(t, !before(ids[0], ids[1]) || before(ids[1], ids[0]) || before(ids[0], ids[0]), "want %s before %s alone", ids[0], ids[1])
	}
}

func TestTheOutboxCountsWhatIsNotDelivered(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		expect := func(what string, want int64, oldest string) {
			t.Helper()
			for range 2 { // and the trimming changes nothing
				stats, err := b.Report().Stats(ctx)
				failIf(t, err != nil || stats.Outbox != want || model.FormatTime(stats.OldestNotice) != oldest,
					"%s: counted %d since %q, %v, want %d since %q", what, stats.Outbox, model.FormatTime(stats.OldestNotice), err, want, oldest)
				must(t, only(b.TrimOutbox(ctx)))
			}
		}
		expect("nothing", 0, "")
		must(t, only(b.Outbox().ReadOutbox(ctx, 2)))
		for i := range 3 {
			notice := []string{"event", "disabled", "at", model.FormatTime(b.now.Add(time.Duration(i) * time.Second))}
			must(t, b.redis.XAdd(ctx, &redis.XAddArgs{Stream: b.Keys.Outbox, Values: notice}).Err())
		}
		first, third := model.FormatTime(b.now), model.FormatTime(b.now.Add(2*time.Second))
		expect("nobody reads", 3, first)
		entries, err := b.Outbox().ReadOutbox(ctx, 2)
		must(t, err)
		expect("read", 3, first)
		notice := fmt.Sprintf(`{"at":%q}`, first)
		told := []Addressed{{"ops", "ops a", b.now, notice}, {"ops", "ops b", b.now, notice}}
		must(t, only(b.Outbox().Route(ctx, []Routed{{ID: entries[0].ID, Told: told}})))
		expect("one is routed to two", 4, first)
		must(t, only(b.Outbox().Route(ctx, []Routed{{ID: entries[1].ID, Nobody: 1}})))
		expect("one is routed to nobody", 3, first)
		for i, line := range []string{"ops a", "ops b"} {
			waits, err := b.Outbox().ReadMailbox(ctx, "ops", line, 1)
			must(t, err)
			for _, settlement := range []Settlement{{Delivery: Delivery{By: "me", Size: 1}, Next: b.now}, {Next: b.now}} { // in hand, and failed
				must(t, only(b.Outbox().Settle(ctx, waits, settlement)))
			}
			expect("failed", int64(3-i), first)
			must(t, only(b.Outbox().Settle(ctx, waits, Settlement{Done: 1})))
			expect("told", int64(2-i), []string{first, third}[i])
		}
	})
}

func TestOneNotifierAloneSettlesALineAndNoNoticeIsForgotten(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		must(t, only(b.Outbox().ReadOutbox(ctx, 1)))
		push := func(notice string) {
			t.Helper()
			must(t, b.redis.XAdd(ctx, &redis.XAddArgs{Stream: b.Keys.Outbox, Values: []string{"event", "disabled"}}).Err())
			entries, err := b.Outbox().ReadOutbox(ctx, 1)
			stopIf(t, err != nil || len(entries) != 1, "%v, %v", entries, err)
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
			settled, err := b.Outbox().Settle(ctx, line, to)
			failIf(t, err != nil || settled != want, "%s: settled %t, %v, want %t", what, settled, err, want)
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
		rest := line()
		failIf(t, len(rest.Notices) != 1 || rest.Notices[0] != "n2", "left %v", rest.Notices)
		settle("failed", line(), Settlement{Delivery: Delivery{Tries: 3}, Next: b.now, Done: 0}, true)
		last := line()
		settle("given up", last, Settlement{Delivery: last.Delivery, Next: b.now, Done: 1, Undelivered: "HTTP 500"}, true)
		settle("over", line(), Settlement{}, true)
		if all, err := b.Outbox().Undelivered(ctx); err != nil || len(all) != 1 || all[0].Tries != 3 || all[0].Reason != "HTTP 500" || all[0].Notices[0] != "n2" {
			t.Errorf("kept %+v, %v", all, err)
		}
		n := b.redis.Exists(ctx, b.Keys.Recipients("ops"), b.Keys.Notices("ops"), b.Keys.Deliveries).Val()
		failIf(t, n != 0, "%d keys are left", n)
	})
}
