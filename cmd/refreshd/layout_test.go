package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestNoCommandAndNoDaemonTouchesAQueueOfANewerLayout(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c, redis := at(t, server), server.Client(t)
		c.save("bigtables", "m", `{}`)
		expectContains(t, c.do("doctor"), "layout 1 of the keys, of 1 that this binary knows\n")
		if report := c.object("doctor"); report["layout"] != 1.0 {
			t.Errorf("expected layout 1, found %v", report)
		}
		redis.HSet(t.Context(), "{bigtables}:settings", "layout", 2)
		before := server.Dump(t)
		c.in = `{"uid":"n","payload":{}}`
		for _, command := range [][]string{
			{"dispatcher"}, {"poller"}, {"worker", "--http", "http://127.0.0.1:1"}, {"up"}, {"model", "put", "-"}, {"model", "run", "m"}, {"doctor", "--repair"}, {"stats"},
		} {
			expectContains(t, c.fail(exitUsage, command...), "{bigtables}:settings layout: expected at most 1, found 2: a newer release stores this queue; upgrade this binary")
		}
		if diff := cmp.Diff(before, server.Dump(t)); diff != "" {
			t.Errorf("expected the keys as they were (-want +got):\n%s", diff)
		}
		// Beside a queue that it may serve, it waits for somebody to mend this one.
		up := c.start("up", "--queue", "bigtables,other")
		awaitLog(t, up, `"message":"queue: opening failed"`)
		c.save("other", "m", `{}`)
		c.awaitStatus("other", "m", "queued")
	})
}
