package poller_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/poller"
)

// promise stores the policy feeds, which promises some freshness; 0: none.
func (b *bundle) promise(within time.Duration) {
	b.t.Helper()
	p := policy.Default()
	p.Name, p.FreshWithin = "feeds", within
	must(b.t, b.Store.Fleet().PutPolicy(b.t.Context(), p))
}

func TestAPolicyThatPromisesAnotherFreshnessWatchesItsModelsAnewWhateverTheyDo(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.promise(0)
		b.apply(feed("idle", `"rrule":"FREQ=YEARLY"`), feed("disabled"), feed("running"), `{"type":"put","uid":"other"}`, `{"type":"disable","uid":"disabled"}`)
		b.dispatch()
		stale := func() map[string]int64 { return b.Scores(b.Store.Keys.StaleAt) }
		stopIf(t, len(stale()) > 0, "%v are watched, and no policy promises anything", stale())
		b.promise(time.Hour)
		b.walk(b.poller(b.Store, poller.Config{}))
		since := b.Clock.Now()
		for _, uid := range []string{"idle", "disabled", "running"} {
			at := stale()[uid]
			failIf(t, at != since.Add(time.Hour).UnixMilli(), "%s is stale from %s on, want an hour after %s", uid, time.UnixMilli(at).UTC(), since)
		}
		failIf(t, len(stale()) != 3, "%v are watched", stale())
		watches := b.Stats()["watch"]
		b.promise(time.Hour) // nothing else
		must(t, b.Store.Fleet().PutPolicy(t.Context(), policy.Policy{Name: "feeds", FreshWithin: 2 * time.Hour, Timeout: time.Minute, Alignment: policy.AlignPlanned, OnExhausted: policy.GiveUp}))
		b.walk(b.poller(b.Store, poller.Config{}))
		if at := stale()["disabled"]; at != since.Add(2*time.Hour).UnixMilli() || b.Stats()["watch"] != watches+3 {
			t.Errorf("disabled is stale from %s on, after %d watches", time.UnixMilli(at).UTC(), b.Stats()["watch"])
		}
		b.promise(0)
		b.walk(b.poller(b.Store, poller.Config{}))
		failIf(t, len(stale()) > 0, "%v are watched, and nothing is promised any more", stale())
	})
}

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
		_, err := p.RunOnce(context.Background())
		failIf(t, err == nil, "%s: want the error of Redis told, got none", command)
		stats := b.Stats()
		failIf(t, len(stats) > 0, "%s: want the command undecided, got %v", command, stats)
		b.Server.Mini.Server().SetPreHook(nil)
		must(t, b.Redis.HSet(context.Background(), b.Store.Keys.Policies, "hourly", `{"timeout":"1h"}`).Err())
		b.roundOf(p)
		stats = b.Stats()
		failIf(t, stats["create"] != 1, "%s: want the command applied when Redis tells the policies, got %v", command, stats)
	}
}

// overtaken lets something happen between the clock of a round and what it reads.
type overtaken struct {
	*store.Store
	meanwhile func()
}

func (s overtaken) Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error) {
	s.meanwhile()
	return s.Store.Read(ctx, uids, commands)
}

func TestAModelThatBecomesLateWhileAMessageIsHandledIsToldLateOnce(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		put := `{"type":"put","uid":"m1","policy":{"timeout":"1d","fresh_within":"2h","warn_within":"1h"}%s}`
		b.apply(fmt.Sprintf(put, ""))
		b.dispatch()
		become := func() {
			b.Clock.Turn(2 * time.Second)
			b.dispatch()
		}
		b.Clock.Turn(time.Hour - time.Second)
		b.Say(b.result("started", "m1"))
		b.Command(fmt.Sprintf(put, `,"payload":{"n":1}`))
		b.roundOf(b.poller(overtaken{b.Store, become}, poller.Config{}))
		for range 2 {
			b.dispatch()
		}
		stats, fields := b.Stats(), b.Model("m1")
		stopIf(t, stats["started"] != 1 || stats["update"] != 1, "counted is %v", stats)
		if fields["freshness"] != "late" || stats["became_late"] != 1 || stats["fresh_again"] != 0 {
			t.Errorf("the model is %s, told late %d times and fresh again %d times, though it never succeeded", fields["freshness"], stats["became_late"], stats["fresh_again"])
		}
	})
}
