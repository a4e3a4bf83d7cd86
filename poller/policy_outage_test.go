package poller_test

import (
	"context"
	"slices"
	"testing"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/poller"
)

// Not to know a policy because it cannot be read, or not to know which there are, is nothing that the command has done wrong.
func TestACommandIsTriedAgainAndNotRejectedWhileRedisDoesNotTellThePolicies(t *testing.T) {
	t.Parallel()
	for command, about := range map[string]string{"HMGET": "hourly", "HKEYS": "bigtables:policies"} {
		b := setup(t, testkit.Miniredis(t))
		b.Server.Mini.Server().SetPreHook(func(peer *server.Peer, name string, args ...string) bool {
			refused := name == command && slices.Contains(args, about)
			if refused {
				peer.WriteError("ERR connection to the shard is lost")
			}
			return refused
		})
		b.Command(`{"type":"put","uid":"a","policy":"hourly"}`)
		p := b.poller(b.Store, poller.Config{})
		if _, err := p.RunOnce(context.Background()); err == nil {
			t.Errorf("%s: want the error of Redis told, got none", command)
		}
		if stats := b.Stats(); len(stats) > 0 {
			t.Errorf("%s: want the command undecided, got %v", command, stats)
		}
		b.Server.Mini.Server().SetPreHook(nil)
		must(t, b.Redis.HSet(context.Background(), b.Store.Keys.Policies, "hourly", `{"timeout":"1h"}`).Err())
		b.roundOf(p)
		if stats := b.Stats(); stats["create"] != 1 {
			t.Errorf("%s: want the command applied when Redis tells the policies, got %v", command, stats)
		}
	}
}
