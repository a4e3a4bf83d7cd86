package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func connect(t *testing.T, address string, options ConnectOptions) *Clients {
	t.Helper()
	clients, err := Connect(address, options)
	must(t, err)
	t.Cleanup(func() { _ = clients.Close() })
	return clients
}

func (c *Clients) all() map[string]goredis.UniversalClient {
	return map[string]goredis.UniversalClient{"Read": c.Read, "Write": c.Write, "Block": c.Block}
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
		err := c.Block.BLMove(ctx, key, key, "RIGHT", "RIGHT", time.Second).Err()
		stopIf(t, !errors.Is(err, errLarge), "BLMOVE of 1 MiB in %s = %v, want %v", key, err, errLarge)
		if got := c.Read.LLen(ctx, key).Val(); got != 2 {
			t.Fatalf("%d elements in %s, want 2", got, key)
		}
	}
}

func expectNoAnswer(t *testing.T, c *Clients) {
	t.Helper()
	for name, client := range c.all() {
		err := client.Ping(t.Context()).Err()
		failIf(t, err == nil, "%s: PING was answered, want an error", name)
	}
}

func TestOneAddressMakesThreeWorkingClientsAndOneNodeIsEnoughToFindTheCluster(t *testing.T) {
	with := func(t *testing.T, scheme string, s *testkit.Server) {
		clients := connect(t, scheme+s.Addr, ConnectOptions{})
		expectWorking(t, clients)
		expectEqual(t, "clustered", s.IsCluster(), clients.Clustered)
	}
	testkit.BothIfLong(t, func(t *testing.T, s *testkit.Server) { with(t, "", s) })
	t.Run("cluster", func(t *testing.T) {
		long.Only(t)
		with(t, "redis-cluster://", testkit.Cluster(t))
	})
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
	space := admin.Info(t.Context(), "keyspace").Val()
	failIf(t, !strings.Contains(space, "db2:keys=5") || strings.Contains(space, "db0"), "keys went to %q, want all in database 2", space)
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

func TestNewConnectionSendsNothingButHello(t *testing.T) {
	t.Parallel()
	said := &wire{}
	must(t, connectThrough(t, said, testkit.Redis(t)).Read.Ping(t.Context()).Err())
	const want = "*2\r\n$5\r\nhello\r\n$1\r\n3\r\n*1\r\n$4\r\nping\r\n"
	got := said.Text()
	failIf(t, got != want, "sent %q, want %q", got, want)
}

func TestClientNameIsShownByRedis(t *testing.T) {
	t.Parallel()
	clients := connect(t, testkit.Redis(t).Addr, ConnectOptions{ClientName: "refreshd-poller"})
	for name, client := range clients.all() {
		got := client.ClientGetName(t.Context()).Val()
		failIf(t, got != "refreshd-poller", "%s: name %q, want refreshd-poller", name, got)
	}
}

const push = "return redis.call('RPUSH', KEYS[1], 'four')"

// sideEffects are the ways in which refreshd changes data, each tried on a list of three, with how many it has when it was executed once.
var sideEffects = map[string]struct {
	send func(context.Context, *Clients) error
	want int64
}{
	"RPUSH": {func(ctx context.Context, c *Clients) error { return c.Write.RPush(ctx, "{cut}", "four").Err() }, 4},
	"LPOP":  {func(ctx context.Context, c *Clients) error { return c.Write.LPop(ctx, "{cut}").Err() }, 2},
	"EVAL": {func(ctx context.Context, c *Clients) error {
		return c.Write.Eval(ctx, push, []string{"{cut}"}).Err()
	}, 4},
	"pipeline": {func(ctx context.Context, c *Clients) error {
		return only(c.Write.Pipelined(ctx, func(p goredis.Pipeliner) error { return p.RPush(ctx, "{cut}", "four").Err() }))
	}, 4},
	"transaction": {func(ctx context.Context, c *Clients) error {
		return only(c.Write.TxPipelined(ctx, func(p goredis.Pipeliner) error { return p.RPush(ctx, "{cut}", "four").Err() }))
	}, 4},
	"BLPOP": {func(ctx context.Context, c *Clients) error { return c.Block.BLPop(ctx, time.Second, "{cut}").Err() }, 2},
}

func TestALostReplyOfAWriteIsAnErrorAndTheWriteIsNotRepeatedAndAReadIsAskedForAgain(t *testing.T) {
	test := func(t *testing.T, s *testkit.Server) {
		ctx, direct := t.Context(), s.Client(t)
		for name, effect := range sideEffects {
			clients := connectThrough(t, &wire{cut: "{cut}"}, s)
			must(t, direct.Del(ctx, "{cut}").Err())
			must(t, direct.RPush(ctx, "{cut}", "one", "two", "three").Err())
			err := effect.send(ctx, clients)
			failIf(t, !errors.Is(err, io.EOF), "%s: got %v, want EOF: nobody knows whether it was executed", name, err)
			if got := direct.LLen(ctx, "{cut}").Val(); got != effect.want {
				t.Errorf("%s: %d elements, want %d: executed once", name, got, effect.want)
			}
		}
		read := &wire{cut: "{cut}"}
		clients := connectThrough(t, read, s)
		must(t, direct.Set(ctx, "{cut}", "value", 0).Err())
		got, err := clients.Read.Get(ctx, "{cut}").Result()
		failIf(t, err != nil || got != "value", "GET = %q, %v; want value", got, err)
		expectEqual(t, "times that the read was sent, as its first reply was lost", 2, strings.Count(read.Text(), "{cut}"))
	}
	testkit.BothIfLong(t, test)
	t.Run("cluster", func(t *testing.T) {
		long.Only(t) // until then the options of its clients are checked
		test(t, testkit.Cluster(t))
	})
}

// wire is what a client says. It loses the reply to the first message that contains the text to cut, when Redis has executed all of it.
type wire struct {
	cut string

	mu   sync.Mutex
	sent strings.Builder // guarded by mu: everything
}

func (w *wire) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		return &wiredConn{Conn: conn, wire: w}, err
	}
}

