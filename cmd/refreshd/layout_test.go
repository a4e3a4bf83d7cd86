package main

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

func TestADispatcherAndAPollerRaiseTheLayoutOfAQueueAndNothingElseDoes(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		for _, daemon := range []string{"dispatcher", "poller"} {
			c, redis := at(t, server), server.Client(t)
			c.env["REFRESHD_QUEUE"] = daemon
			c.save(daemon, "m", `{}`)
			// A model that is due for seconds misses its dispatcher, which is an error.
			for _, command := range [][]string{{"model", "run", "m"}, {"model", "disable", "m"}, {"stats"}, {"doctor", "--repair"}, {"worker", "--http", "http://127.0.0.1:1", "--for", "1ms"}} {
				c.do(command...)
			}
			expectContains(t, c.do("doctor"), "layout 1 of the keys, of 2 that this binary knows\n")
			began := c.start(daemon)
			check.Eventually(t, "the layout is raised", func() bool {
				return redis.HGet(t.Context(), "{"+daemon+"}:settings", "layout").Val() == "2"
			})
			expectContains(t, c.do("doctor"), "layout 2 of the keys, of 2 that this binary knows\n")
			began.ends(t)
		}
	})
}

// TestADaemonWhoseUserMayNotRaiseTheLayoutSaysSoOnceAndWorksOn has a user as the releases before printed it, as far as settings go.
func TestADaemonWhoseUserMayNotRaiseTheLayoutSaysSoOnceAndWorksOn(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	redis, c, service := server.Client(t), at(t, server), newService(t)
	close(service.release)
	must(t, redis.Do(t.Context(), "ACL", "SETUSER", "old", "on", ">secret", "+@all", "-watch", "~bigtables*", "(+hget %R~{bigtables}*)", "(+watch ~bigtables*)").Err())
	c.save("bigtables", "m", `{}`)
	up := c.start("up", "--redis", "redis://old:secret@"+server.Addr, "--http", service.URL, "--dashboard", "off")
	c.awaitStatus("bigtables", "m", "finished")
	up.ends(t)
	told := strings.Count(up.stderr.String(), "the layout of the queue was not raised")
	failIf(t, told != 1, "expected it told once, found %d times:\n%s", told, up.stderr.String())
	expectContains(t, c.do("doctor"), "layout 1 of the keys, of 2 that this binary knows\n")
}
