package faults

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// secret is a password with what has to be escaped in URLs, shells and JSON.
const secret = `ge%he"im/1`

// addClerk adds a user who may do all, with that password.
func (f *fleet) addClerk() {
	f.t.Helper()
	must(f.t, f.Redis.Do(f.ctx, "ACL", "SETUSER", "clerk", "on", ">"+secret, "~*", "&*", "+@all").Err())
}

// clerk is where somebody of this name finds Redis, with that password.
func (f *fleet) clerk(name string) string {
	return "redis://" + name + ":" + url.QueryEscape(secret) + "@" + f.Server.Addr
}

// expectUnsaid checks that a text does not contain the secret, in any spelling.
func expectUnsaid(t *testing.T, where, text string) {
	t.Helper()
	for _, spelling := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), `ge%he\"im`, "he%22im", "geheim"} {
		failIf(t, strings.Contains(text, spelling), "%s: want no password, found %q in\n%s", where, spelling, text)
	}
}

func TestNoDaemonTellsThePasswordInAWholeStory(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := newFleet(t, "--databases", "3")
	f.addClerk()
	good, bad := f.clerk("clerk"), f.clerk("other")
	health := map[string]string{}
	run := func(address string, words ...string) *testkit.Process {
		command := exec.Command(testkit.Binary(t), words...)
		command.Env = append(os.Environ(), "REDIS_URL="+address) // an argument would be in the list of processes, where users put it themselves
		return testkit.StartCommand(t, command)
	}
	start := func(address, command string, args ...string) *testkit.Process {
		health[command+address] = testkit.FreeAddress(t)
		return run(address, append([]string{command, "--log-level", "trace", "--health", health[command+address]}, args...)...)
	}
	processes := map[string]*testkit.Process{
		"up": start(good, "up", "-o", "json", "--exec", "sh", "--", "-c", "env; env >&2"), "dispatcher": start(good, "dispatcher"), "poller": start(good, "poller"),
		"refused poller": start(bad, "poller"), "refused worker": start(bad, "worker", "--exec", "true"),
	}
	f.put(1)
	f.AwaitEvent(model.EventSuccess, 1)
	for _, address := range health {
		check.Eventually(t, "it answers about its health", func() bool { status, _ := askHealth(t, address, "/readyz"); return status != 0 })
		_, report := askHealth(t, address, "/readyz")
		expectUnsaid(t, "health", fmt.Sprintf("%+v", report))
	}
	for name, process := range processes {
		title, _ := os.ReadFile(process.File("cmdline"))
		expectUnsaid(t, name+": title", string(title))
		process.Stop()
		expectUnsaid(t, name, process.Output())
	}
	for _, words := range []string{
		"stats -o json", "model get m0 -o json", "doctor", "explain m0", "model get nobody", "stats --tls-server-name x", "stats --queue a:b", "stats --redis " + bad,
		"stats --redis redis://me:" + url.QueryEscape(secret) + "@h:x",
	} {
		expectUnsaid(t, strings.Split(words, " --redis")[0], run(good, append(strings.Fields(words), "--log-level", "trace")...).Output())
	}
}

func TestDaemonsSpeakTLSWithAPrivateAuthorityAndACertificateOfTheirOwn(t *testing.T) {
	long.Only(t)
	t.Parallel()
	ca := testkit.NewAuthority(t)
	ca.Issue(t, "server", "redis.internal")
	ca.Issue(t, "client")
	server, port := testkit.TLS(t, ca)
	f := newFleetOn(t, server)
	secured := []string{"--redis", "rediss://127.0.0.1:" + port, "--tls-ca", ca.File("ca.crt"), "--tls-server-name", "redis.internal"}
	known := append([]string{"--tls-cert", ca.File("client.crt"), "--tls-key", ca.File("client.key")}, secured...)
	daemons := []*testkit.Process{
		testkit.Refreshd(t, append([]string{"dispatcher"}, known...)...),
		testkit.Refreshd(t, append([]string{"poller"}, known...)...),
		testkit.Refreshd(t, append(append([]string{"worker"}, known...), "--exec", "true")...),
	}
	f.put(100)
	f.AwaitEvent(model.EventSuccess, 100)
	stopAll(t, daemons...)
	stranger := testkit.Refreshd(t, append([]string{"stats"}, secured...)...)
	// In TLS 1.3 the refusal may come as an alert or, when the client was writing already, as a reset.
	if code := stranger.Wait(); code != 1 || !strings.Contains(stranger.Output(), "read the settings of the queue") {
		t.Errorf("without a certificate: want exit code 1 and Redis out of reach, got %d\n%s", code, stranger.Output())
	}
}

// flood pushes unusable messages into a list.
func (f *fleet) flood(list string, count int) {
	f.t.Helper()
	const batch = 5000
	for first := 0; first < count; first += batch {
		var entries []any
		for i := first; i < min(first+batch, count); i++ {
			entries = append(entries, fmt.Sprintf(`{"type":"success","n":%d,"garbage":"%s"`, i, strings.Repeat("x", i%200)))
		}
		must(f.t, f.Redis.RPush(f.ctx, list, entries...).Err())
	}
}

func TestGarbageAndMessagesOf100MBNeitherStopTheQueueNorGrowMemory(t *testing.T) {
	long.Only(t)
	t.Parallel()
	const huge, garbage = 3, 20_000 // messages, of the latter on each list
	f := newFleet(t)
	giant := strings.Repeat("x", 100_000_000)
	for range huge {
		must(t, f.Redis.RPush(f.ctx, f.Store.Keys.Output, giant).Err())
	}
	f.flood(f.Store.Keys.Output, garbage)
	f.flood(f.Store.Keys.Control, garbage)
	f.put(1)
	f.run(f.work)
	dispatcher, poller := f.start("dispatcher"), f.poller("flooded")
	began := time.Now()
	f.AwaitEvent(model.EventSuccess, 1)
	took := time.Since(began)
	check.Eventually(t, "everything is rejected", func() bool { return f.Stats()["malformed"] == 2*garbage })
	all := time.Since(began)
	check.Eventually(t, "redis holds less than 100 MB", func() bool { return f.usedMemory() < 100<<20 })
	stats, memory, held := f.Stats(), f.usedMemory(), memoryOf(poller)
	poller.Stop()
	dispatcher.Stop()
	t.Logf("%d messages of 100 MB and %d of garbage were rejected within %s, a result behind them counted after %s; the poller held at most %d MB, redis holds %d MB",
		huge, 2*garbage, all.Round(time.Millisecond), took.Round(time.Millisecond), held>>20, memory>>20)
	failIf(t, stats["oversized"] != huge || stats["success"] != 1, "want %d oversized and 1 success, got %v", huge, stats)
	failIf(t, held > 100<<20, "want at most 100 MB in the poller, got %d", held)
	kept := len(f.List(f.Store.Keys.Rejected))
	failIf(t, kept != 1000, "want the last 1000 kept, got %d", kept)
}

func (f *fleet) usedMemory() int {
	f.t.Helper()
	return numberIn(f.t, f.Redis.Info(f.ctx, "memory").Val(), "used_memory")
}