func (*wire) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }

func (*wire) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// Text returns everything that was sent.
func (w *wire) Text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent.String()
}

type wiredConn struct {
	net.Conn
	*wire
	isCut atomic.Bool
}

func (c *wiredConn) Write(message []byte) (int, error) {
	c.mu.Lock()
	before := strings.Contains(c.sent.String(), c.cut)
	c.sent.Write(message)
	c.isCut.Store(!before && c.cut != "" && strings.Contains(string(message), c.cut))
	c.mu.Unlock()
	return c.Conn.Write(message)
}

func (c *wiredConn) Read(reply []byte) (int, error) {
	if !c.isCut.Load() {
		return c.Conn.Read(reply)
	}
	conn := c.Conn
	if bounded, is := conn.(*boundedConn); is {
		conn = bounded.Conn
	}
	_, _ = conn.Read(make([]byte, 1)) // it answers: miniredis pops nothing for a client that has hung up
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn) // until Redis has noticed that no more will come, and hung up
	return 0, io.EOF
}

func connectThrough(t *testing.T, w *wire, s *testkit.Server) *Clients {
	t.Helper()
	clients := connect(t, map[bool]string{true: "redis-cluster://", false: ""}[s.IsCluster()]+s.Addr, ConnectOptions{})
	for _, client := range clients.all() {
		if cluster, is := client.(*goredis.ClusterClient); is {
			cluster.OnNewNode(func(node *goredis.Client) { node.AddHook(w) })
		} else {
			client.AddHook(w)
		}
	}
	return clients
}

func TestOrdinaryCallEndsAtItsDeadlineWhenRedisIsSilent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections and never answers
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() }) // connections in the backlog end with it
	clients := connect(t, listener.Addr().String(), ConnectOptions{})
	for name, client := range map[string]goredis.UniversalClient{"Read": clients.Read, "Write": clients.Write} {
		options := client.(*goredis.Client).Options()
		options.ReadTimeout, options.WriteTimeout = time.Hour, time.Hour // only its deadline can end the call
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := client.Ping(ctx).Err()
		failIf(t, err == nil, "%s: PING was answered, want an error", name)
	}
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
	check.Eventually(t, "the call waits in redis, or has ended", func() bool {
		return len(popped) > 0 || strings.Contains(clients.Read.Info(t.Context(), "clients").Val(), "blocked_clients:1")
	})
	must(t, clients.Write.RPush(t.Context(), "list", "late").Err())
	got := <-popped
	failIf(t, len(got) != 2 || got[1] != "late", "BLPOP = %v, want what was pushed after the deadline", got)
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
	got := <-written
	failIf(t, !strings.Contains(got, "1ms") || strings.Contains(got, "%"), "log got %q, want a formatted line on a timeout of 1ms", got)
}

