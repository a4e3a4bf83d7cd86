package inspect_test

import (
	"testing"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/store/inspect"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model/policy"
)

func TestMain(m *testing.M) {
	redis.LogTo(nil)
	testkit.Main(m)
}

func TestAModelLacksThePolicyThatItNamesAndThatNobodyCanRead(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		ctx, clients := t.Context(), fixture.Connect(t, server.URL)
		part, err := store.New(clients, store.Config{})
		check.Must(t, err)
		stored := policy.Default()
		stored.Name = "stored"
		check.Must(t, part.Fleet().PutPolicy(ctx, stored))
		clients.Write.HSet(ctx, part.Keys.Policies, "broken", "{")
		for name, want := range map[string]bool{"stored": false, "broken": true, "gone": true} {
			clients.Write.HSet(ctx, part.Keys.Model("m1"), "policy", name)
			if lacks, err := inspect.Of(part).LacksPolicy(ctx, "m1", name); lacks != want || err != nil {
				t.Errorf("%s: lacks = %v, %v; want %v", name, lacks, err, want)
			}
			if lacks, err := inspect.Of(part).LacksPolicy(ctx, "other", name); lacks || err != nil {
				t.Errorf("%s: another model lacks it: %v, %v", name, lacks, err)
			}
		}
	})
}
