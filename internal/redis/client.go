// Package redis has the connections to Redis and the ways to talk to it: clients, scripts, retries and replies. It knows nothing of models.
package redis

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/refreshd/refreshd/internal/redisurl"
	"github.com/refreshd/refreshd/model/document"
)

// Clients are the connections of one program to Redis, one client for each way of use. A lost reply leaves open whether
// the command was executed; go-redis then sends it again, which does no harm to a read and pops or pushes twice
// otherwise. It has no switch for that per command, so each caller chooses a client.
type Clients struct {
	// Read is for reads, which may be repeated. It retries. No script goes through it, for all of them write.
	Read goredis.UniversalClient
	// Write is for everything with a side effect. It never sends a command twice: an error means that nobody knows, and
	// the caller asks or tries again in a way that is safe.
	Write goredis.UniversalClient
	// Block is for calls that wait in the server, with a timeout of one second there and no deadline here: a deadline
	// would drop an element that is already on its way. Never sends twice. At most MaxWaiting calls at a time.
	// It receives no value above 64 KiB: the call ends with an error, and its connection with it.
	Block goredis.UniversalClient
	// Clustered reports Redis Cluster, where all keys of a script must share one hash tag.
	Clustered bool

	address redisurl.Address // of the server; zero: unknown
}

// ConnectOptions are settings beside the address. The zero value is usable.
type ConnectOptions struct {
	// CAFile holds PEM certificates of the only authorities to trust. Defaults to empty: the system's.
	CAFile string
	// CertFile and KeyFile hold the PEM certificate and key that the program shows to Redis. Both or none.
	CertFile, KeyFile string
	// ServerName is the name expected in the certificates of Redis. Defaults to empty: the host that is dialled, which
	// Cluster and Sentinel may announce as a bare IP address.
	ServerName string
	// ClientName is shown by CLIENT LIST, without spaces. Defaults to empty.
	ClientName string
}

// MaxWaiting is how many calls of the client Block may wait at a time.
const MaxWaiting = 4096

const (
	dialTimeout = 2 * time.Second
	// ioTimeout outlasts a fork or a slow disk of Redis, at which nothing is gained by giving up.
	ioTimeout = 5 * time.Second
	// poolTimeout outlasts ioTimeout: a busy pool waits for its slowest command.
	poolTimeout = 6 * time.Second
	// idleTimeout is below the 4 minutes and more after which servers and balancers silently forget a connection.
	idleTimeout = time.Minute
	// lifetime bounds how long a connection talks to a demoted master behind a name that has moved on.
	lifetime       = 5 * time.Minute
	lifetimeJitter = 30 * time.Second
	// clusterReload bounds how long Write knows nothing of a fail-over, for it follows no redirection by itself.
	clusterReload = 5 * time.Second

	ordinaryPool = 10
	pipelinePool = 4
	blockingPool = MaxWaiting
	never        = -1
)

// Connect makes the clients for an address:
//
//	host:port
//	redis://[[user]:password@]host[:6379][/db] or [?db=2]
//	unix://[[user]:password@]/path/of/the/socket[?db=2]
//	redis-cluster://[[user]:password@]host1:6379,host2:6379
//	redis-sentinel://[[user]:password@]host1:26379,host2:26379/mymaster[/db][?sentinel_username=u&sentinel_password=p]
//
// With rediss, rediss-cluster and rediss-sentinel it speaks TLS; valkey and valkeys are other names of redis and rediss.
// User and password belong to Redis, also behind sentinels. Special characters in them are percent-encoded.
//
// Connect checks its arguments and dials nothing.
func Connect(address string, options ConnectOptions) (*Clients, error) {
	a, err := redisurl.Parse(address)
	if err != nil {
		return nil, err
	}
	security, err := options.tls(a)
	if err != nil {
		return nil, err
	}
	read := goredis.UniversalOptions{
		OnConnect: nameConnections(options.ClientName), TLSConfig: security, MaxRetries: once,
		PoolSize: ordinaryPool, PipelinePoolSize: pipelinePool, ContextTimeoutEnabled: true,
	}
	write := read
	write.MaxRetries = never
	write.MaxRedirects = never // a cluster client repeats a command after a lost reply as long as it may redirect, whatever MaxRetries says
	block := write
	block.PoolSize, block.PipelinePoolSize, block.ContextTimeoutEnabled = blockingPool, never, false
	dial := goredis.NewDialer(&goredis.Options{DialTimeout: dialTimeout, TLSConfig: security})
	block.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &boundedConn{Conn: conn}, nil
	}
	clients := &Clients{newClient(a, read), newClient(a, write), newClient(a, block), a.Topology == redisurl.Cluster, a}
	clients.Read.AddHook(RetryHook{})
	clients.Write.AddHook(RetryHook{Writes: true})
	return clients, nil
}

