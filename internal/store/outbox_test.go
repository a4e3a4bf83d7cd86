package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		failIf(t, compareIDs(ids[0], ids[1]) >= 0 || compareIDs(ids[1], ids[0]) <= 0 || compareIDs(ids[0], ids[0]) != 0, "want %s before %s alone", ids[0], ids[1])
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

func (b *bench) rejectedMessages() []Rejected {
	b.t.Helper()
	entries, err := b.Fleet().Rejected(b.t.Context())
	must(b.t, err)
	return entries
}

// requeueAll requeues what is rejected, entry by entry, and says how many were moved, and how often it was refused.
func requeueAll(b *bench) any {
	moved, refused := 0, 0
	for _, entry := range b.rejectedMessages() {
		n, err := b.Fleet().RequeueRejected(b.t.Context(), []Rejected{entry})
		if moved += n; err != nil {
			refused++
		}
	}
	return [2]int{moved, refused}
}

func TestEachCallAboutRejectedMessagesChangesExactlyWhatItShould(t *testing.T) {
	twice := func(b *bench, entries []Rejected, do func([]Rejected) (int, error)) any {
		first, err := do(entries)
		must(b.t, err)
		again, err := do(entries)
		must(b.t, err)
		return []int{first, again}
	}
	eachCall(t, []callCase{
		{
			name: "a requeued message goes back once to the tail of its list, byte for byte",
			seed: keys{":claimed:p1": list{"o\xff\x00", "o", "osame", "osame"}, ":claimed:control": list{"c{}"}, ":holder": "p1", "-output": list{"before"}},
			call: func(b *bench) any {
				b.settle("p1", refusing("o\xff\x00", "o", "osame", "osame", "c{}")...)
				return twice(b, b.rejectedMessages(), func(all []Rejected) (int, error) { return b.Fleet().RequeueRejected(b.t.Context(), all) })
			},
			says: []int{5, 0},
			want: keys{"-output": list{"before", "\xff\x00", "", "same", "same"}, "-control": list{"{}"}, ":holder": "p1", ":stats": hash{"malformed": "5"}},
		},
		{
			name: "a message of which only the beginning is kept is not requeued", call: requeueAll, says: [2]int{0, 3},
			seed: keys{":rejected": list{`{"at":"x","source":"output","reason":"y","raw":"{","bytes":"9"}`, "by hand", `{"source":"nowhere"}`}},
		},
		{
			name: "nothing is requeued into a key that holds something else", call: requeueAll, says: [2]int{0, 1},
			seed: keys{":rejected": list{`{"source":"output","raw":"m"}`}, "-output": "text"},
		},
		{
			name: "a requeued command is handled though its id was noted when it was refused", call: requeueAll, says: [2]int{1, 0},
			seed: keys{
				":rejected": list{`{"source":"control","raw":"{\"type\":\"enable\",\"uid\":\"m\",\"command_id\":\"one\"}"}`}, ":commands": scores{"one": 1, "two": 2},
			},
			want: keys{"-control": list{`{"type":"enable","uid":"m","command_id":"one"}`}, ":commands": scores{"two": 2}},
		},
		{
			name: "a dropped message is forgotten once",
			seed: keys{":rejected": list{"a", "b", "a", "c"}},
			call: func(b *bench) any {
				return twice(b, b.rejectedMessages()[:3], func(all []Rejected) (int, error) { return b.Fleet().DropRejected(b.t.Context(), all) })
			},
			says: []int{3, 0},
			want: keys{":rejected": list{"c"}},
		},
	})
}

// What is larger than 16 KiB keeps its beginning, which may end within a letter.
func TestARejectedMessageOfUpTo16KiBKeepsEveryByteAndALargeOneItsSize(t *testing.T) {
	raws := list{"plain", `{"broken":`, "<&>\u2028\x00\r\n%d", "\xff\x00\xfe", strings.Repeat("\x80x", maxRaw/2), "\xef\xbf\xbd"}
	large := list{strings.Repeat("é", maxRaw), "104857600/1048576 " + strings.Repeat("x", 999) + "\xc3"}
	everywhere(t, func(t *testing.T, b *bench) {
		entries := list{"o" + large[0], "O" + large[1]}
		for _, raw := range raws {
			entries = append(entries, "o"+raw)
		}
		b.seed(keys{":claimed:p1": entries})
		b.settle("p1", refusing(entries...)...)
		var kept, sizes list
		for _, text := range b.state()[":rejected"].(list) {
			var entry struct { // encoding/json decodes base64 into bytes
				Raw, Bytes string
				RawBase64  []byte `json:"raw_base64"`
			}
			must(t, json.Unmarshal([]byte(text), &entry))
			failIf(t, entry.Bytes != "" && entry.RawBase64 != nil, "the beginning of a text of %s bytes stands in base64", entry.Bytes)
			kept, sizes = append(kept, entry.Raw+string(entry.RawBase64)), append(sizes, entry.Bytes)
		}
		want := slices.Concat(list{strings.Repeat("é", maxRaw/2), strings.Repeat("x", 999)}, raws)
		failIf(t, !cmp.Equal(want, kept), "rejected bytes differ:\n%.300q\n%.300q", want, kept)
		expectEqual(t, "sizes", list{"32768", "104857600", "", "", "", "", "", ""}, sizes)
	})
}

func TestTheNewestRejectedMessageAboutAModelIsFoundInAnyPart(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		q, err := newQueue(b.Clients, b.config, settings{parts: 2})
		must(t, err)
		for part, texts := range []list{
			{`{"at":"2026-11-21T06:00:02Z","uid":"m","reason":"second"}`, `{"at":"2026-11-21T06:00:09Z","uid":"n"}`},
			{`{"at":"2026-11-21T06:00:01Z","uid":"m","reason":"first"}`, "garbage"},
		} {
			must(t, b.redis.RPush(t.Context(), q.Parts[part].Keys.Rejected, texts).Err())
		}
		for _, part := range q.Parts {
			last, found, err := part.Fleet().RejectionAbout(t.Context(), "m")
			failIf(t, !found || last.Reason != "second" || err != nil, "found %v %+v, %v", found, last, err)
		}
		if _, found, err := q.Parts[0].Fleet().RejectionAbout(t.Context(), "nobody"); found || err != nil {
			t.Errorf("found one about nobody, %v", err)
		}
	})
}
