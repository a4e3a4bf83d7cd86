package faults

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// secret is a password with what has to be escaped in URLs, shells and JSON.
const secret = `ge%he"im/1`

// spellings are how the secret could stand in an output.
func spellings() []string {
	return []string{secret, url.QueryEscape(secret), url.PathEscape(secret), `ge%he\"im`, "he%22im", "geheim"}
}

// expectUnsaid checks that a text does not tell the secret.
func expectUnsaid(t *testing.T, where, text string) {
	t.Helper()
	for _, spelling := range spellings() {
		if strings.Contains(text, spelling) {
			t.Errorf("%s: want no password, found %q in\n%s", where, spelling, text)
		}
	}
}

func TestNoDaemonTellsThePasswordInAWholeStory(t *testing.T) {
	ctx, stop := context.WithTimeout(context.Background(), testkit.Limit)
	t.Cleanup(stop)
	f := &fleet{Queue: fixture.Live(t, testkit.Redis(t, "--databases", "3")), t: t, ctx: ctx, stop: stop}
	if err := f.Redis.Do(ctx, "ACL", "SETUSER", "clerk", "on", ">"+secret, "~*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	good := fmt.Sprintf("redis://clerk:%s@%s", url.QueryEscape(secret), f.Server.Addr)
	bad := fmt.Sprintf("redis://other:%s@%s", url.QueryEscape(secret), f.Server.Addr)
	health := map[string]string{}
	start := func(address, command string, args ...string) *testkit.Process {
		health[command+address] = testkit.FreeAddress(t)
		t.Setenv("REDIS_URL", address) // an argument would stand in the list of processes, where users put it themselves
		return testkit.Refreshd(t, append([]string{command, "--log-level", "trace", "--health", health[command+address]}, args...)...)
	}
	processes := map[string]*testkit.Process{
		"up": start(good, "up", "--exec", "sh", "--", "-c", "env; env >&2"), "dispatcher": start(good, "dispatcher"), "poller": start(good, "poller"),
		"refused poller": start(bad, "poller"), "refused worker": start(bad, "worker", "--exec", "true"),
	}
	f.put(1)
	f.AwaitEvent(model.EventSuccess, 1)
	for _, address := range health {
		testkit.Eventually(t, "it answers about its health", func() bool { status, _ := askHealth(t, address, "/readyz"); return status != 0 })
		_, report := askHealth(t, address, "/readyz")
		expectUnsaid(t, "health", fmt.Sprintf("%+v", report))
	}
	for name, process := range processes {
		title, _ := os.ReadFile(process.File("cmdline"))
		expectUnsaid(t, name+": title", string(title))
		process.Stop()
		expectUnsaid(t, name, process.Output())
	}
	t.Setenv("REDIS_URL", good)
	for _, words := range []string{
		"stats", "stats -o json", "model ls -o json", "model get m0 -o json", "doctor", "doctor -o json", "explain m0", "circuit show queue -o json",
		"history m0", "policy ls -o json", "model get nobody", "stats --tls-server-name x", "stats --queue a:b", "version -o json", "stats --redis " + bad,
		"stats --redis redis://me:" + url.QueryEscape(secret) + "@h:x",
	} {
		process := testkit.Refreshd(t, append(strings.Fields(words), "--log-level", "trace")...)
		expectUnsaid(t, strings.Split(words, " --redis")[0], process.Output())
	}
}
