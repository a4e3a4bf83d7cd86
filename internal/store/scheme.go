package store

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/refreshd/refreshd/internal/redisurl"
)

// probeTimeout bounds the question whether a server speaks TLS.
const probeTimeout = time.Second

// schemeHint says that the scheme of the address does not fit the server, which then only falls silent or hangs up; empty: it fits, or that
// cannot be told. err is why there was no answer.
func (c *Clients) schemeHint(ctx context.Context, err error) string {
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
	switch {
	case c.address.TLS && answersInTheClear(conn):
		return "; the server does not speak TLS there: try " + c.address.Counterpart()
	case !c.address.TLS && shakesHands(ctx, conn, c.address.Hosts[0]):
		return "; the server speaks TLS there: try " + c.address.Counterpart()
	default:
		return ""
	}
}

// answersInTheClear reports whether a server answers a PING as Redis does, if only by an error.
func answersInTheClear(conn net.Conn) bool {
	answer := make([]byte, 1)
	_, err := conn.Write([]byte("PING\r\n"))
	if err == nil {
		_, err = conn.Read(answer)
	}
	return err == nil && (answer[0] == '+' || answer[0] == '-')
}

// shakesHands reports whether a server speaks TLS, whatever its certificate says.
func shakesHands(ctx context.Context, conn net.Conn, address string) bool {
	host, _, _ := net.SplitHostPort(address)
	err := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}).HandshakeContext(ctx)
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return err == nil || distrusted
}
