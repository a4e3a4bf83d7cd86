package store

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, address string, options ConnectOptions) *Clients {
	t.Helper()
	clients, err := Connect(address, options)
	must(t, err)
	t.Cleanup(func() { _ = clients.Close() })
	return clients
}

func (c *Clients) all() map[string]redis.UniversalClient {
	return map[string]redis.UniversalClient{"Read": c.Read, "Write": c.Write, "Block": c.Block}
}

// expectWorking sends each client what it is there for, on keys of all slots.
func expectWorking(t *testing.T, c *Clients) {
	t.Helper()
	ctx := t.Context()
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		must(t, c.Write.RPush(ctx, key, "one", "two").Err())
		if got := c.Read.LLen(ctx, key).Val(); got != 2 {
			t.Fatalf("%d elements in %s, want 2", got, key)
		}
		if got := c.Block.BLPop(ctx, time.Second, key).Val(); len(got) != 2 || got[1] != "one" {
			t.Fatalf("BLPOP %s = %v, want one", key, got)
		}
		must(t, c.Write.RPush(ctx, key, strings.Repeat("x", 1<<20)).Err())
		if err := c.Block.BLMove(ctx, key, key, "RIGHT", "RIGHT", time.Second).Err(); !errors.Is(err, errLarge) {
			t.Fatalf("BLMOVE of 1 MiB in %s = %v, want %v", key, err, errLarge)
		}
		if got := c.Read.LLen(ctx, key).Val(); got != 2 {
			t.Fatalf("%d elements in %s, want 2", got, key)
		}
	}
}

func expectNoAnswer(t *testing.T, c *Clients) {
	t.Helper()
	for name, client := range c.all() {
		if err := client.Ping(t.Context()).Err(); err == nil {
			t.Errorf("%s: PING was answered, want an error", name)
		}
	}
}

func TestOneAddressMakesThreeWorkingClients(t *testing.T) {
	testkit.Both(t, func(t *testing.T, s *testkit.Server) {
		clients := connect(t, s.Addr, ConnectOptions{})
		expectWorking(t, clients)
		if clients.Clustered {
			t.Error("Clustered, want a single server")
		}
	})
}

func TestOneNodeIsEnoughToFindTheCluster(t *testing.T) {
	long.Only(t)
	t.Parallel()
	clients := connect(t, "redis-cluster://"+testkit.Cluster(t).Addr, ConnectOptions{})
	expectWorking(t, clients)
	if !clients.Clustered {
		t.Error("not Clustered, want a cluster")
	}
}

func TestSocketTakesCredentialsAndDatabase(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "socket") // the path of a socket may be no longer than 107 bytes, which t.TempDir exceeds
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "redis.sock")
	admin := testkit.Redis(t, "--unixsocket", path).Client(t)
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">p@ss/word", "~*", "&*", "+@all").Err())

	expectWorking(t, connect(t, "unix://app:p%40ss%2Fword@"+path+"?db=2", ConnectOptions{}))
	if space := admin.Info(t.Context(), "keyspace").Val(); !strings.Contains(space, "db2:keys=5") || strings.Contains(space, "db0") {
		t.Errorf("keys went to %q, want all in database 2", space)
	}
	expectNoAnswer(t, connect(t, "unix://app:wrong@"+path, ConnectOptions{}))
}

func TestConnectDialsNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	for _, scheme := range []string{"redis://", "redis-cluster://"} {
		connect(t, scheme+listener.Addr().String(), ConnectOptions{})
	}
	connect(t, "redis-sentinel://"+listener.Addr().String()+"/m", ConnectOptions{})
	accepted := make(chan error, 1)
	go func() {
		_, err := listener.Accept()
		accepted <- err
	}()
	must(t, listener.Close())
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepted a connection (%v), want none", err)
	}
}

func TestConnectRefusesWhatItCannotParse(t *testing.T) {
	clients, err := Connect("redis://:hunter2@h/x", ConnectOptions{})
	if clients != nil || err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, %v; want an error without the password", clients, err)
	}
}

