package main

import (
	"strings"
	"sync/atomic"
	"testing"

	miniredis "github.com/alicebob/miniredis/v2/server"

	"github.com/refreshd/refreshd/internal/testkit"
)

// Each command that changes many models, or what many have, meets a Redis that is not ready for its first script.
func TestACommandAboutManyModelsWaitsForARedisThatIsNotReady(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	c.put(twoModels)
	for _, test := range []struct{ line, in, want string }{
		{"model put -", twoModels + "---\nuid: more\n", "1 created"},
		{"model import -", `{"kind":"model","uid":"late"}`, "1 model: 1 created"},
		{"model run daily once", "", "run        once"},
		{"model disable daily once", "", "disabled   once"},
		{"model enable daily once", "", "enabled    once"},
		{"model rm daily once", "", "removed    once"},
		{"policy put -", "name: p\n", "created    p"},
		{"policy rm p", "", "removed    p"},
		{"hold --id h1 --reason moves", "", "h1"},
	} {
		t.Run(test.line, func(t *testing.T) {
			var met atomic.Bool
			server.Mini.Server().SetPreHook(func(peer *miniredis.Peer, name string, _ ...string) bool {
				if name != "EVALSHA" || met.Swap(true) {
					return false
				}
				peer.WriteError("LOADING Redis is loading the dataset in memory")
				return true
			})
			c := at(t, server)
			c.in = test.in
			code, stdout, stderr := c.run(line(test.line)...)
			failIf(t, code != exitDone || !met.Load() || !strings.Contains(stdout, test.want) || !strings.Contains(stderr, "redis: a call failed"),
				"expected %q behind a call that is made again, found exit code %d, met %t\n%s%s", test.want, code, met.Load(), stdout, stderr)
		})
	}
}

func TestEachCommandThatIsPatientExists(t *testing.T) {
	root := new(app).rootCommand()
	for path := range retried {
		found, _, err := root.Find(strings.Fields(path)[1:])
		must(t, err)
		failIf(t, found.CommandPath() != path || !found.Runnable(), "expected the command %s, found %s", path, found.CommandPath())
	}
}

func TestACommandIsToldAtOnceOfARedisThatIsNotThere(t *testing.T) {
	c := nowhere(t)
	c.in = twoModels
	expectContains(t, c.fail(exitFailed, "model", "put", "-"), "connection refused")
	expectContains(t, c.fail(exitFailed, "policy", "rm", "p"), "connection refused")
}
