package operate

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
)

// runs writes models whose attempts run, and says of each which worker has it by name.
func (f *bundle) runs(names string, count int, worker string, end float64) (attempts map[*store.Store][]string) {
	f.t.Helper()
	attempts = map[*store.Store][]string{}
	pipe, ctx := f.client.Pipeline(), f.t.Context()
	for i := range count {
		uid := fmt.Sprintf("%s%05d", names, i)
		part := f.Of(uid)
		pipe.HSet(ctx, part.Keys.Model(uid), "rev", "1", "attempt_uid", "a-"+uid, "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T09:00:00.000Z", "worker", worker)
		pipe.ZAdd(ctx, part.Keys.Running, redis.Z{Score: end - float64(i), Member: uid})
		attempts[part] = append(attempts[part], fmt.Sprintf(`{"big_table_uid":%q,"refresh_attempt_uid":%q}`, uid, "a-"+uid))
	}
	_, err := pipe.Exec(ctx)
	must(f.t, err)
	return attempts
}

// Those of pools that end first are the last that they have taken, so that they are not read as theirs.
func TestWhoWorksIsReadWithinBoundsAndEachAttemptCountsOnce(t *testing.T) {
	f, ctx := open(t, testkit.Miniredis(t)), t.Context()
	for _, owner := range []string{"host7:1-20261121T065800Z-aaaaaaaa", "host7:2-20261121T065800Z-bbbbbbbb"} {
		for part, entries := range f.runs(owner[:7], 2*maxTaken, "host7", 1795252000000) {
			now := testkit.Got(part.Now(ctx))(t)
			must(t, f.client.ZAdd(ctx, part.Keys.Workers, redis.Z{Score: float64(now.UnixMilli()), Member: owner}).Err())
			must(t, f.client.RPush(ctx, part.Keys.Taken(owner), entries).Err())
		}
	}
	f.runs("x", 2*maxRunning, "w9", 1795253000000)
	r := testkit.Got(ReadRunning(ctx, f.Queue, ""))(t)
	stopIf(t, len(r.Pools) != 2, "want two pools, got %d", len(r.Pools))
	listed := 0
	for _, pool := range r.Pools {
		listed += len(pool.Attempts)
		failIf(t, pool.Taken != 2*maxTaken || pool.More() != pool.Taken-int64(len(pool.Attempts)) || len(pool.Attempts) == 0, "want all attempts counted, got %d taken, %d listed, %d more", pool.Taken, len(pool.Attempts), pool.More())
		for _, a := range pool.Attempts {
			failIf(t, a.UID[:7] != pool.Name[:7] || !a.Since.Equal(time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)), "want attempts of %s, got %+v", pool.Name, a)
		}
	}
	failIf(t, listed > 2*maxRunning, "want at most %d attempts listed of all pools, got %d", 2*maxRunning, listed)
	for _, a := range r.Others {
		failIf(t, a.Worker != "w9", "want no attempt of a pool among the others, got %+v", a)
	}
	failIf(t, r.InHand != 4*maxTaken+2*maxRunning || int64(len(r.Others))+r.MoreOthers() != 2*maxRunning, "want each other once, got %d in hand, %d others and %d more", r.InHand, len(r.Others), r.MoreOthers())
	f.runs("y", 4*maxRunning, "w8", 1795250000000) // which end first
	r = testkit.Got(ReadRunning(ctx, f.Queue, ""))(t)
	failIf(t, len(r.Others) != maxRunning || r.Others[0].Worker != "w8" || r.MoreOthers() != 5*maxRunning, "want %d others listed, got %d and %d more", maxRunning, len(r.Others), r.MoreOthers())
	one := testkit.Got(ReadRunning(ctx, f.Queue, "host7:2"))(t)
	failIf(t, len(one.Pools) != 1 || len(one.Others) != 0, "want one process alone, got %d pools and %d others", len(one.Pools), len(one.Others))
}