// nameConnections gives each connection a name. A service may forbid that, and nothing depends on it.
func nameConnections(name string) func(ctx context.Context, conn *goredis.Conn) error {
	if name == "" {
		return nil
	}
	return func(ctx context.Context, conn *goredis.Conn) error {
		if err := conn.ClientSetName(ctx, name).Err(); !Answered(err) {
			return err
		}
		return nil
	}
}

// Close closes every connection. A call that is blocked in the server ends with an error.
func (c *Clients) Close() error {
	return errors.Join(c.Read.Close(), c.Write.Close(), c.Block.Close())
}

// once is how often a read is asked for again: enough for a connection that was lost while idle. The loops try again for ever, and
// a call that hangs must fail well before they are taken to be stuck.
const once = 1

// newClient completes the options with what all clients share. It chooses by the topology, where redis.NewUniversalClient would guess by
// the number of hosts.
func newClient(a redisurl.Address, o goredis.UniversalOptions) goredis.UniversalClient {
	o.Addrs, o.MasterName, o.DB = a.Hosts, a.Master, a.DB
	o.Username, o.Password = a.Username, a.Password
	o.SentinelUsername, o.SentinelPassword = a.SentinelUsername, a.SentinelPassword
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTimeout, ioTimeout, ioTimeout, poolTimeout
	o.ConnMaxIdleTime, o.ConnMaxLifetime, o.ConnMaxLifetimeJitter = idleTimeout, lifetime, lifetimeJitter
	// Read retries by itself and the loops of refreshd try again for ever, so a dial need not.
	o.DialerRetries = 1
	// Without these two, each new connection sends commands that most servers refuse.
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch a.Topology {
	case redisurl.Cluster:
		options := o.Cluster()
		options.ClusterStateReloadInterval = clusterReload
		return goredis.NewClusterClient(options)
	case redisurl.Sentinel:
		return goredis.NewFailoverClient(o.Failover())
	default:
		return goredis.NewClient(o.Simple())
	}
}

// tls returns nil for an address that does not ask for TLS. When the options say that TLS is meant, nothing is said in the clear.
func (o ConnectOptions) tls(a redisurl.Address) (*tls.Config, error) {
	switch meant := o.CAFile+o.CertFile+o.KeyFile+o.ServerName != ""; {
	case !a.TLS && meant:
		want := "a scheme that speaks TLS, as in rediss://, beside TLS files or a server name"
		return nil, document.Refuse("redis address", want, a.String())
	case !a.TLS:
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.ServerName}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read CA file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, document.Refuse("CA file", "PEM certificates", "none in "+o.CAFile)
		}
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, document.Refuse("client certificate", "a certificate file and a key file", "only one")
	}
	if o.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// LogTo hands every line that go-redis would print on stderr to log: dial failures, masters that sentinels name. There is
// one such log in a program; LogTo may be called at any time. A nil log drops the lines.
func LogTo(log func(ctx context.Context, message string)) {
	goredis.SetLogger(lines(log))
}

type lines func(ctx context.Context, message string)

// Printf is called by go-redis.
func (log lines) Printf(ctx context.Context, format string, values ...any) {
	if log != nil {
		log(ctx, fmt.Sprintf(format, values...))
	}
}

// maxWaited is the largest value that a waiting call receives, in bytes.
const maxWaited = 64 << 10

