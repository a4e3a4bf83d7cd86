package store

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// written adds an entry to the outbox that is so old on the clock of Redis.
func written(t *testing.T, store *Store, age time.Duration, sequence int) string {
	t.Helper()
	now, err := store.Now(t.Context())
	must(t, err)
	id := fmt.Sprintf("%d-%d", now.Add(-age).UnixMilli(), sequence)
	must(t, store.Clients.Write.XAdd(t.Context(), &redis.XAddArgs{Stream: store.Keys.Outbox, ID: id, Values: []string{"event", "disabled"}}).Err())
	return id
}

// trim trims the outbox and tells how many went unread, and how many are left.
func trim(t *testing.T, store *Store) string {
	t.Helper()
	unread, err := store.TrimOutbox(t.Context())
	must(t, err)
	left := store.Clients.Read.XLen(t.Context(), store.Keys.Outbox).Val()
	counted, _ := strconv.Atoi(store.Clients.Read.HGet(t.Context(), store.Keys.Stats, "outbox_expired").Val())
	return fmt.Sprintf("%d went unread, %d in all, %d left", unread, counted, left)
}

func TestAnEntryOfTheOutboxGoesWhenAllHaveReadItOrNobodyHasInTime(t *testing.T) {
	testkit.Both(t, func(t *testing.T, s *testkit.Server) {
		store := tailStore(t, s)
		store.config.OutboxKeep, store.config.OutboxCap = time.Hour, 100
		expect := func(what, want string) {
			t.Helper()
			if got := trim(t, store); got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		expect("nothing", "0 went unread, 0 in all, 0 left")
		written(t, store, 2*time.Hour, 1)
		written(t, store, time.Hour+time.Minute, 1)
		for i := range 7 {
			written(t, store, time.Minute, i+1)
		}
		expect("nobody reads", "2 went unread, 2 in all, 7 left")
		store.config.OutboxCap = 5
		expect("too many", "2 went unread, 4 in all, 5 left")
		// Two groups: ours, and that of a foreign program.
		foreign, key := "billing", store.Keys.Outbox
		must(t, only(store.Outbox().ReadOutbox(t.Context(), 1)))
		must(t, store.Clients.Write.XGroupCreate(t.Context(), key, foreign, "0").Err())
		entries, err := store.Outbox().ReadOutbox(t.Context(), 4)
		if err != nil || len(entries) != 4 {
			t.Fatal(entries, err)
		}
		expect("read, and not acknowledged", "0 went unread, 4 in all, 5 left")
		var routed []Routed
		for _, entry := range entries {
			routed = append(routed, Routed{ID: entry.ID})
		}
		if n, err := store.Outbox().Route(t.Context(), routed[1:]); err != nil || n != 3 {
			t.Fatal(n, err)
		}
		if n, err := store.Outbox().Route(t.Context(), routed[1:]); err != nil || n != 0 {
			t.Errorf("routed again: %d, %v", n, err)
		}
		expect("the first of ours is pending", "0 went unread, 4 in all, 5 left")
		must(t, only(store.Outbox().Route(t.Context(), routed[:1])))
		expect("the others have not read", "0 went unread, 4 in all, 5 left")
		read := &redis.XReadGroupArgs{Group: foreign, Consumer: "c", Streams: []string{key, ">"}, Count: 3, Block: -1}
		streams, err := store.Clients.Write.XReadGroup(t.Context(), read).Result()
		must(t, err)
		for _, message := range streams[0].Messages[:2] {
			store.Clients.Write.XAck(t.Context(), key, foreign, message.ID)
		}
		expect("two were acknowledged by both", "0 went unread, 4 in all, 3 left")
		must(t, store.Clients.Write.XGroupDestroy(t.Context(), key, foreign).Err())
		expect("ours alone", "0 went unread, 4 in all, 1 left")
		if left, err := store.Outbox().ReadOutbox(t.Context(), 9); err != nil || len(left) != 1 {
			t.Errorf("what nobody has read is left: %v, %v", left, err)
		}
	})
}

func TestWhatFailsFromAFailureOnStandsInTheOutboxWithItsReason(t *testing.T) {
	testkit.Both(t, func(t *testing.T, s *testkit.Server) {
		b := newBench(t, s)
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
		if !before(ids[0], ids[1]) || before(ids[1], ids[0]) || before(ids[0], ids[0]) {
			t.Errorf("want %s before %s alone", ids[0], ids[1])
		}
	}
}

func TestTheOutboxCountsWhatIsNotDelivered(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		expect := func(what string, want int64, oldest string) {
			t.Helper()
			for range 2 { // and the trimming changes nothing
				stats, err := b.Report().Stats(ctx)
				if err != nil || stats.Outbox != want || model.FormatTime(stats.OldestNotice) != oldest {
					t.Errorf("%s: counted %d since %q, %v, want %d since %q", what, stats.Outbox, model.FormatTime(stats.OldestNotice), err, want, oldest)
				}
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
