package conformance_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// onEachAndACluster runs a test on each server, with the long tests also on a cluster of three.
func onEachAndACluster(t *testing.T, test func(t *testing.T, s *testkit.Server)) {
	t.Helper()
	testkit.BothIfLong(t, test)
	t.Run("cluster", func(t *testing.T) {
		long.Only(t)
		t.Parallel()
		test(t, testkit.Cluster(t))
	})
}

// divided is a queue of three parts, which three nodes of a cluster share.
type divided struct {
	t      *testing.T
	server *testkit.Server
	client redis.UniversalClient
}

func divide(t *testing.T, server *testkit.Server) *divided {
	t.Helper()
	d := &divided{t, server, fixture.Connect(t, server.URL).Write}
	must(t, d.client.HSet(t.Context(), "{q}:settings", "parts", 3).Err())
	return d
}

// refresh lets the worker do one attempt in a part.
func (d *divided) refresh(part, uid string) {
	d.t.Helper()
	must(d.t, d.client.HSet(d.t.Context(), part+":model:"+uid, "attempt_uid", "of-"+uid).Err())
	must(d.t, d.client.RPush(d.t.Context(), part+"-input", `{"big_table_uid":"`+uid+`","refresh_attempt_uid":"of-`+uid+`"}`).Err())
	check.Equal(d.t, heardIn(d.t, d.client, part), "started "+uid)
	check.Equal(d.t, heardIn(d.t, d.client, part), "success "+uid)
}

var threeParts = []string{"{q:0}", "{q:1}", "{q:2}"}

func TestAClientWorksOnAllPartsOfAQueueOnACluster(t *testing.T) {
	inLanguages(t, asking, func(t *testing.T, language string) {
		for how, plain := range map[string]string{"taking": "", "plain": "1"} {
			t.Run(how, func(t *testing.T) {
				long.Only(t)
				t.Parallel()
				d := divide(t, testkit.Cluster(t))
				worker := startHandler(t, language, handlers[language], d.server.URL, "REFRESHD_QUEUE=q", "PLAIN="+plain)
				for _, part := range append(threeParts, threeParts...) {
					d.refresh(part, "m")
				}
				check.Equal(t, worker.Stop(), 0)
				for _, part := range threeParts {
					left := d.client.Exists(t.Context(), part+":workers").Val()
					failIf(t, left > 0, "expected no worker to be left in %s", part)
				}
			})
		}
	})
}

// TestAPartWhoseNodeIsSilentHoldsUpNoOther freezes the node of a part with its replica, so that nobody takes over.
func TestAPartWhoseNodeIsSilentHoldsUpNoOther(t *testing.T) {
	inLanguages(t, asking, func(t *testing.T, language string) {
		long.Only(t)
		t.Parallel()
		d := divide(t, testkit.ReplicatedCluster(t))
		worker := startHandler(t, language, handlers[language], d.server.URL, "REFRESHD_QUEUE=q")
		for _, part := range threeParts {
			d.refresh(part, "m")
		}
		cluster, _ := d.client.(*redis.ClusterClient)
		for _, find := range []func(context.Context, string) (*redis.Client, error){cluster.MasterForKey, cluster.SlaveForKey} {
			node := check.Got(find(t.Context(), threeParts[0]))(t).Options().Addr
			d.server.SignalNode(t, node, syscall.SIGSTOP)
			t.Cleanup(func() { d.server.SignalNode(t, node, syscall.SIGCONT) })
		}
		last := func(part string) float64 {
			beats := d.client.ZRangeWithScores(t.Context(), part+":workers", 0, -1).Val()
			stopIf(t, len(beats) != 1, "expected one worker in %s, found %v", part, beats)
			return beats[0].Score
		}
		for _, part := range threeParts[1:] {
			begun := last(part)
			check.Eventually(t, "heartbeats in "+part, func() bool { return last(part) > begun+3000 })
			d.refresh(part, "n")
		}
		check.Equal(t, worker.Stop(), 0)
	})
}

// TestAClientGoesOnWhenAReplicaTakesOverItsQueue kills the node of the queue, which stays away. It is the node that a cluster names first.
func TestAClientGoesOnWhenAReplicaTakesOverItsQueue(t *testing.T) {
	inLanguages(t, append(asking, "bash"), func(t *testing.T, language string) {
		long.Only(t)
		t.Parallel()
		s := testkit.ReplicatedCluster(t)
		client, ctx, queue := fixture.Connect(t, s.URL).Write, t.Context(), "{bigtables}"
		worker := startHandler(t, language, handlers[language], s.URL, "REFRESHD_QUEUE="+queue)
		attempt := func(uid string) {
			t.Helper()
			check.Eventually(t, uid+" is handed to the worker", func() bool { // not before a replica has taken over
				err := client.HSet(ctx, queue+":model:"+uid, "attempt_uid", "of-"+uid).Err()
				return err == nil && client.RPush(ctx, queue+"-input", `{"big_table_uid":"`+uid+`","refresh_attempt_uid":"of-`+uid+`"}`).Err() == nil
			})
			for _, want := range []string{"started ", "success "} {
				for heardIn(t, client, queue) != want+uid { // what the replica did not learn of the attempt before
				}
			}
		}
		attempt("a")
		cluster, _ := client.(*redis.ClusterClient)
		master := check.Got(cluster.MasterForKey(ctx, queue+"-input"))(t)
		s.KillNode(t, master.Options().Addr)
		attempt("b")
		check.Equal(t, worker.Stop(), 0)
	})
}

func TestAnApplicationSavesAndRunsModelsOnACluster(t *testing.T) {
	inLanguages(t, asking, func(t *testing.T, language string) {
		long.Only(t)
		t.Parallel()
		q := fixture.Live(t, testkit.Cluster(t))
		p := check.Got(poller.New(poller.RoomsOf(q.Store), poller.Config{}))(t)
		check.Run(t, p.Run)
		output, err := example(t, language, "application", "REDIS_URL="+q.Server.URL, "REFRESHD_QUEUE={"+store.DefaultQueue+"}").CombinedOutput()
		diff := cmp.Diff(told, string(output))
		stopIf(t, diff != "" || err != nil, "%v, output (-want +got):\n%s", err, diff)
	})
}
