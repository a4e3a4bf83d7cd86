package outbox_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

func TestAnEntryOfTheOutboxGoesWhenAllHaveReadItOrNobodyHasInTime(t *testing.T) {
	fixture.Everywhere(t, func(t *testing.T, b *fixture.Bench) {
		ctx, key := t.Context(), b.Keys.Outbox
		written := func(age time.Duration, sequence int) { // on the clock of Redis
			now, err := b.Now(ctx)
			check.Must(t, err)
			id := fmt.Sprintf("%d-%d", now.Add(-age).UnixMilli(), sequence)
			check.Must(t, b.Redis.XAdd(ctx, &goredis.XAddArgs{Stream: key, ID: id, Values: []string{"event", "disabled"}}).Err())
		}
		expect := func(what string, unread, counted, left int64) {
			t.Helper()
			got, err := outbox.Of(b.Store).TrimOutbox(ctx)
			check.Must(t, err)
			all, _ := strconv.ParseInt(b.Redis.HGet(ctx, b.Keys.Stats, "outbox_expired").Val(), 10, 64)
			expectEqual(t, what+": went unread, of all, and left", [3]int64{unread, counted, left}, [3]int64{int64(got), all, b.Redis.XLen(ctx, key).Val()})
		}
		expect("nothing", 0, 0, 0)
		written(2*time.Hour, 1)
		written(time.Hour+time.Minute, 1)
		for i := range 7 {
			written(time.Minute, i+1)
		}
		expect("nobody reads", 2, 2, 7)
		b.Config.OutboxCap = 5
		expect("too many", 2, 4, 5)
		// Two groups: ours, and one of a foreign program.
		foreign := "billing"
		check.Must(t, check.Only(outbox.Of(b.Store).Read(ctx, 1)))
		check.Must(t, b.Redis.XGroupCreate(ctx, key, foreign, "0").Err())
		entries, err := outbox.Of(b.Store).Read(ctx, 4)
		check.StopIf(t, err != nil || len(entries) != 4, "%v, %v", entries, err)
		expect("read, and not acknowledged", 0, 4, 5)
		var routed []outbox.Routed
		for _, entry := range entries {
			routed = append(routed, outbox.Routed{ID: entry.ID})
		}
		for i, want := range []int{3, 0} {
			n, err := outbox.Of(b.Store).Route(ctx, routed[1:])
			check.Must(t, err)
			expectEqual(t, fmt.Sprint("routed ", i), want, n.Routed)
		}
		expect("the first of ours is pending", 0, 4, 5)
		check.Must(t, check.Only(outbox.Of(b.Store).Route(ctx, routed[:1])))
		expect("the others have not read", 0, 4, 5)
		read := &goredis.XReadGroupArgs{Group: foreign, Consumer: "c", Streams: []string{key, ">"}, Count: 3, Block: -1}
		streams, err := b.Redis.XReadGroup(ctx, read).Result()
		check.Must(t, err)
		for _, message := range streams[0].Messages[:2] {
			b.Redis.XAck(ctx, key, foreign, message.ID)
		}
		expect("two were acknowledged by both", 0, 4, 3)
		check.Must(t, b.Redis.XGroupDestroy(ctx, key, foreign).Err())
		expect("ours alone", 0, 4, 1)
		if left, err := outbox.Of(b.Store).Read(ctx, 9); err != nil || len(left) != 1 {
			t.Errorf("what nobody has read is left: %v, %v", left, err)
		}
	}, func(c *store.Config) { c.Clock, c.OutboxKeep, c.OutboxCap = nil, time.Hour, 100 })
}

