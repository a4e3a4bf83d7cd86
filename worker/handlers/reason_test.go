package handlers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/worker"
)

func noSuchHost(server string) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "db.internal", Server: server, IsNotFound: true}}
}

func TestAnOwnerCannotTellANameInsideFromANameThatDoesNotExist(t *testing.T) {
	inside := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("reached") })
	named := strings.Replace(inside, "127.0.0.1", "localhost", 1) // resolves to 127.0.0.1
	forbidden, _ := guarded(t, named, FetchOptions{})
	missing := said(t, fetchError(t.Context(), &url.Error{Op: "Get", URL: named, Err: noSuchHost("10.0.0.2:53")}))
	want := model.Message{Type: model.MessageFailure, Failure: policy.Failure{Reason: "the host of the address cannot be reached", ErrorType: "network"}}
	for name, got := range map[string]model.Message{"forbidden": forbidden, "missing": missing} {
		got.UID, got.AttemptUID = "", ""
		failIf(t, got.Failure != want.Failure || got.Type != want.Type, "%s: told %+v, want %+v", name, got, want)
	}
}

func TestAReasonTellsNoAddressOfThisMachineOrItsNetwork(t *testing.T) {
	own, far := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 4321}, &net.TCPAddr{IP: net.IPv4(93, 184, 216, 34), Port: 80}
	refused := os.NewSyscallError("connect", syscall.ECONNREFUSED)
	for want, err := range map[string]error{
		"connect: connection refused":               &url.Error{Err: &net.OpError{Op: "dial", Net: "tcp", Addr: far, Err: refused}},
		"read: connection reset by peer":            fmt.Errorf("read the body: %w", &net.OpError{Op: "read", Net: "tcp", Source: own, Addr: far, Err: os.NewSyscallError("read", syscall.ECONNRESET)}),
		"connect: no route to host":                 &url.Error{Err: &net.OpError{Op: "proxyconnect", Net: "tcp", Err: &net.OpError{Op: "dial", Addr: own, Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}}},
		"the host of the address cannot be reached": &url.Error{Err: noSuchHost("10.0.0.2:53")},
		"net/http: TLS handshake timeout":           &url.Error{Err: errors.New("net/http: TLS handshake timeout")},
	} {
		if got := said(t, requestError(t.Context(), err)); got.Reason != want || got.ErrorType != "network" || got.Retryable != nil {
			t.Errorf("told %+v, want %q", got, want)
		}
	}
}

func TestAFileThatCannotBeWrittenIsToldWithoutItsPath(t *testing.T) {
	d := &download{ctx: t.Context()}
	err := d.failure(&os.PathError{Op: "open", Path: "/srv/secret/feed", Err: syscall.ENOSPC})
	if got := said(t, err); got.Reason != "the file cannot be written" || got.ErrorType != "disk" || !strings.Contains(err.Error(), "/srv/secret/feed") {
		t.Errorf("told %+v of %v", got, err)
	}
}

func TestWhatOwnersAreNotToldStandsInTheLog(t *testing.T) {
	t.Parallel()
	queue := fixture.Live(t, testkit.Miniredis(t))
	p := &pool{t, queue.Store, queue.Redis}
	lines := make(testkit.Lines, 100)
	log := zerolog.New(lines).Level(zerolog.InfoLevel)
	handler := func(context.Context, *worker.Attempt) error {
		return requestError(t.Context(), noSuchHost("10.0.0.2:53"))
	}
	w, err := worker.New(p.store.Pool(), handler, worker.Config{Log: &log, FenceEvery: 20 * time.Millisecond})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	p.offer("m", "http://db.internal/")
	for p.told().Type != model.MessageFailure {
	}
	cancel()
	must(t, <-ended)
	if line := testkit.Await(t, lines, "a line of the log"); !strings.Contains(line, "lookup db.internal on 10.0.0.2:53: no such host") || !strings.Contains(line, `"uid":"m"`) {
		t.Errorf("logged %s", line)
	}
}
