package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/worker"
)

func TestOnlyAddressesOfTheOpenInternetArePublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "172.32.0.1": true, "100.128.0.1": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true,

		"127.0.0.1": false, "127.8.8.8": false, "0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false, "172.16.0.1": false,
		"192.168.1.1": false, "169.254.169.254": false, "100.100.100.200": false, "192.0.0.192": false, "198.18.0.1": false,
		"192.0.2.1": false, "224.0.0.1": false, "239.1.1.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::ffff:127.0.0.1": false, "::127.0.0.1": false, "fe80::1": false, "fe80::1%eth0": false,
		"fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "fec0::1": false, "2001:db8::1": false, "2001::1": false,
		"2002:7f00:1::": false, "64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::1": false, "100::1": false, "4000::1": false,
	} {
		got := isPublic(netip.MustParseAddr(text))
		failIf(t, got != want, "%s: want public %t, got %t", text, want, got)
	}
}

func TestAHostMatchesItsNameAndAStarAllNamesBelow(t *testing.T) {
	guard := check.Got(newGuard([]string{"Feeds.Example.com.", "*.cdn.example", "93.184.216.34"}, false))(t)
	for address, want := range map[string]bool{
		"http://feeds.example.com/x": true, "https://FEEDS.example.com.:8443": true, "http://a.cdn.example": true, "http://a.b.cdn.example": true,
		"http://93.184.216.34/": true, "http://user@feeds.example.com": true,
		"http://cdn.example": false, "http://evilcdn.example": false, "http://.cdn.example": false, "http://feeds.example.com.evil.test": false,
		"http://feeds.example.com@evil.test": false, "http://x.feeds.example.com": false, "file://feeds.example.com/etc/passwd": false,
		"gopher://feeds.example.com": false, "http:///x": false,
	} {
		target := check.Got(url.Parse(address))(t)
		got := guard.check(target) == nil
		failIf(t, got != want, "%s: want allowed %t, got %t", address, want, got)
	}
	for _, host := range []string{"", "*", "*.", "http://x", "a b", "a*b", "x:80", "*.*.x", "u@x"} {
		_, err := newGuard([]string{host}, false)
		failIf(t, err == nil, "%q: want it refused", host)
	}
}

// guarded fetches one address with a handler of its own and returns what the poller would understand.
func guarded(t *testing.T, address string, options FetchOptions) (model.Message, string) {
	t.Helper()
	dir := t.TempDir()
	handler := check.Got(Fetch(dir, options))(t)
	a := &worker.Attempt{UID: "m", AttemptUID: "a1", Payload: json.RawMessage(`{"input_url":"` + address + `"}`)}
	_, m := try(t.Context(), t, handler, a)
	return m, dir
}

func expectForbidden(t *testing.T, address string, options FetchOptions) {
	t.Helper()
	m, dir := guarded(t, address, options)
	failIf(t, m.Type != model.MessageFailure || m.ErrorType != "forbidden_address" || m.Retryable == nil || *m.Retryable || strings.Contains(m.Reason, "127.0.0.1"),
		"%s: want a refusal that is not retried and tells no address, got %+v", address, m)
	files, _ := os.ReadDir(dir)
	failIf(t, len(files) > 0, "%s: want no file, got %v", address, files)
}

func TestAURLOfAUserReachesNothingPrivateWhateverItIsWrittenLike(t *testing.T) {
	reached := false
	own := serve(t, func(w http.ResponseWriter, _ *http.Request) { reached = true; _, _ = io.WriteString(w, table) })
	port := own[strings.LastIndex(own, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::]", "127.1.2.3", "LOCALHOST."} {
		m, _ := guarded(t, "http://"+host+port+"/", FetchOptions{})
		if host == "127.0.0.1" || host == "[::1]" || host == "[::ffff:127.0.0.1]" {
			expectForbidden(t, "http://"+host+port+"/", FetchOptions{})
		}
		failIf(t, m.Type != model.MessageFailure, "%s: want a failure, got %+v", host, m)
	}
	failIf(t, reached, "want no request to arrive")
	m, _ := guarded(t, own, FetchOptions{AllowPrivate: true})
	failIf(t, m.Type != model.MessageSuccess || !reached, "allowed: got %+v", m)
}

func TestNoProxyOfTheEnvironmentConnectsInPlaceOfTheGuard(t *testing.T) {
	guard, _ := newGuard(nil, false)
	failIf(t, guard.transport().Proxy != nil, "want no proxy where private addresses are refused")
	guard.private = true
	failIf(t, guard.transport().Proxy == nil, "want the proxy of the environment where everything is allowed")
}

func TestARedirectionIsCheckedLikeTheFirstAddress(t *testing.T) {
	secret := serve(t, func(w http.ResponseWriter, _ *http.Request) { t.Error("reached"); _, _ = io.WriteString(w, "secret") })
	to := ""
	public := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
	named := strings.Replace(public, "127.0.0.1", "localhost", 1)
	for _, to = range []string{secret, "file:///etc/passwd", "gopher://localhost/"} {
		expectForbidden(t, named, FetchOptions{AllowPrivate: true, AllowHosts: []string{"localhost"}})
	}
	// Only the first connection of this client is allowed: what it is redirected to must be dialled under the guard again.
	guard, _ := newGuard(nil, false)
	dials := 0
	to = secret
	transport := guard.transport()
	client := guard.client(&http.Client{Transport: transport})
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialer := &net.Dialer{}
		if dials++; dials > 1 {
			dialer.ControlContext = guard.control
		}
		return dialer.DialContext(ctx, network, address)
	}
	_, err := client.Get(public)
	failIf(t, err == nil || dials != 2, "want the second of two connections refused, got %d and %v", dials, err)
}

func TestRedirectionsEnd(t *testing.T) {
	asked := 0
	own := ""
	own = serve(t, func(w http.ResponseWriter, r *http.Request) { asked++; http.Redirect(w, r, own, http.StatusFound) })
	m, _ := guarded(t, own, FetchOptions{AllowPrivate: true})
	failIf(t, m.Type != model.MessageFailure || asked != maxRedirects, "want a failure after %d requests, got %d and %+v", maxRedirects, asked, m)
}

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
	got := said(t, err)
	failIf(t, got.Reason != "the file cannot be written" || got.ErrorType != "disk" || !strings.Contains(err.Error(), "/srv/secret/feed"),
		"told %+v of %v", got, err)
}

// FuzzInputURL checks that an accepted address can be requested unchanged, that its secrets are not shown, and that a refusal is
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
			said := said(t, err)
			stopIf(t, said.Retryable == nil || *said.Retryable || said.ErrorType != "input_url" || said.UserFriendlyReason == "",
				"%q is refused with %+v", address, said)
			return
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, parsed.String(), nil)
		stopIf(t, err != nil || request.URL.Scheme != "http" && request.URL.Scheme != "https" || request.URL.Hostname() == "",
			"%q is accepted and cannot be asked for: %v", address, err)
		again := request.URL
		stopIf(t, again.Scheme != parsed.Scheme || again.Hostname() != parsed.Hostname() || again.Port() != parsed.Port(),
			"%q is checked as %s and asked for as %s", address, parsed.Host, again.Host)
		text := shown(parsed)
		public, err := url.Parse(text)
		stopIf(t, err != nil || public.User != nil || strings.ContainsAny(text, "?#") || strings.ContainsFunc(text, unicode.IsControl),
			"%q is shown as %q, %v", address, text, err)
	})
}

func said(t *testing.T, err error) model.Message {
	t.Helper()
	_, end := try(t.Context(), t, func(context.Context, *worker.Attempt) error { return err }, example())
	return end
}
