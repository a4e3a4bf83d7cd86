package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// nodeRedis installs a version of a library with npm, and returns the variable of the environment with which Node finds it. Without the registry of npm
// it skips the test.
func nodeRedis(t *testing.T, library string) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir, library)
	if output, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install %s: %v\n%s", library, err, output)
	}
	return "NODE_PATH=" + dir + "/node_modules"
}

// versionsFlag is empty in CI, where .ci/servers plays two. Before a release: REFRESHD_LONG=1 go test ./internal/lab/conformance -run
// EachVersionOfNodeRedis -versions 4.0.0,4,5.0.0,5,6.0.0,6
var versionsFlag = flag.String("versions", "", "the versions of node-redis, of npm")

func TestTheNodeClientWorksWithEachVersionOfNodeRedis(t *testing.T) {
	long.Only(t)
	if *versionsFlag == "" {
		t.Skip("no -versions are given")
	}
	for version := range strings.SplitSeq(*versionsFlag, ",") {
		t.Run(version, func(t *testing.T) {
			library := nodeRedis(t, "redis@"+version)
			t.Run("all scenarios", func(t *testing.T) {
				t.Parallel()
				config := in(t, "node")
				config.Environ = append(config.Environ, library)
				expectAll(t, config)
			})
			t.Run("users of their roles", func(t *testing.T) {
				t.Parallel()
				users := fixture.WithUsers(t, store.DefaultQueue)
				startDaemons(t, users)
				output, err := example(t, "node", "application", "REDIS_URL="+users.URL(t, acl.Application), library).CombinedOutput()
				diff := cmp.Diff(told, string(output))
				stopIf(t, diff != "" || err != nil, "%v, output (-want +got):\n%s", err, diff)
				worker := testkit.StartCommand(t, example(t, "node", "conformance", "REDIS_URL="+users.URL(t, acl.Worker), library))
				awaitSuccess(t, users)
				check.Equal(t, worker.Stop(), 0)
			})
			t.Run("pages of an application", func(t *testing.T) {
				t.Parallel()
				app := applications["one part"](t)
				output, err := example(t, "node", "page", "REDIS_URL="+app.address, "REFRESHD_QUEUE="+app.queue, library).Output()
				diff := cmp.Diff(shown, string(output))
				stopIf(t, diff != "" || err != nil, "%v, output (-want +got):\n%s", err, diff)
			})
			t.Run("cluster", func(t *testing.T) {
				t.Parallel()
				d := divide(t, testkit.Cluster(t))
				for _, plain := range []string{"", "1"} {
					worker := startHandler(t, "node", handlers["node"], d.server.URL, "REFRESHD_QUEUE=q", "PLAIN="+plain, library)
					for _, part := range threeParts {
						d.refresh(part, "m"+plain)
					}
					check.Equal(t, worker.Stop(), 0)
				}
			})
			t.Run("a client that is handed over", func(t *testing.T) {
				t.Parallel()
				s := testkit.Redis(t)
				worker := startHandler(t, "node", handedOver, s.URL+"/3", "REFRESHD_QUEUE=q", library)
				client := fixture.Connect(t, s.URL+"/3").Write
				push(t, client, "m", "")
				check.Equal(t, heard(t, client), "started m")
				check.Equal(t, heard(t, client), "success m")
				check.Equal(t, worker.Stop(), 0)
			})
		})
	}
}

// handedOver is a worker with a client that is connected.
const handedOver = `const client = require("redis").createClient({ url: process.env.REDIS_URL }).on("error", () => {});
client.connect().then(() => new (require("refreshd.js").Worker)(async (a) => { if (a.payload.wait) await a.sleep(600) }, { redis: client, concurrency: 1 }).run())`

// refusedBy is the output of a program that cannot start.
func refusedBy(t *testing.T, program, library string) string {
	t.Helper()
	worker := startHandler(t, "node", program, testkit.FreeAddress(t), library)
	failIf(t, worker.Wait() == 0, "expected the program to fail, it printed %s", worker.Output())
	return worker.Output()
}

func TestTheNodeClientRefusesAnotherLibraryAtItsStart(t *testing.T) {
	t.Parallel()
	const needs = "Error: refreshd needs node-redis 4, 5 or 6 (npm install redis), found "
	for found, version := range map[string]string{"none": "", "3.1.2": "3.1.2", "7.0.0": "7.0.0", "40.0.0": "40.0.0"} {
		dir := t.TempDir()
		if version != "" {
			must(t, os.Mkdir(filepath.Join(dir, "redis"), 0o700))
			must(t, os.WriteFile(filepath.Join(dir, "redis/package.json"), []byte(`{"name":"redis","version":"`+version+`"}`), 0o600))
			must(t, os.WriteFile(filepath.Join(dir, "redis/index.js"), nil, 0o600))
		}
		said := refusedBy(t, handlers["node"], "NODE_PATH="+dir)
		failIf(t, strings.Count(said, needs+found+"\n") != 1, "expected one sentence about %s, found %s", found, said)
	}
}

func TestTheNodeClientRefusesWhatIsNoClientOfASingleServer(t *testing.T) {
	t.Parallel()
	const expected = "TypeError: redis: expected a URL (redis-cluster://HOST:PORT,... for a cluster) or what createClient of node-redis 4, 5 or 6 returns, found "
	_, environ := testkit.Interpreter(t, "node")
	given := []struct{ where, found string }{
		{`require("redis").createCluster({ rootNodes: [{ url: "redis://127.0.0.1:1" }] })`, "Commander"}, {`{ host: "127.0.0.1" }`, "Object"}, {"6379", "Number"},
	}
	program := `const { Worker, Client } = require("refreshd.js"); const refused = (make) => { try { make() } catch (error) { console.error(String(error)) } };`
	for _, one := range given { // all by one program: to start Node takes long
		program += fmt.Sprintf("{ const redis = %s; refused(() => new Worker(() => {}, { redis })); refused(() => new Client({ redis })) }", one.where)
	}
	lines := strings.Split(refusedBy(t, program+"; process.exit(1)", environ[len(environ)-1]), "\n")
	for i, one := range given {
		for _, said := range lines[2*i : 2*i+2] {
			failIf(t, said != expected+one.found, "%s: expected to be refused, found %s", one.where, said)
		}
	}
}

func TestTheNodeClientRefusesTheClientOfAnotherLibrary(t *testing.T) {
	long.Only(t)
	t.Parallel()
	_, environ := testkit.Interpreter(t, "node")
	for library, create := range map[string]string{
		"ioredis":                   `new (require("ioredis"))({ lazyConnect: true })`,
		"three@npm:redis@3":         `require("three").createClient({ url: "redis://127.0.0.1:1" }).on("error", () => {})`,
		"six@npm:redis@6, pool":     `require("six").createClientPool({ url: "redis://127.0.0.1:1" })`,
		"six@npm:redis@6, cluster":  `require("six").createCluster({ rootNodes: [{ url: "redis://127.0.0.1:1" }] })`,
		"six@npm:redis@6, sentinel": `require("six").createSentinel({ name: "m", sentinelRootNodes: [{ host: "127.0.0.1", port: 1 }] })`,
	} {
		name, _, _ := strings.Cut(library, ",")
		path := nodeRedis(t, name) + strings.Replace(environ[len(environ)-1], "NODE_PATH=", ":", 1)
		said := refusedBy(t, `new (require("refreshd.js").Worker)(() => {}, { redis: `+create+` })`, path)
		failIf(t, !strings.Contains(said, "TypeError: redis: expected a URL"), "%s: expected to be refused, found %s", library, said)
	}
}
