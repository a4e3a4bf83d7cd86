package wire

import (
	"fmt"
	"hash/crc32"
	"net"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// place is where the queue of a test lives: whole on a single server, or in parts on a Redis Cluster.
type place struct {
	server *testkit.Server
	parts  int    // 0: the queue is whole
	user   string // how daemons log in, as in "user:password@"; empty: as who may do everything
}

// places are those where every test of the wire must pass.
var places = map[string]func(t *testing.T) place{"server": onServer, "sentinel": onSentinel, "cluster": onCluster}

func onServer(t *testing.T) place { t.Helper(); return place{server: testkit.Redis(t)} }

// onSentinel lets daemons ask a sentinel where the server is. Workers and applications know it.
func onSentinel(t *testing.T) place {
	t.Helper()
	long.Only(t)
	return place{server: testkit.Sentinel(t)}
}

// onCluster makes a queue of eight parts on three masters with a replica each.
func onCluster(t *testing.T) place {
	t.Helper()
	long.Only(t)
	p := place{server: testkit.ReplicatedCluster(t), parts: 8}
	create := testkit.Refreshd(t, append([]string{"queue", "create", "--parts", fmt.Sprint(p.parts)}, p.flags()...)...)
	code := create.Wait()
	stopIf(t, code != 0, "create a queue of %d parts: want exit code 0, got %d", p.parts, code)
	return p
}

func (p place) flags() []string {
	if p.parts == 0 {
		return []string{"--redis", strings.Replace(p.server.URL, "://", "://"+p.user, 1)}
	}
	return []string{"--redis", "redis-cluster://" + p.server.Addr, "--queue", store.DefaultQueue}
}

// login are the arguments of redis-cli to reach every key, as a user with all rights.
func (p place) login() []string {
	words := []string{"-p", port(p.server.Addr)}
	if p.server.IsCluster() {
		words = append(words, "-c")
	}
	return words
}

// queues are the names under which the parts have their keys.
func (p place) queues() []string {
	if p.parts == 0 {
		return []string{store.DefaultQueue}
	}
	var names []string
	for part := range p.parts {
		names = append(names, fmt.Sprintf("{%s:%d}", store.DefaultQueue, part))
	}
	return names
}

// queueOf is the name of the part that has a model, and elsewhere the name of another one, if there are several.
func (p place) queueOf(uid string) string { return p.queueAfter(uid, 0) }

func (p place) elsewhere(uid string) string { return p.queueAfter(uid, 1) }

func (p place) queueAfter(uid string, further int) string {
	names := p.queues()
	return names[(int(crc32.ChecksumIEEE([]byte(uid)))+further)%len(names)]
}

// keys are the keys of a name of the whole queue: one in the part of its model, or one in each part.
func (p place) keys(name string) []string {
	rest := strings.TrimPrefix(name, store.DefaultQueue)
	if words := strings.SplitN(rest, ":", 3); len(words) == 3 {
		return []string{p.queueOf(words[2]) + rest}
	}
	keys := p.queues()
	for i := range keys {
		keys[i] += rest
	}
	return keys
}

func port(address string) string { _, port, _ := net.SplitHostPort(address); return port }
