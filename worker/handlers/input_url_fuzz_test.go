package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

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
		if err != nil || request.URL.Scheme != "http" && request.URL.Scheme != "https" || request.URL.Hostname() == "" {
			t.Fatalf("%q is accepted and cannot be asked for: %v", address, err)
		}
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
