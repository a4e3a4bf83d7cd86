package faults

import (
	"context"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

func TestDaemonsSpeakTLSWithAPrivateAuthorityAndACertificateOfTheirOwn(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	ca.Issue(t, "server", "redis.internal")
	ca.Issue(t, "client")
	server, port := testkit.TLS(t, ca)
	ctx, stop := context.WithTimeout(context.Background(), testkit.Limit)
	t.Cleanup(stop)
	f := &fleet{Queue: fixture.Live(t, server), t: t, ctx: ctx, stop: stop}
	secured := []string{"--redis", "rediss://127.0.0.1:" + port, "--tls-ca", ca.File("ca.crt"), "--tls-server-name", "redis.internal"}
	known := append([]string{"--tls-cert", ca.File("client.crt"), "--tls-key", ca.File("client.key")}, secured...)
	daemons := []*testkit.Process{
		testkit.Refreshd(t, append([]string{"dispatcher"}, known...)...),
		testkit.Refreshd(t, append([]string{"poller"}, known...)...),
		testkit.Refreshd(t, append(append([]string{"worker"}, known...), "--exec", "true")...),
	}
	f.put(100)
	f.AwaitEvent(model.EventSuccess, 100)
	for _, daemon := range daemons {
		if code := daemon.Stop(); code != 0 {
			t.Errorf("want exit code 0, got %d", code)
		}
	}
	stranger := testkit.Refreshd(t, append([]string{"stats"}, secured...)...)
	// In TLS 1.3 the refusal may come as an alert or, when the client was writing already, as a reset.
	if code := stranger.Wait(); code != 1 || !strings.Contains(stranger.Output(), "read the settings of the queue") {
		t.Errorf("without a certificate: want exit code 1 and Redis out of reach, got %d\n%s", code, stranger.Output())
	}
}
