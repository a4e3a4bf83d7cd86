package handlers

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model"
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
	guard, err := newGuard([]string{"Feeds.Example.com.", "*.cdn.example", "93.184.216.34"}, false)
	must(t, err)
	for address, want := range map[string]bool{
		"http://feeds.example.com/x": true, "https://FEEDS.example.com.:8443": true, "http://a.cdn.example": true, "http://a.b.cdn.example": true,
		"http://93.184.216.34/": true, "http://user@feeds.example.com": true,
		"http://cdn.example": false, "http://evilcdn.example": false, "http://.cdn.example": false, "http://feeds.example.com.evil.test": false,
		"http://feeds.example.com@evil.test": false, "http://x.feeds.example.com": false, "file://feeds.example.com/etc/passwd": false,
		"gopher://feeds.example.com": false, "http:///x": false,
	} {
		target, err := url.Parse(address)
		must(t, err)
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
	handler, err := Fetch(dir, options)
	must(t, err)
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
