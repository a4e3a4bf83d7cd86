package flow_test

import (
	"context"
	"fmt"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

func TestLimitsAreListedInOneWalkOverTheKeysAndAKeyThatIsNamedInNone(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		b := fixture.New(t, server)
		ctx, k := t.Context(), b.Store.Keys
		waits := goredis.Z{Score: six, Member: "m"}
		pipe := b.Redis.Pipeline()
		for i := range 3 * redis.ScanCount { // what the pattern of the walk must tell apart
			pipe.Set(ctx, k.Payload(fmt.Sprint("m", i)), "{}", 0)
			pipe.HSet(ctx, k.Model(fmt.Sprint("m", i)), "uid", "m")
		}
		pipe.SAdd(ctx, k.Label("host=label"), "m")
		pipe.HSet(ctx, k.Limits, "host=set", `{"running":4}`)
		pipe.ZAdd(ctx, k.Limit("host=runs"), waits)
		pipe.Set(ctx, k.Rate("host=reserved"), "", 0)
		pipe.ZAdd(ctx, k.ParkedBy("limit:host=waits"), waits)
		pipe.ZAdd(ctx, k.ParkedBy("hold:h1"), waits)
		pipe.HSet(ctx, k.Circuit("host=circuit"), "recent", "1")
		must(t, check.Only(pipe.Exec(ctx)))
		walks, scans := scansOf(b)
		uses := check.Got(flow.Of(b.Store).LimitUses(ctx))(t)
		var found []string
		for _, use := range uses {
			found = append(found, use.Key)
		}
		expectEqual(t, "the keys", []string{"host=reserved", "host=runs", "host=set", "host=waits"}, found)
		failIf(t, *walks != 1 || *scans > 21, "want one walk, found %d, of %d calls", *walks, *scans)
		*scans = 0
		named := check.Got(flow.Of(b.Store).LimitUses(ctx, "host=runs"))(t)
		failIf(t, len(named) != 2 || named[0].Running != 1 || *scans != 0, "want the named key and the one that was set without a walk, found %+v, %d calls", named, *scans)
	})
}

func TestWhetherASelectorPicksAModelIsNotLookedForInAQueueThatIsTooLargeForThat(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		b := fixture.New(t, server)
		picks := check.Got(model.ParseSelector("key=host=a"))(t)
		_, scans := scansOf(b)
		for n, want := range []struct {
			any   bool
			scans int
		}{{false, 1}, {false, 1}, {true, 0}} {
			if n > 0 {
				must(t, b.Redis.ZAdd(t.Context(), b.Store.Keys.Due, goredis.Z{Score: six, Member: fmt.Sprint("m", n)}).Err())
			}
			*scans = 0
			found, err := store.PicksAny(t.Context(), b.Store.Report(), picks, 1)
			failIf(t, err != nil || found != want.any || *scans != want.scans, "%d models: want %+v, found %t, %d calls, %v", n, want, found, *scans, err)
		}
	})
}

// scansOf counts walks over the keys of Redis, and their calls.
func scansOf(b *fixture.Queue) (walks, scans *int) {
	walks, scans = new(int), new(int)
	b.Intercept(testkit.Hook(func(_ context.Context, commands []goredis.Cmder, next func() error) error {
		for _, command := range commands {
			if command.Name() == "scan" {
				*scans++
				if fmt.Sprint(command.Args()[1]) == "0" {
					*walks++
				}
			}
		}
		return next()
	}))
	return walks, scans
}
