package conformance_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/poller"
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

// TestAClientWorksOnAllPartsOfAQueueOnACluster lets three nodes share the queue, each with a part.
func TestAClientWorksOnAllPartsOfAQueueOnACluster(t *testing.T) {
	inLanguages(t, asking, func(t *testing.T, language string) {
		for how, plain := range map[string]string{"taking": "", "plain": "1"} {
			t.Run(how, func(t *testing.T) {
				long.Only(t)
				t.Parallel()
				s := testkit.Cluster(t)
				client, ctx := s.Client(t), t.Context()
				must(t, client.HSet(ctx, "{q}:settings", "parts", 3).Err())
				worker := startHandler(t, language, handlers[language], s.URL, "REFRESHD_QUEUE=q", "PLAIN="+plain)
				for range 2 {
					for i := range 3 {
						part, uid := fmt.Sprintf("{q:%d}", i), fmt.Sprint("m", i)
						must(t, client.HSet(ctx, part+":model:"+uid, "attempt_uid", "of-"+uid).Err())
						must(t, client.RPush(ctx, part+"-input", `{"big_table_uid":"`+uid+`","refresh_attempt_uid":"of-`+uid+`"}`).Err())
						testkit.Equal(t, heardIn(t, client, part), "started "+uid)
						testkit.Equal(t, heardIn(t, client, part), "success "+uid)
					}
				}
				testkit.Equal(t, worker.Stop(), 0)
				for i := range 3 {
					left := client.Exists(ctx, fmt.Sprintf("{q:%d}:workers", i)).Val()
					failIf(t, left > 0, "expected no worker to be left in part %d", i)
				}
			})
		}
	})
}

// TestAClientGoesOnWhenAReplicaTakesOverItsQueue kills the node of the queue, which stays away.
func TestAClientGoesOnWhenAReplicaTakesOverItsQueue(t *testing.T) {
	inLanguages(t, append(asking, "bash"), func(t *testing.T, language string) {
		long.Only(t)
		t.Parallel()
		s := testkit.ReplicatedCluster(t)
		client, ctx := fixture.Connect(t, s.URL).Write, t.Context()
		worker := startHandler(t, language, handlers[language], s.URL, "REFRESHD_QUEUE={q}")
		attempt := func(uid string) {
			t.Helper()
			testkit.Eventually(t, uid+" is handed to the worker", func() bool { // not before a replica has taken over
				err := client.HSet(ctx, "{q}:model:"+uid, "attempt_uid", "of-"+uid).Err()
				return err == nil && client.RPush(ctx, "{q}-input", `{"big_table_uid":"`+uid+`","refresh_attempt_uid":"of-`+uid+`"}`).Err() == nil
			})
			for _, want := range []string{"started ", "success "} {
				for heardIn(t, client, "{q}") != want+uid { // what the replica did not learn of the attempt before
				}
			}
		}
		attempt("a")
		cluster, _ := client.(*redis.ClusterClient)
		master := testkit.Got(cluster.MasterForKey(ctx, "{q}-input"))(t)
		s.KillNode(t, master.Options().Addr)
		attempt("b")
		testkit.Equal(t, worker.Stop(), 0)
	})
}

func TestAnApplicationSavesAndRunsModelsOnACluster(t *testing.T) {
	inLanguages(t, asking, func(t *testing.T, language string) {
		long.Only(t)
		t.Parallel()
		q := fixture.Live(t, testkit.Cluster(t))
		p := testkit.Got(poller.New(q.Store, poller.Config{}))(t)
		testkit.Run(t, p.Run)
		output, err := example(t, language, "application", "REDIS_URL="+q.Server.URL, "REFRESHD_QUEUE={"+store.DefaultQueue+"}").CombinedOutput()
		diff := cmp.Diff(told, string(output))
		stopIf(t, diff != "" || err != nil, "%v, output (-want +got):\n%s", err, diff)
	})
}
