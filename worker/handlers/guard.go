package handlers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// guard decides where a URL of a user may lead: not to servers that only this machine reaches, such as databases without a password or the
// metadata of a cloud (server-side request forgery).
type guard struct {
	hosts   []string // allowed host names, in small letters; none: every one
	private bool     // addresses that are not public are allowed too
}

const maxRedirects = 10

// refusal says which part of a URL keeps it from being requested.
type refusal string

func (r refusal) Error() string { return string(r) }

// newGuard accepts host names such as feeds.example.com and, for all names below one, *.example.com.
func newGuard(hosts []string, private bool) (*guard, error) {
	g := &guard{private: private}
	for _, host := range hosts {
		name := strings.TrimSuffix(strings.ToLower(host), ".")
		if rest := strings.TrimPrefix(name, "*."); rest == "" || strings.ContainsAny(rest, "*/:@ ") && net.ParseIP(rest) == nil {
			return nil, fmt.Errorf("allowed host: expected a name such as feeds.example.com or *.example.com, found %q", host)
		}
		g.hosts = append(g.hosts, name)
	}
	return g, nil
}

// client returns a client with the guard, also for redirections. A given client keeps its transport; then the guard checks the URLs only.
func (g *guard) client(given *http.Client) *http.Client {
	client := http.Client{}
	if given != nil {
		client = *given
	} else {
		client.Transport = g.transport()
	}
	follow := client.CheckRedirect
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		switch err := g.check(next.URL); {
		case err != nil:
			return err
		case follow != nil:
			return follow(next, via)
		case len(via) >= maxRedirects:
			return fmt.Errorf("stopped after %d redirects", maxRedirects)
		default:
			return nil
		}
	}
	return &client
}

// transport connects only to allowed addresses. A proxy would connect anywhere in our place, so it is used only if everything is allowed.
func (g *guard) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = dialer.DialContext
	if g.private {
		return transport
	}
	transport.Proxy, dialer.ControlContext = nil, g.control
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if written, err := netip.ParseAddrPort(address); err == nil && !isPublic(written.Addr()) {
			return nil, refusal("expected a public address, found one of this machine or of a private network")
		}
		return dialer.DialContext(ctx, network, address)
	}
	return transport
}

// errInside means that a name leads to an address that is not public. Users must see no difference to a missing name, or they could probe for inner
// names.
var errInside = errors.New("the name leads to an address of this machine or of a private network")

// control checks an address that is about to be connected to: the name has been resolved, and will not be again.
func (*guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	resolved, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(resolved.Addr()) {
		return fmt.Errorf("%w: %s", errInside, address)
	}
	return nil
}

func (g *guard) check(target *url.URL) error {
	if target.Scheme != "http" && target.Scheme != "https" {
		return refusal("the address is not allowed: expected http or https")
	}
	host := strings.TrimSuffix(strings.ToLower(target.Hostname()), ".") // its one spelling
	if len(g.hosts) > 0 && !slices.ContainsFunc(g.hosts, func(allowed string) bool {
		suffix, wild := strings.CutPrefix(allowed, "*")
		return host == allowed || wild && strings.HasSuffix(host, suffix) && len(host) > len(suffix)
	}) {
		return refusal("the address is not allowed: expected one of the allowed hosts")
	}
	return nil
}

// isPublic reports whether an address belongs to the open internet. In IPv6 that is 2000::/3, and 64:ff9b::/96 in networks without IPv4.
func isPublic(address netip.Addr) bool {
	address = address.Unmap()
	if translated.Contains(address) {
		bytes := address.As16()
		address = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	if address.Zone() != "" || !address.IsGlobalUnicast() || address.IsPrivate() {
		return false
	}
	if address.Is6() && !netip.MustParsePrefix("2000::/3").Contains(address) {
		return false
	}
	return !slices.ContainsFunc(reserved, func(prefix string) bool { return netip.MustParsePrefix(prefix).Contains(address) })
}

// translated are IPv6 prefixes whose last four bytes are an IPv4 address.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// reserved are the blocks that net/netip does not know to be special, of the registries of special-purpose addresses of the IANA.
var reserved = []string{
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
}
