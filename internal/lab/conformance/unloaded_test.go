package conformance_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// TestAClientThatMayLoadNoScriptWaitsUntilADaemonHasLoadedThem starts it before any daemon, and flushes the scripts in the middle of its work.
func TestAClientThatMayLoadNoScriptWaitsUntilADaemonHasLoadedThem(t *testing.T) {
	long.Only(t)
	work := maps.Clone(handlers)
	work["python"] = `import os, time, refreshd; refreshd.Worker(lambda a: [time.sleep(.05) for _ in iter(lambda: os.path.exists(os.environ["GO"]), True)] and None).run()`
	work["node"] = `new (require("refreshd.js").Worker)(async (a) => { while (!require("fs").existsSync(process.env.GO)) await a.sleep(0.05) }, { concurrency: 1 }).run()`
	work["php"] = `require getenv("FILE"); (new Refreshd\Worker(function ($a) { while (!file_exists(getenv("GO"))) { usleep(50000); clearstatcache(); } }))->run();`
	work["bash"] = `until [ -e "$GO" ]; do sleep 0.05; done`
	for _, language := range slices.Sorted(maps.Keys(work)) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			users := fixture.WithUsers(t, "q")
			admin, daemon := users.Server.Client(t), users.Store(t, acl.Dispatcher)
			refused := func(what string) {
				t.Helper()
				check.Eventually(t, what, func() bool {
					for _, entry := range admin.ACLLog(t.Context(), 100).Val() {
						if entry.Object == "eval" {
							return true
						}
					}
					return false
				})
				users.Forgive(t)
			}
			load := func() {
				t.Helper()
				must(t, daemon.Clients.LoadScripts(t.Context(), daemon.Keys.Input))
			}
			must(t, admin.ScriptFlush(t.Context()).Err())
			gate := t.TempDir() + "/go"
			worker := startHandler(t, language, work[language], users.URL(t, acl.Worker), "REFRESHD_QUEUE=q", "GO="+gate)
			refused("it finds no scripts at its start")
			load()
			push(t, admin, "m", "")
			check.Equal(t, heard(t, admin), "started m")
			must(t, admin.ScriptFlush(t.Context()).Err())
			must(t, os.WriteFile(gate, nil, 0o600))
			refused("it finds no scripts at its end")
			load()
			check.Equal(t, heard(t, admin), "success m")
			check.Equal(t, worker.Stop(), 0)
			for _, entry := range admin.ACLLog(t.Context(), 100).Val() {
				failIf(t, strings.Contains(entry.Object, "pop"), "expected no fallback to plain, found %s refused", entry.Object)
			}
		})
	}
}
