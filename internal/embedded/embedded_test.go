package embedded_test

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/embedded"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

var (
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

func start(t *testing.T, port int) *embedded.Server {
	t.Helper()
	server := check.Got(embedded.Start(port))(t)
	t.Cleanup(server.Close)
	return server
}

func connect(t *testing.T, server *embedded.Server) *redis.Client {
	t.Helper()
	options := check.Got(redis.ParseURL(server.URL()))(t)
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestItListensOnTheLoopbackInterfaceOnly(t *testing.T) {
	server := start(t, 0)
	if want := "redis://127.0.0.1:" + server.Port(); server.URL() != want {
		t.Errorf("expected %s, found %s", want, server.URL())
	}
	must(t, connect(t, server).Ping(t.Context()).Err())
}

func TestItsKeysExpireByTheClock(t *testing.T) {
	client := connect(t, start(t, 0))
	must(t, client.Set(t.Context(), "k", "v", time.Millisecond).Err())
	for client.Exists(t.Context(), "k").Val() == 1 {
		stopIf(t, t.Context().Err() != nil, "expected the key to expire")
	}
}

func TestAPortThatCannotBeHadIsRefused(t *testing.T) {
	taken := check.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close() //nolint:errcheck // a listener of a test
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	number, _ := strconv.Atoi(port)
	for port, want := range map[int]string{number: "address already in use", -1: "expected 0 to 65535, found -1", 65536: "found 65536"} {
		_, err := embedded.Start(port)
		failIf(t, err == nil || !strings.Contains(err.Error(), want), "port %d: expected %q, found %v", port, want, err)
	}
}