func TestNewConnectionSendsNothingButHello(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, "nothing to cut")
	addr, err := proxy.Addr(testkit.Redis(t).Addr)
	must(t, err)
	must(t, connect(t, addr, ConnectOptions{}).Read.Ping(t.Context()).Err())
	const want = "*2\r\n$5\r\nhello\r\n$1\r\n3\r\n*1\r\n$4\r\nping\r\n"
	if got := proxy.Text(); got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
}

func TestClientNameIsShownByRedis(t *testing.T) {
	t.Parallel()
	clients := connect(t, testkit.Redis(t).Addr, ConnectOptions{ClientName: "refreshd-poller"})
	for name, client := range clients.all() {
		if got := client.ClientGetName(t.Context()).Val(); got != "refreshd-poller" {
			t.Errorf("%s: name %q, want refreshd-poller", name, got)
		}
	}
}

var pushOne = redis.NewScript("return redis.call('RPUSH', KEYS[1], 'four')")

// sideEffects are the ways in which refreshd changes data, each tried on a list of three.
var sideEffects = map[string]struct {
	send func(context.Context, *Clients) error
	want int64 // length of the list when it was executed once
}{
	"RPUSH": {func(ctx context.Context, c *Clients) error {
		return c.Write.RPush(ctx, "{cut}", "four").Err()
	}, 4},
	"LPOP": {func(ctx context.Context, c *Clients) error {
		return c.Write.LPop(ctx, "{cut}").Err()
	}, 2},
	"EVAL": {func(ctx context.Context, c *Clients) error {
		return pushOne.Eval(ctx, c.Write, []string{"{cut}"}).Err()
	}, 4},
	"pipeline": {func(ctx context.Context, c *Clients) error {
		_, err := c.Write.Pipelined(ctx, func(p redis.Pipeliner) error {
			return p.RPush(ctx, "{cut}", "four").Err()
		})
		return err
	}, 4},
	"transaction": {func(ctx context.Context, c *Clients) error {
		_, err := c.Write.TxPipelined(ctx, func(p redis.Pipeliner) error {
			return p.RPush(ctx, "{cut}", "four").Err()
		})
		return err
	}, 4},
	"BLPOP": {func(ctx context.Context, c *Clients) error {
		return c.Block.BLPop(ctx, time.Second, "{cut}").Err()
	}, 2},
}

func TestLostReplyOfAWriteIsAnErrorAndTheWriteIsNotRepeated(t *testing.T) {
	testkit.Both(t, func(t *testing.T, s *testkit.Server) {
		for name, effect := range sideEffects {
			t.Run(name, func(t *testing.T) {
				clients := connectThrough(t, newProxy(t, "{cut}"), s)
				expectOnce(t, s, func(ctx context.Context) error { return effect.send(ctx, clients) }, effect.want)
			})
		}
	})
}

func TestLostReplyOfAWriteToAClusterIsAnErrorAndTheWriteIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := testkit.Cluster(t)
	for name, effect := range sideEffects {
		t.Run(name, func(t *testing.T) {
			clients := connectThrough(t, newProxy(t, "{cut}"), s)
			expectOnce(t, s, func(ctx context.Context) error { return effect.send(ctx, clients) }, effect.want)
		})
	}
}

func expectOnce(t *testing.T, s *testkit.Server, send func(context.Context) error, want int64) {
	t.Helper()
	s.Flush(t)
	direct := s.Client(t)
	must(t, direct.RPush(t.Context(), "{cut}", "one", "two", "three").Err())
	if err := send(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want EOF: nobody knows whether it was executed", err)
	}
	if got := direct.LLen(t.Context(), "{cut}").Val(); got != want {
		t.Errorf("%d elements, want %d: executed once", got, want)
	}
}