func TestTheOutboxCountsWhatIsNotDelivered(t *testing.T) {
	fixture.Everywhere(t, func(t *testing.T, b *fixture.Bench) {
		ctx := t.Context()
		expect := func(what string, want int64, oldest string) {
			t.Helper()
			for range 2 { // and the trimming changes nothing
				stats, err := report.Of(b.Store).Stats(ctx)
				check.FailIf(t, err != nil || stats.Outbox != want || model.FormatTime(stats.OldestNotice) != oldest,
					"%s: counted %d since %q, %v, want %d since %q", what, stats.Outbox, model.FormatTime(stats.OldestNotice), err, want, oldest)
				check.Must(t, check.Only(outbox.Of(b.Store).TrimOutbox(ctx)))
			}
		}
		expect("nothing", 0, "")
		check.Must(t, check.Only(outbox.Of(b.Store).Read(ctx, 2)))
		for i := range 3 {
			notice := []string{"event", "disabled", "at", model.FormatTime(b.Clock().Add(time.Duration(i) * time.Second))}
			check.Must(t, b.Redis.XAdd(ctx, &goredis.XAddArgs{Stream: b.Keys.Outbox, Values: notice}).Err())
		}
		first, third := model.FormatTime(b.Clock()), model.FormatTime(b.Clock().Add(2*time.Second))
		expect("nobody reads", 3, first)
		entries, err := outbox.Of(b.Store).Read(ctx, 2)
		check.Must(t, err)
		expect("read", 3, first)
		notice := fmt.Sprintf(`{"at":%q}`, first)
		told := []outbox.Addressed{{Channel: "ops", Recipient: "ops a", At: b.Clock(), Notice: notice}, {Channel: "ops", Recipient: "ops b", At: b.Clock(), Notice: notice}}
		check.Must(t, check.Only(outbox.Of(b.Store).Route(ctx, []outbox.Routed{{ID: entries[0].ID, Told: told}})))
		expect("one is routed to two", 4, first)
		check.Must(t, check.Only(outbox.Of(b.Store).Route(ctx, []outbox.Routed{{ID: entries[1].ID, Nobody: 1}})))
		expect("one is routed to nobody", 3, first)
		for i, line := range []string{"ops a", "ops b"} {
			waits, err := outbox.Of(b.Store).ReadMailbox(ctx, "ops", line, 1)
			check.Must(t, err)
			for _, settlement := range []outbox.Settlement{{Delivery: outbox.Delivery{By: "me", Size: 1}, Next: b.Clock()}, {Next: b.Clock()}} { // in hand, and failed
				check.Must(t, check.Only(outbox.Of(b.Store).Settle(ctx, waits, settlement)))
			}
			expect("failed", int64(3-i), first)
			check.Must(t, check.Only(outbox.Of(b.Store).Settle(ctx, waits, outbox.Settlement{Done: 1})))
			expect("told", int64(2-i), []string{first, third}[i])
		}
	})
}

func TestOneNotifierAloneSettlesALineAndNoNoticeIsForgotten(t *testing.T) {
	fixture.Everywhere(t, func(t *testing.T, b *fixture.Bench) {
		ctx := t.Context()
		check.Must(t, check.Only(outbox.Of(b.Store).Read(ctx, 1)))
		push := func(notice string) {
			t.Helper()
			check.Must(t, b.Redis.XAdd(ctx, &goredis.XAddArgs{Stream: b.Keys.Outbox, Values: []string{"event", "disabled"}}).Err())
			entries, err := outbox.Of(b.Store).Read(ctx, 1)
			check.StopIf(t, err != nil || len(entries) != 1, "%v, %v", entries, err)
			told := []outbox.Addressed{{Channel: "ops", Recipient: "ops", At: b.Clock(), Notice: notice}}
			if n, err := outbox.Of(b.Store).Route(ctx, []outbox.Routed{{ID: entries[0].ID, Told: told}}); err != nil || n.Routed != 1 {
				t.Fatal(n, err)
			}
		}
		line := func() *outbox.Mailbox {
			t.Helper()
			line, err := outbox.Of(b.Store).ReadMailbox(ctx, "ops", "ops", 10)
			check.Must(t, err)
			return line
		}
		settle := func(what string, line *outbox.Mailbox, to outbox.Settlement, want bool) {
			t.Helper()
			to.At = b.Clock()
			settled, err := outbox.Of(b.Store).Settle(ctx, line, to)
			check.FailIf(t, err != nil || settled != want, "%s: settled %t, %v, want %t", what, settled, err, want)
		}
		push("n1")
		mine, other := line(), line()
		settle("taken in hand", mine, outbox.Settlement{Delivery: outbox.Delivery{By: "me", Size: 1}, Next: b.Clock().Add(time.Second)}, true)
		b.Unchanged(func() {
			settle("by another who read before", other, outbox.Settlement{Delivery: outbox.Delivery{By: "other", Size: 1}, Next: b.Clock()}, false)
		})
		b.Step(time.Second) // its time in hand is over
		once, more := line(), line()
		settle("taken in hand once more", once, outbox.Settlement{Delivery: once.Delivery, Next: b.Clock().Add(time.Second)}, true)
		b.Unchanged(func() {
			settle("by itself, that read before", more, outbox.Settlement{Delivery: more.Delivery, Next: b.Clock().Add(2 * time.Second)}, false)
			settle("told, though it is no longer in hand", mine, outbox.Settlement{Next: b.Clock(), Done: 1, Counter: "notices_told"}, false)
		})
		mine = once
		push("n2")
		settle("told", mine, outbox.Settlement{Next: b.Clock(), Done: 1, Counter: "notices_told"}, true)
		b.Unchanged(func() {
			// The delivery is what it was when that one read: none.
			settle("told again", other, outbox.Settlement{Next: b.Clock(), Done: 1, Counter: "notices_told"}, false)
			settle("over, though another has come", mine, outbox.Settlement{}, false)
		})
		rest := line()
		check.FailIf(t, len(rest.Notices) != 1 || rest.Notices[0] != "n2", "left %v", rest.Notices)
		settle("failed", line(), outbox.Settlement{Delivery: outbox.Delivery{Tries: 3}, Next: b.Clock(), Done: 0}, true)
		last := line()
		settle("given up", last, outbox.Settlement{Delivery: last.Delivery, Next: b.Clock(), Done: 1, Undelivered: "HTTP 500"}, true)
		settle("over", line(), outbox.Settlement{}, true)
		if all, err := outbox.Of(b.Store).Undelivered(ctx); err != nil || len(all) != 1 || all[0].Tries != 3 || all[0].Reason != "HTTP 500" || all[0].Notices[0] != "n2" {
			t.Errorf("kept %+v, %v", all, err)
		}
		n := b.Redis.Exists(ctx, b.Keys.Recipients("ops"), b.Keys.Notices("ops"), b.Keys.Deliveries).Val()
		check.FailIf(t, n != 0, "%d keys are left", n)
	})
}

