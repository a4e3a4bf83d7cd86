package store

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
)

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
	ca := testkit.NewAuthority(t)
	crt, key, missing := ca.File("ca.crt"), ca.File("ca.key"), ca.File("none")
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
