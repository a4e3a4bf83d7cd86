package main

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestAQueueInWhichNothingWasEverStoredIsTold(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.in = `{"uid":"a","payload":{}}`
		c.do("model", "put", "-") // where to begin is no question
		for _, command := range []string{"model ls", "stats", "doctor", "policy ls", "model get a", "explain a", "history a", "model run a"} {
			words := strings.Fields(command)
			if _, _, stderr := c.run(words...); strings.Contains(stderr, "nothing was ever stored") {
				t.Errorf("%s: expected no word of it, found %s", command, stderr)
			}
			_, stdout, stderr := c.run(append(words, "--queue", "bigtable")...)
			expectContains(t, stderr, "refreshd: queue bigtable: nothing was ever stored in it; others here: bigtables\n")
			if strings.Contains(stdout, "nothing was") {
				t.Errorf("%s: expected it on stderr only, found %s", command, stdout)
			}
		}
		server.Flush(t)
		_, _, stderr := c.run("stats")
		expectContains(t, stderr, "no other queue was found in this Redis")
	})
}