// errLarge is the error of a waiting call whose answer is too large to be received.
var errLarge = errors.New("the answer is too large to be waited for")

// boundedConn is a connection to Redis that ends with errLarge before it passes on a value above the bound. The size comes before
// the value, so nobody makes room for it. The reader then has to give up the connection.
type boundedConn struct {
	net.Conn
	header []byte    // the beginning of the line that is being received
	value  int       // bytes that are still to come of a value and the end of its line
	sent   time.Time // until when the last call may be sent
}

// headerSize is more than any header of a value has.
const headerSize = 32

// SetWriteDeadline notes until when a call may be sent: its answer is waited for from then on.
func (c *boundedConn) SetWriteDeadline(at time.Time) error {
	c.sent = at
	return c.Conn.SetWriteDeadline(at)
}

// SetReadDeadline shortens the deadline of a call that waits: go-redis adds 10 s to the time for which it blocks.
func (c *boundedConn) SetReadDeadline(at time.Time) error {
	if most := c.sent.Add(BlockFor); !c.sent.IsZero() && at.After(most) {
		at = most
	}
	return c.Conn.SetReadDeadline(at)
}

// Read reads from Redis. The error is errLarge as soon as the header of a value above the bound is there.
func (c *boundedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		if rest = c.follow(rest); c.value > maxWaited+len("\r\n") {
			return 0, errLarge
		}
	}
	return n, err
}

// follow takes note of a part of what was received, and returns the rest: a part of a value, or a line up to its end. A value follows the
// line $<size>; of RESP3 also =<size> and !<size>.
func (c *boundedConn) follow(received []byte) (rest []byte) {
	if c.value > 0 {
		part := min(c.value, len(received))
		c.value -= part
		return received[part:]
	}
	line, rest, ended := bytes.Cut(received, []byte("\n"))
	c.header = append(c.header, line[:min(len(line), headerSize-len(c.header))]...)
	if !ended {
		return nil
	}
	if header := bytes.TrimSuffix(c.header, []byte("\r")); len(header) > 0 && bytes.IndexByte([]byte("$=!"), header[0]) >= 0 {
		size, err := strconv.Atoi(string(header[1:])) // out of range, it is the largest number
		if size >= 0 && (err == nil || errors.Is(err, strconv.ErrRange)) {
			c.value = max(size, size+len("\r\n"))
		}
	}
	c.header = c.header[:0]
	return rest
}

// probeTimeout bounds the question whether a server speaks TLS.
const probeTimeout = 3 * time.Second

// SchemeHint says after an error that the server expects another scheme, TLS or not; empty: it does not, or nobody knows.
func (c *Clients) SchemeHint(ctx context.Context, err error) string {
	if len(c.address.Hosts) == 0 || c.address.Topology == redisurl.Socket || Answered(err) {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.address.Hosts[0])
	if err != nil {
		return ""
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	if c.address.TLS {
		answer := make([]byte, 1)
		if _, err = conn.Write([]byte("PING\r\n")); err == nil {
			_, err = conn.Read(answer)
		}
		if err == nil && (answer[0] == '+' || answer[0] == '-') { // as Redis answers, if only by an error
			return "; the server does not speak TLS there: try " + c.address.Counterpart()
		}
		return ""
	}
	host, _, _ := net.SplitHostPort(c.address.Hosts[0])
	err = tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}).HandshakeContext(ctx)
	if _, distrusted := errors.AsType[*tls.CertificateVerificationError](err); err == nil || distrusted {
		return "; the server speaks TLS there: try " + c.address.Counterpart()
	}
	return ""
}

// BlockFor is how long a blocking call waits in the server; go-redis cannot be interrupted meanwhile, so shutdown takes as
// long.
const BlockFor = time.Second

// Arrived reports by the end of a blocking call whether anything came, even if it was too large to be received.
func Arrived(err error, doing string) (bool, error) {
	switch {
	case Missing(err):
		return false, nil
	case errors.Is(err, errLarge):
		return true, nil
	}
	return err == nil, Wrap(err, doing)
}
