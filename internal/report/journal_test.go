package report_test

import (
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func TestTailReturnsEachTransitionOnceInOrder(t *testing.T) {
	fixture.Everywhere(t, func(t *testing.T, b *fixture.Bench) {
		b.Fail("tbl_1", b.Clock().Add(time.Second))
		entries, last, err := report.Of(b.Store).Tail(t.Context(), report.TailStart)
		check.Must(t, err)
		ends := b.Clock().Add(policy.DefaultTimeout)
		expectEqual(t, "entries", []model.JournalEntry{
			{UID: "tbl_1", Event: model.EventCreate, At: b.Clock(), RefreshAt: b.Clock(), Why: "saved: refresh now"},
			{
				UID: "tbl_1", Event: model.EventStart, At: b.Clock(), AttemptUID: "a1", AttemptNo: 1, RefreshAt: ends, DeadlineAt: ends,
				Why: "on timeout: retry 1 of 3 at once",
			},
			{
				UID: "tbl_1", Event: model.EventFailure, At: b.Clock(), AttemptUID: "a1", AttemptNo: 1, EndedNo: 1, Why: "disabled, not retryable",
				Reason: "HTTP 404", Final: true, DisabledReason: "The feed is gone",
			},
		}, entries)
		entries, again, err := report.Of(b.Store).Tail(t.Context(), last)
		check.FailIf(t, err != nil || len(entries) > 0 || again != last,
			"behind the last entry: %v, %q, %v; want none and the position %q", entries, again, err, last)
	})
}

func TestTailOutboxReturnsEachNotificationOnce(t *testing.T) {
	fixture.Everywhere(t, func(t *testing.T, b *fixture.Bench) {
		b.Fail("tbl_1", b.Clock())
		entries, last, err := report.Of(b.Store).TailOutbox(t.Context(), report.TailStart)
		check.Must(t, err)
		expectEqual(t, "entries", []model.Notification{
			{UID: "tbl_1", Notice: policy.NoticeDisabled, At: b.Clock(), AttemptNo: 1, Reason: "The feed is gone", Why: "disabled, not retryable"},
		}, entries)
		entries, again, err := report.Of(b.Store).TailOutbox(t.Context(), last)
		check.FailIf(t, err != nil || len(entries) > 0 || again != last,
			"behind the last entry: %v, %q, %v; want none and the position %q", entries, again, err, last)
	})
}

func TestThePlaceInLineTellsHowManyAreBeforeAndHowFastTheyGo(t *testing.T) {
	fixture.Everywhere(t, func(t *testing.T, b *fixture.Bench) {
		entry := func(uid string) string { return `{"big_table_uid":"m","refresh_attempt_uid":"` + uid + `"}` }
		b.Seed(fixture.Seeds{"-input": []string{entry("a"), "nonsense", entry("b")}, ":stats": map[string]string{"start": "200"}})
		for _, ticket := range []int{4, 20, 36} { // 16 a second
			check.Must(t, b.SampleHead(t.Context(), ticket, b.Clock(), time.Second))
			b.Step(time.Second)
		}
		b.Step(-time.Second)
		at := func(uid, attemptUID string) *store.Record {
			return &store.Record{Model: model.Model{UID: uid, State: model.State{AttemptUID: attemptUID}}}
		}
		place, err := report.Of(b.Store).QueuePosition(t.Context(), at("m", "b"))
		check.FailIf(t, err != nil || place != (report.QueuePosition{No: 3, Rate: 16}) || place.Wait() != 187500*time.Microsecond,
			"want the third place at 16 a second, got %+v, %s, %v", place, place.Wait(), err)
		b.Seed(fixture.Seeds{":urgent": map[string]float64{"first": 1, "second": 2}, ":due": map[string]float64{"third": 1}})
		for uid, no := range map[string]int{"first": 4, "third": 5, "second": 6, "other": 0} {
			place, err := report.Of(b.Store).QueuePosition(t.Context(), at(uid, ""))
			check.FailIf(t, err != nil || place.No != no, "%s: want place %d, got %+v, %v", uid, no, place, err)
		}
		place, err = report.Of(b.Store).QueuePosition(t.Context(), at("m", "gone"))
		check.FailIf(t, err != nil || place.No != 0 || place.Wait() != 0, "want no place, got %+v, %v", place, err)
	})
}

func TestAReportThatIsCutOffSaysWhatItWanted(t *testing.T) {
	b := fixture.NewBench(t, testkit.Miniredis(t))
	live := fixture.NewBench(t, b.Server, func(c *store.Config) { c.Clock = nil })
	ctx, k := t.Context(), b.Keys
	for _, test := range []struct {
		command, key, want string
		call               func() error
	}{
		{"XREAD", "", "read the journal: ", func() error { _, _, err := report.Of(b.Store).Tail(ctx, report.TailStart); return err }},
		{"XRANGE", "", "read the outbox: ", func() error { _, _, err := report.Of(b.Store).TailOutbox(ctx, report.TailStart); return err }},
		{"ZCARD", k.Running, "read stats: ", func() error { return only(report.Of(b.Store).Stats(ctx)) }},
		{"TIME", "", "read the clock of redis: ", func() error { return only(report.Of(live.Store).Stats(ctx)) }},
		{"LRANGE", "", "read history: ", func() error { return only(report.Of(b.Store).History(ctx, "m1")) }},
	} {
		b.Loading(test.command, test.key)
		if err := test.call(); err == nil || !strings.HasPrefix(err.Error(), test.want) || !goredis.HasErrorPrefix(err, "LOADING") {
			t.Errorf("%s %s: error %v, want %q and the words of Redis", test.command, test.key, err, test.want)
		}
	}
}