func TestASummaryNamesSoManyCausesAndFollowsWhenFewNoticesWait(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		ctx, key := t.Context(), b.Keys.Notices("ops")
		must(t, only(outbox.Of(b.Store).Read(ctx, 1)))
		full := make([]any, 10_000)
		for i := range full {
			full[i] = fmt.Sprint(i)
		}
		must(t, b.Redis.RPush(ctx, key, full...).Err())
		var told []outbox.Addressed
		for i := range 150 {
			told = append(told, outbox.Addressed{
				Channel: "ops", Recipient: "ops", At: b.Clock(), Notice: "no room", Summary: `{"of":"failing"`, Cause: fmt.Sprintf(`,"reason":"%d"`, i),
			})
		}
		told = append(told, outbox.Addressed{Channel: "ops", Recipient: "ops", At: b.Clock(), Notice: "kept", Kept: true})
		must(t, b.Redis.XAdd(ctx, &goredis.XAddArgs{Stream: b.Keys.Outbox, Values: []string{"event", "failing"}}).Err())
		entries, err := outbox.Of(b.Store).Read(ctx, 1)
		must(t, err)
		outcome, err := outbox.Of(b.Store).Route(ctx, []outbox.Routed{{ID: entries[0].ID, Told: told}})
		must(t, err)
		expectEqual(t, "routed", outbox.Outcome{Routed: 1, Counted: 150}, outcome)
		counts := b.Redis.HGetAll(ctx, b.Keys.Summary("ops")).Val()
		failIf(t, len(counts) != 101 || counts[`{"of":"failing"`] != "50", "expected 100 causes and 50 of others, found %d, %v", len(counts), counts)
		settle := func(done int) {
			t.Helper()
			waits, err := outbox.Of(b.Store).ReadMailbox(ctx, "ops", "ops", 1)
			must(t, err)
			waits.Notices = append(waits.Notices, make([]string, done)...) // as if more had been read
			settled, err := outbox.Of(b.Store).Settle(ctx, waits, outbox.Settlement{Done: done, Next: b.Clock(), At: b.Clock()})
			failIf(t, err != nil || !settled, "settled %t, %v", settled, err)
		}
		settle(9_501) // of 10,001
		expectEqual(t, "500 wait", 500, b.Redis.LLen(ctx, key).Val())
		b.Unchanged(func() {
			waits, err := outbox.Of(b.Store).ReadMailbox(ctx, "ops", "ops", 1)
			must(t, err)
			settled, err := outbox.Of(b.Store).Settle(ctx, waits, outbox.Settlement{})
			failIf(t, err != nil || settled, "what waits was forgotten: %t, %v", settled, err)
		})
		settle(1)
		expectEqual(t, "the summary follows", 499+101, b.Redis.LLen(ctx, key).Val())
		for _, text := range b.Redis.LRange(ctx, key, 499, -1).Val() {
			var n map[string]string
			must(t, json.Unmarshal([]byte(text), &n))
			failIf(t, n["of"] != "failing" || n["count"] == "" || n["at"] != model.FormatTime(b.Clock()) || n["id"] == "", "found %s", text)
		}
		failIf(t, b.Redis.Exists(ctx, b.Keys.Summary("ops")).Val() != 0, "the summary is told and kept")
		// Somebody has emptied the mailbox by hand.
		must(t, b.Redis.Del(ctx, key).Err())
		must(t, b.Redis.HSet(ctx, b.Keys.Summary("ops"), `{"of":"stale"`, 7).Err())
		settle(0)
		for _, left := range []int64{1, 0} {
			waits, err := outbox.Of(b.Store).ReadMailbox(ctx, "ops", "ops", 10)
			must(t, err)
			settled, err := outbox.Of(b.Store).Settle(ctx, waits, outbox.Settlement{At: b.Clock(), Done: len(waits.Notices)})
			failIf(t, err != nil || !settled, "settled %t, %v", settled, err)
			expectEqual(t, "what waits and who is due", [2]int64{left, left}, [2]int64{b.Redis.LLen(ctx, key).Val(), b.Redis.ZCard(ctx, b.Keys.Recipients("ops")).Val()})
		}
	})
}