func TestLostReplyOfAReadIsAskedForAgain(t *testing.T) {
	testkit.Both(t, expectReadRepeated)
	t.Run("cluster", func(t *testing.T) { expectReadRepeated(t, testkit.Cluster(t)) })
}

func expectReadRepeated(t *testing.T, s *testkit.Server) {
	t.Helper()
	proxy := newProxy(t, "{cut}")
	clients := connectThrough(t, proxy, s)
	must(t, s.Client(t).Set(t.Context(), "{cut}", "value", 0).Err())
	if got, err := clients.Read.Get(t.Context(), "{cut}").Result(); err != nil || got != "value" {
		t.Errorf("GET = %q, %v; want value", got, err)
	}
	if got := proxy.Sent("{cut}"); got != 2 {
		t.Errorf("sent %d times, want 2: the first reply was lost", got)
	}
}

// connectThrough puts a proxy in front of every node. The nodes of a cluster are found by the addresses that they
// announce, so there it takes the place of the dialer.
func connectThrough(t *testing.T, p *proxy, s *testkit.Server) *Clients {
	t.Helper()
	if !s.IsCluster() {
		addr, err := p.Addr(s.Addr)
		must(t, err)
		return connect(t, addr, ConnectOptions{})
	}
	clients := connect(t, "redis-cluster://"+s.Addr, ConnectOptions{})
	for _, client := range clients.all() {
		client.(*redis.ClusterClient).Options().Dialer = p.Dial
	}
	return clients
}

func TestOrdinaryCallEndsAtItsDeadlineWhenRedisIsSilent(t *testing.T) {
	t.Parallel()
	clients := connect(t, silence(t), ConnectOptions{})
	for name, client := range map[string]redis.UniversalClient{"Read": clients.Read, "Write": clients.Write} {
		options := client.(*redis.Client).Options()
		options.ReadTimeout, options.WriteTimeout = time.Hour, time.Hour // only its deadline can end the call
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := client.Ping(ctx).Err(); err == nil {
			t.Errorf("%s: PING was answered, want an error", name)
		}
	}
}

// silence is the address of a server that accepts connections and never answers.
func silence(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() }) // connections in the backlog end with it
	return listener.Addr().String()
}

// overdue is a context whose deadline has passed, but that nobody has ended: what heeds deadlines fails with it at once.
type overdue struct{ context.Context }

func (overdue) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

func TestBlockedCallIgnoresItsDeadlineAndLosesNothing(t *testing.T) {
	t.Parallel()
	clients := connect(t, testkit.Redis(t).Addr, ConnectOptions{})
	must(t, clients.Block.Ping(t.Context()).Err()) // a connection is made within the deadline, if at all
	popped := make(chan []string, 1)
	go func() { popped <- clients.Block.BLPop(overdue{t.Context()}, time.Hour, "list").Val() }()
	testkit.Eventually(t, "the call waits in redis, or has ended", func() bool {
		return len(popped) > 0 || strings.Contains(clients.Read.Info(t.Context(), "clients").Val(), "blocked_clients:1")
	})
	must(t, clients.Write.RPush(t.Context(), "list", "late").Err())
	if got := <-popped; len(got) != 2 || got[1] != "late" {
		t.Errorf("BLPOP = %v, want what was pushed after the deadline", got)
	}
}

func TestLinesOfTheDriverGoToTheLog(t *testing.T) {
	written := make(chan string, 100)
	LogTo(func(_ context.Context, message string) {
		select {
		case written <- message:
		default:
		}
	})
	defer LogTo(nil)
	clients := connect(t, testkit.Miniredis(t).Addr, ConnectOptions{})
	must(t, clients.Write.RPush(t.Context(), "list", "one").Err())
	must(t, clients.Block.BLPop(t.Context(), time.Millisecond, "list").Err())
	if got := <-written; !strings.Contains(got, "1ms") || strings.Contains(got, "%") {
		t.Errorf("log got %q, want a formatted line on a timeout of 1ms", got)
	}
}
