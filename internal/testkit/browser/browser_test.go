package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func serve(t *testing.T, policy string, pages map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if policy != "" {
			w.Header().Set("Content-Security-Policy", policy)
		}
		fmt.Fprint(w, pages[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestATabNoticesWhatAnAttackDoes(t *testing.T) {
	long.Only(t)
	const strict = "default-src 'none'; script-src 'self'"
	tab := Open(t)
	tab.bad = true
	for _, c := range []struct{ name, policy, page, want string }{
		{"a script that runs", "", `<script>pwned('ran')</script>`, "ran"},
		{"a dialog", "", `<script>setTimeout(() => alert('hello'))</script>`, "dialog: hello"},
		{"a script that the policy stops", strict, `<script>pwned('ran')</script>`, "violation of script-src-elem"},
		{"a handler that the policy stops", strict, `<img src=x: onerror="pwned('ran')">`, "violation of script-src-attr"},
		{"another host", "", `<img src="http://127.0.0.2:1/x">`, "asked another host"},
		{"an exception", "", `<script>throw new Error('oops')</script>`, "oops"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab.t = t
			tab.Faults() // of the page before
			tab.Go(serve(t, c.policy, map[string]string{"/": c.page}))
			check.Eventually(t, c.want, func() bool { return strings.Contains(strings.Join(tab.Faults(), "\n"), c.want) })
		})
	}
}
