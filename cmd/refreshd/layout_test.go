package main

import (
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