func TestSentinelsNameTheMasterAndHaveCredentialsOfTheirOwn(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t, "--databases", "4")
	admin := server.Client(t)
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">master/pw", "~*", "&*", "+@all").Err())
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "default", "resetpass", "off").Err())
	addr := testkit.StartSentinel(t, server.Addr, 1, "sentinel auth-user mymaster app\nsentinel auth-pass mymaster master/pw\n"+
		"user default off\nuser watch on >sentinel&pw ~* &* +@all\n")

	good := "redis-sentinel://app:master%2Fpw@127.0.0.1:1," + addr + "/mymaster/3?sentinel_username=watch&sentinel_password="
	clients := connect(t, good+"sentinel%26pw", ConnectOptions{})
	expectWorking(t, clients)
	expectEqual(t, "database", 3, clients.Write.(*goredis.Client).Options().DB)
	expectEqual(t, "clustered", false, clients.Clustered)
	expectNoAnswer(t, connect(t, good+"wrong", ConnectOptions{}))
}

func TestTLSTrustsThePrivateAuthorityAndShowsACertificate(t *testing.T) {
	t.Parallel()
	ca, stranger := testkit.NewAuthority(t), testkit.NewAuthority(t)
	ca.Issue(t, "server", "redis.internal")
	ca.Issue(t, "client")
	_, port := testkit.TLS(t, ca)

	options := ConnectOptions{CAFile: ca.File("ca.crt"), CertFile: ca.File("client.crt"), KeyFile: ca.File("client.key")}
	named, misnamed, mistrusting, anonymous, system := options, options, options, options, options
	named.ServerName, misnamed.ServerName = "redis.internal", "other.internal"
	mistrusting.CAFile, system.CAFile = stranger.File("ca.crt"), ""
	anonymous.CertFile, anonymous.KeyFile = "", ""

	expectWorking(t, connect(t, "rediss://127.0.0.1:"+port+"/1", options))
	expectWorking(t, connect(t, "valkeys://127.0.0.1:"+port, named))
	for name, bad := range map[string]ConnectOptions{
		"another server name": misnamed, "another authority": mistrusting, "no certificate": anonymous, "the system's authorities": system,
	} {
		t.Run(name, func(t *testing.T) { expectNoAnswer(t, connect(t, "rediss://127.0.0.1:"+port, bad)) })
	}
	t.Run("another host in the certificate", func(t *testing.T) {
		expectNoAnswer(t, connect(t, "rediss://localhost:"+port, options))
	})
}

func TestAClusterClientSpeaksTLSToEveryNodeAndOnlyReadsFollowRedirections(t *testing.T) {
	for name, client := range connect(t, "rediss-cluster://h1,h2", ConnectOptions{ServerName: "redis.internal"}).all() {
		o := client.(*goredis.ClusterClient).Options()
		failIf(t, o.TLSConfig == nil || o.TLSConfig.ServerName != "redis.internal" || (o.MaxRedirects > 0) != (name == "Read"),
			"%s: %+v and %d redirections, want server name redis.internal, and none but for reads", name, o.TLSConfig, o.MaxRedirects)
	}
}

func TestTLSFilesThatCannotBeUsedAreRefused(t *testing.T) {
	ca := testkit.NewAuthority(t)
	crt, key, missing := ca.File("ca.crt"), ca.File("ca.key"), ca.File("none")
	tests := map[string]struct {
		address string
		options ConnectOptions
		want    string
	}{
		"no URL": {"redis://:hunter2@h/x", ConnectOptions{}, "redis address: expected the number of a database as in /2, found \"x\""},
		"no TLS": {"redis://:pw@h", ConnectOptions{CAFile: crt},
			"redis address: expected a scheme that speaks TLS, as in rediss://, beside TLS files or a server name, found redis://:***@h:6379"},
		"no TLS but a name": {"redis-cluster://h", ConnectOptions{ServerName: "x"},
			"redis address: expected a scheme that speaks TLS, as in rediss://, beside TLS files or a server name, found redis-cluster://h:6379"},
		"missing CA":  {"rediss://h", ConnectOptions{CAFile: missing}, "read CA file: open " + missing + ": no such file or directory"},
		"no PEM":      {"rediss://h", ConnectOptions{CAFile: key}, "CA file: expected PEM certificates, found none in " + key},
		"no key":      {"rediss://h", ConnectOptions{CertFile: crt}, "client certificate: expected a certificate file and a key file, found only one"},
		"no cert":     {"rediss://h", ConnectOptions{KeyFile: key}, "client certificate: expected a certificate file and a key file, found only one"},
		"missing key": {"rediss://h", ConnectOptions{CertFile: crt, KeyFile: missing}, "read client certificate: open " + missing + ": no such file or directory"},
	}
	for name, test := range tests {
		clients, err := Connect(test.address, test.options)
		failIf(t, clients != nil || err == nil || err.Error() != test.want, "%s: %v, %v\nwant %s", name, clients, err, test.want)
	}
}
