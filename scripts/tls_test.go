package scripts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redistest"
)

// authority is a private certificate authority in a directory.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	template := certificate("private CA")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	a.cert, a.key = template, newKey(t)
	a.sign(t, "ca", template, a.key)
	return a
}

// file returns the path of a file that sign has written, such as "ca.crt".
func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue writes name.crt and name.key, for the given DNS names and for 127.0.0.1.
func (a *authority) issue(t *testing.T, name string, dnsNames ...string) {
	t.Helper()
	template := certificate(name)
	template.DNSNames = dnsNames
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	a.sign(t, name, template, newKey(t))
}

func (a *authority) sign(t *testing.T, name string, template *x509.Certificate, key *ecdsa.PrivateKey) {
	t.Helper()
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	must(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	a.write(t, name+".crt", "CERTIFICATE", cert)
	a.write(t, name+".key", "EC PRIVATE KEY", private)
}

func (a *authority) write(t *testing.T, name, kind string, bytes []byte) {
	t.Helper()
	must(t, os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// serveTLS makes a server listen for TLS too and returns that port. It asks clients for a certificate.
func serveTLS(t *testing.T, ca *authority) (port string) {
	t.Helper()
	admin := redistest.Redis(t, "--databases", "2").Client(t)
	var err error
	for range 5 { // another process may take the port meanwhile
		_, port, _ = net.SplitHostPort(freeAddr(t))
		err = admin.Do(t.Context(), "CONFIG", "SET", "tls-ca-cert-file", ca.file("ca.crt"),
			"tls-cert-file", ca.file("server.crt"), "tls-key-file", ca.file("server.key"), "tls-port", port).Err()
		if err == nil {
			return port
		}
		skipWithoutTLS(t, err)
	}
	t.Fatal(err)
	return ""
}

func skipWithoutTLS(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), "Unknown option") && os.Getenv("CI") == "" {
		t.Skip("this redis-server was built without TLS")
	}
}

func TestTLSTrustsThePrivateAuthorityAndShowsACertificate(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	ca.issue(t, "server", "redis.internal")
	ca.issue(t, "client")
	port := serveTLS(t, ca)

	options := ConnectOptions{CAFile: ca.file("ca.crt"), CertFile: ca.file("client.crt"), KeyFile: ca.file("client.key")}
	named, misnamed, mistrusting, anonymous, system := options, options, options, options, options
	named.ServerName, misnamed.ServerName = "redis.internal", "other.internal"
	mistrusting.CAFile, system.CAFile = stranger.file("ca.crt"), ""
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

func TestClusterSpeaksTLSToEveryNode(t *testing.T) {
	clients := connect(t, "rediss-cluster://h1,h2", ConnectOptions{ServerName: "redis.internal"})
	for _, client := range clients.all() {
		config := client.(*redis.ClusterClient).Options().TLSConfig
		if config == nil || config.ServerName != "redis.internal" {
			t.Errorf("TLS of a cluster client: %+v, want server name redis.internal", config)
		}
	}
}

func TestTLSFilesThatCannotBeUsedAreRefused(t *testing.T) {
	ca := newAuthority(t)
	crt, key, missing := ca.file("ca.crt"), ca.file("ca.key"), ca.file("none")
	tests := map[string]struct {
		address string
		options ConnectOptions
		want    string
	}{
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
		if clients != nil || err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, %v\nwant %s", name, clients, err, test.want)
		}
	}
}
