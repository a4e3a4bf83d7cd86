package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode"

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
		got := said(t, requestError(t.Context(), err))
		failIf(t, got.Reason != want || got.ErrorType != "network" || got.Retryable != nil, "told %+v, want %q", got, want)
	}
}

func TestAFileThatCannotBeWrittenIsToldWithoutItsPath(t *testing.T) {
	d := &download{ctx: t.Context()}
	err := d.failure(&os.PathError{Op: "open", Path: "/srv/secret/feed", Err: syscall.ENOSPC})
	if got := said(t, err); got.Reason != "the file cannot be written" || got.ErrorType != "disk" || !strings.Contains(err.Error(), "/srv/secret/feed") {
		t.Errorf("told %+v of %v", got, err)
	}
}

// FuzzInputURL checks that an accepted address can be asked for as it stands, that its secrets are not shown, and that a refusal is
// final: only the owner can mend it.
func FuzzInputURL(f *testing.F) {
	for _, address := range []string{
		"http://a/feed.csv", "https://user:pass@example.com:8443/a?token=secret#top", "HTTP://EXAMPLE.COM", "http://[::1]:80/", "http://[::1%25eth0]/", "http://[::%25\x87]", "http://[::%25ü]/", "http://exämple.com/ü",
		"http://", "http://:", "http://:80/", "http:///etc/passwd", "http:a", "//a/b", "a/b", "", " http://a", "http://a\r\nHost: b", "http://a b/", "http://a/%zz", "http://a:port/", "http://a:99999/",
		"file:///etc/passwd", "ftp://a/b", "javascript:alert(1)", "data:text/csv,a", "gopher://a", "http+unix://%2Ftmp%2Fx", "http://a@b@c/", "http://\x00/", "\xff", "http://a/\u202e",
		strings.Repeat("http://a/", 300),
	} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		payload, err := json.Marshal(map[string]string{"input_url": address})
		if err != nil || len(address) > 8<<10 {
			return
		}
		parsed, err := inputURL(payload)
		if err != nil {
			if said := said(t, err); said.Retryable == nil || *said.Retryable || said.ErrorType != "input_url" || said.UserFriendlyReason == "" {
				t.Fatalf("%q is refused with %+v", address, said)
			}
			return
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, parsed.String(), nil)
		stopIf(t, err != nil || request.URL.Scheme != "http" && request.URL.Scheme != "https" || request.URL.Hostname() == "",
			"%q is accepted and cannot be asked for: %v", address, err)
		if again := request.URL; again.Scheme != parsed.Scheme || again.Hostname() != parsed.Hostname() || again.Port() != parsed.Port() {
			t.Fatalf("%q is checked as %s and asked for as %s", address, parsed.Host, again.Host)
		}
		text := shown(parsed)
		if public, err := url.Parse(text); err != nil || public.User != nil || strings.ContainsAny(text, "?#") || strings.ContainsFunc(text, unicode.IsControl) {
			t.Fatalf("%q is shown as %q, %v", address, text, err)
		}
	})
}

// said is what the poller understands of an error.
func said(t *testing.T, err error) model.Message {
	t.Helper()
	_, end := try(t.Context(), t, func(context.Context, *worker.Attempt) error { return err }, example())
	return end
}
