package operate

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// runs writes models whose attempts run, and says of each which worker has it by name.
func (f *bundle) runs(names string, count int, worker string, end float64) (attempts map[*store.Store][]string) {
	f.t.Helper()
	attempts = map[*store.Store][]string{}
	pipe, ctx, ticket := f.client.Pipeline(), f.t.Context(), "2"
	if worker == "" {
		ticket = "3"
	}
	for i := range count {
		uid := fmt.Sprintf("%s%05d", names, i)
		part := f.Of(uid)
		pipe.HSet(ctx, part.Keys.Model(uid), "rev", "1", "attempt_uid", "a-"+uid, "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T09:00:00.000Z", "worker", worker, "ticket", ticket)
		pipe.ZAdd(ctx, part.Keys.Running, redis.Z{Score: end - float64(i), Member: uid})
		attempts[part] = append(attempts[part], fmt.Sprintf(`{"big_table_uid":%q,"refresh_attempt_uid":%q}`, uid, "a-"+uid))
	}
	_, err := pipe.Exec(ctx)
	must(f.t, err)
	return attempts
}

func TestWhoWorksIsReadWithinBoundsAndEachAttemptCountsOnce(t *testing.T) {
	f, ctx := open(t, testkit.Miniredis(t)), t.Context()
	const owner, next = "host7:1-20261121T065800Z-aaaaaaaa", "host7:2-20261121T065800Z-bbbbbbbb"
	take := func(owner string, attempts map[*store.Store][]string) {
		for part, entries := range attempts {
			now := check.Got(part.Now(ctx))(t)
			must(t, f.client.ZAdd(ctx, part.Keys.Workers, redis.Z{Score: float64(now.UnixMilli()), Member: owner}).Err())
			must(t, f.client.RPush(ctx, part.Keys.Taken(owner), entries).Err())
		}
	}
	read := func(name string) Running { return check.Got(ReadRunning(ctx, f.Queue, name))(t) }
	take(owner, f.runs("pool-a", 6, "host7", 1795252000000))
	f.runs("x", 7, "w9", 1795251000000)                            // which end first
	for part, entries := range f.runs("y", 5, "", 1795250000000) { // which nobody has taken
		must(t, f.client.RPush(ctx, part.Keys.Input, entries).Err())
	}
	r := read("")
	failIf(t, len(r.Pools) != 1 || len(r.Pools[0].Attempts) != 6 || len(r.Others) != 7 || r.InHand != 13 || r.MoreOthers() != 0, "want 6 of the pool and 7 others, found %+v", r)
	for _, a := range r.Others {
		failIf(t, a.Worker != "w9" || !a.Since.Equal(time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)), "want no attempt of a pool, and none that is queued, among the others, got %+v", a)
	}
	take(next, f.runs("pool-b", 2*maxRunning, "host7", 1795252000000))
	f.runs("z", 2*maxRunning, "w9", 1795253000000)
	r = read("")
	failIf(t, len(r.Others) > 0 || r.MoreOthers() != 2*maxRunning+7, "want the others counted where they cannot be told from those of pools, got %d and %d more", len(r.Others), r.MoreOthers())
	for _, pool := range r.Pools {
		listed := int64(len(pool.Attempts))
		failIf(t, listed == 0 || listed > maxRunning || pool.More() != pool.Taken-listed, "want all attempts counted, got %d taken, %d listed, %d more", pool.Taken, listed, pool.More())
	}
	one := read("host7:2")
	failIf(t, len(one.Pools) != 1 || len(one.Others) != 0, "want one process alone, got %d pools and %d others", len(one.Pools), len(one.Others))
}
