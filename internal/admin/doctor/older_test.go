package doctor

import (
	"github.com/redis/go-redis/v9"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestWhatAnOlderDaemonLeavesInAnIndexIsNoErrorUntilTheQueueWasMended(t *testing.T) {
	everywhere(t, func(t *testing.T, q *queue) {
		q.prepare()
		queue := fixture.Open(t, q.Server.URL, store.Config{Clock: q.Clock.Now})
		q.ok(queue.Raise(t.Context())) // beside daemons of an older release
		late := func() { q.ok(q.Redis.ZAdd(t.Context(), keys.Late, redis.Z{Score: 1e13, Member: "off"}).Err()) }
		expect := func(words string, severity Severity, errors int) {
			t.Helper()
			late()
			report := q.check(Options{})
			failIf(t, report.Counts["late-wrong"].Severity != severity || report.Total(Error) != errors, "%s: expected a %s, and %d errors, found\n%s", words, severity, errors, report)
		}
		expect("beside older daemons", Warning, 0)
		failIf(t, q.check(Options{Repair: true}).Counts["late-wrong"].Repaired != 1, "expected it repaired all the same")

		q.ok(q.Redis.ZRem(t.Context(), keys.Due, "idle").Err())
		expect("a set that every release keeps", Warning, 1)
		q.ok(q.Redis.ZAdd(t.Context(), keys.Due, redis.Z{Score: float64(fixture.Start.Add(time.Hour).UnixMilli()), Member: "idle"}).Err())

		mend, _, err := flow.Of(q.Store).ReadBulk(t.Context(), store.MendID)
		q.ok(err)
		mend.Place = store.WalkEnds
		_, err = flow.Of(q.Store).MoveBulk(t.Context(), &mend, q.Clock.Now())
		q.ok(err)
		expect("behind them", Error, 1)
	})
}
