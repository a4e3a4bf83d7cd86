package dashboard

import (
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
)

// maxForm is how large a form may be, in bytes. A policy may have 64 KiB.
const maxForm = 256 << 10

// policyOfContent lets a page load nothing but what this server sends. Pictures of attempts have a policy of their own.
const policyOfContent = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// policyOfDrawn also lets a page hold pictures that were drawn for it alone.
var policyOfDrawn = strings.Replace(policyOfContent, "img-src 'self'", "img-src 'self' data:", 1)

// guard stands before all pages: it sets the headers, refuses foreign names and sites, and asks who it is.
func (d *Dashboard) guard(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this form was sent by another site, and nothing was done", http.StatusForbidden)
	}))
	return d.known(protection.Handler(d.signedIn(next)))
}

func (d *Dashboard) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policyOfContent)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if !d.isHost(r.Host) {
			http.Error(w, "expected the name localhost, an address of loopback or a name of --host, found another", http.StatusMisdirectedRequest)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

// isHost reports whether the name by which a browser asks is one of this dashboard. A foreign name that leads to loopback is how a site
// reads what a browser can reach, and it may not.
func (d *Dashboard) isHost(name string) bool {
	listens, _, _ := net.SplitHostPort(d.config.Listen)
	if len(d.config.Hosts) == 0 && !isLoopback(listens) {
		return true
	}
	host, _, err := net.SplitHostPort(name)
	if err != nil {
		host = name
	}
	return isLoopback(host) || slices.ContainsFunc(d.config.Hosts, func(own string) bool { return strings.EqualFold(own, host) })
}

// sameText compares in a time that does not tell how much of the texts is equal.
func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
