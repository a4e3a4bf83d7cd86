package main

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

var servedAt = regexp.MustCompile(`"address":"(http://[^"]+)","time":"[^"]*","message":"the dashboard is served"`)

// dashboardOf waits until a command serves a dashboard, and returns its address.
func (b *background) dashboardOf(t *testing.T) string {
	t.Helper()
	for {
		if found := servedAt.FindStringSubmatch(b.stderr.String()); found != nil {
			return found[1]
		}
		testkit.Await(t, b.logged, "the address of the dashboard")
	}
}

func TestTheDashboardIsServedUntilItIsToldToEnd(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		fixture.Live(t, server)
		c.in = "uid: a"
		c.do("model", "put", "-")
		served := c.start("dashboard", "--listen", "127.0.0.1:0", "--health", "127.0.0.1:0", "--read-only")
		address := served.dashboardOf(t)
		expectContains(t, read(t, address), "<h1>Overview</h1>", "read-only")
		expectContains(t, read(t, address+"q/bigtables/models"), `model?uid=a">a</a>`)
		if code := served.stop(); code != exitDone {
			t.Errorf("expected exit code 0, found %d\n%s", code, served.stderr)
		}
	})
}

func TestTheDashboardAsksForItsTokenWhereverThatStands(t *testing.T) {
	const token = "sixteen bytes or more"
	server := testkit.Miniredis(t)
	for name, set := range map[string]func(*console) []string{
		"a flag":     func(*console) []string { return []string{"--token", token} },
		"a file":     func(*console) []string { return []string{"--token-file", file(t, "token", token+"\n")} },
		"a variable": func(c *console) []string { c.env["REFRESHD_TOKEN"] = token; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := at(t, server)
			served := c.start(append([]string{"dashboard", "--listen", "127.0.0.1:0"}, set(c)...)...)
			address := served.dashboardOf(t)
			expectContains(t, read(t, address+"login"), "<h1>Sign in</h1>")
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"q/bigtables/", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+token)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Errorf("expected 200, found %s", response.Status)
			}
			served.stop()
		})
	}
}

func TestUpServesNoDashboardIfNoneIsWanted(t *testing.T) {
	t.Parallel()
	for _, off := range []string{"off", ""} {
		c := &console{t: t}
		up := c.start("up", "-o", "json", "--dashboard", off)
		expectContains(t, up.line(t, "redis"), `"dashboard":""`)
		up.stop()
	}
}
