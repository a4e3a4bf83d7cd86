package testkit

import (
	"context"
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

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// Authority is a private certificate authority in a directory.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes one; it is gone when the test ends.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{dir: t.TempDir()}
	template := certificate("private CA")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	a.cert, a.key = template, newKey(t)
	a.sign(t, "ca", template, a.key)
	return a
}

// File returns the path of a file that was issued, such as "ca.crt".
func (a *Authority) File(name string) string { return filepath.Join(a.dir, name) }

// Issue writes name.crt and name.key, for the given DNS names and for 127.0.0.1.
func (a *Authority) Issue(t testing.TB, name string, dnsNames ...string) {
	t.Helper()
	template := certificate(name)
	template.DNSNames = dnsNames
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	a.sign(t, name, template, newKey(t))
}

func (a *Authority) sign(t testing.TB, name string, template *x509.Certificate, key *ecdsa.PrivateKey) {
	t.Helper()
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	check.Must(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	check.Must(t, err)
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: cert}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		check.Must(t, os.WriteFile(a.File(file), pem.EncodeToMemory(block), 0o600))
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.Must(t, err)
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

// TLS lends a redis-server that also listens for TLS, on the port that is returned, and asks clients for a certificate. The authority
// must have issued "server".
func TLS(t testing.TB, ca *Authority) (s *Server, port string) {
	t.Helper()
	s = Redis(t, "--databases", "2")
	admin := s.Client(t)
	var err error
	for range 5 { // another process may take the port meanwhile
		port, err = freePort()
		check.Must(t, err)
		err = admin.Do(context.Background(), "CONFIG", "SET", "tls-ca-cert-file", ca.File("ca.crt"),
			"tls-cert-file", ca.File("server.crt"), "tls-key-file", ca.File("server.key"), "tls-port", port).Err()
		if err == nil {
			return s, port
		}
		if strings.Contains(err.Error(), "Unknown option") && os.Getenv("CI") == "" {
			t.Skip("this redis-server was built without TLS")
		}
	}
	t.Fatal(err)
	return nil, ""
}
