package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

var servedAt = regexp.MustCompile(`"address":"(http://[^"]+)","time":"[^"]*","message":"the dashboard is served"`)

// dashboardOf waits until a command serves a dashboard, and returns its address.
func (b *background) dashboardOf(t *testing.T) string {
	t.Helper()
	for {
		if found := servedAt.FindStringSubmatch(b.stderr.String()); found != nil {
			return found[1]
		}
		check.Await(t, b.logged, "the address of the dashboard")
	}
}

func TestTheDashboardIsServedUntilItIsToldToEndAndAsksForItsTokenWhereverThatStands(t *testing.T) {
	const token = "sixteen bytes or more"
	server := testkit.Miniredis(t)
	at(t, server).put("uid: a")
	for _, flags := range []string{"--read-only --health 127.0.0.1:0", "--token " + strings.ReplaceAll(token, " ", "·"), "--token-file " + file(t, "token", token+"\n"), ""} {
		c := at(t, server)
		if flags == "" {
			c.env["REFRESHD_TOKEN"] = token
		}
		served := c.start(append([]string{"dashboard", "--listen", "127.0.0.1:0"}, line(strings.TrimSpace(flags))[:len(strings.Fields(flags))]...)...)
		address := served.dashboardOf(t)
		if strings.Contains(flags, "read-only") {
			expectContains(t, read(t, address), "<h1>Overview</h1>", "read-only")
			expectContains(t, read(t, address+"q/bigtables/models"), `model?uid=a">a</a>`)
			served.ends(t)
			continue
		}
		expectContains(t, read(t, address+"login"), "<h1>Sign in</h1>")
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"q/bigtables/", nil)
		must(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		must(t, err)
		if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
			t.Errorf("%s: expected 200, found %s", flags, response.Status)
		}
		served.ends(t)
	}
	for _, off := range []string{"off", ""} {
		up := (&console{t: t}).start("up", "-o", "json", "--dashboard", off)
		expectContains(t, up.line(t, "redis"), `"dashboard":""`)
		up.ends(t)
	}
}

// hook serves a webhook, and gives its address.
func hook(t *testing.T, got chan<- map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var message struct{ Data map[string]string }
		_ = json.Unmarshal(body, &message)
		got <- message.Data
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestUpTellsTheOwnerOfAFailureTheEndAndTheRecoveryAndItsProgramFindsNoSecret(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	t.Setenv("HOOK_KEY", secret)
	t.Setenv("OWN", "found")
	got := make(chan map[string]string, 10)
	well := filepath.Join(t.TempDir(), "well")
	routes := file(t, "routes.yaml", "channels:\n  ops: {webhook: "+hook(t, got)+", secret: {env: HOOK_KEY}, digest: none}\n"+
		"routes:\n- {events: [disabled, recovered, failing], models: tenant=t1, channels: [ops]}\n")
	models := file(t, "models.yaml", "uid: a\nlabels: {tenant: t1}\npolicy: {timeout: 1m, retries: [0], on_exhausted: give_up, failing_from: 1}\n")
	c := &console{t: t, env: map[string]string{"HOOK_KEY": secret}}
	up := c.start("up", "-o", "json", "--tick", "20ms", "--models", models, "--routes", routes, "--dashboard-url", "https://refreshd.example.com/", "--exec", "sh", "--", "-c", `echo "$OWN ${HOOK_KEY:-nothing}" >&2; test -e `+well)
	var hint struct{ Redis string }
	must(t, json.Unmarshal([]byte(up.line(t, "redis")), &hint))
	up.line(t, `"uid":"a"`)
	for _, want := range []string{"failing", "disabled"} {
		if told := check.Await(t, got, want); told["event"] != want || told["uid"] != "a" || !strings.Contains(told["reason"], "found nothing") || told["link"] != "https://refreshd.example.com/q/bigtables/model?uid=a" {
			t.Errorf("told %v, want %s", told, want)
		}
	}
	must(t, os.WriteFile(well, nil, 0o600))
	c.do("--redis", hint.Redis, "model", "enable", "a") // which starts a one-shot at once
	told := check.Await(t, got, "recovered")
	failIf(t, told["event"] != "recovered" || told["uid"] != "a", "told %v, want the recovery", told)
	up.ends(t)
}

func TestFeedsThatNeverEndHoldTheLimitOfTheirHostUntilTheyStall(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		feeds := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Host, "localhost") {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}))
		t.Cleanup(feeds.Close)
		c, q := at(t, server), fixture.Live(t, server)
		endless := strings.Replace(feeds.URL, "127.0.0.1", "localhost", 1)
		for _, uid := range []string{"e1", "e2", "e3", "e4"} {
			q.Command(`{"type":"put","uid":"` + uid + `","payload":{"input_url":"` + endless + `"},"policy":{"timeout":"none","retries":[],"limits":[{"key":"{host(input_url)}","running":2}]}}`)
		}
		up := c.start("up", "--fetch", t.TempDir(), "--allow-private", "--stall", "1h", "--grace", "0")
		q.AwaitEvent(model.EventStarted, 2)
		q.Command(`{"type":"put","uid":"honest","payload":{"input_url":"` + feeds.URL + `"}}`)
		q.AwaitEvent(model.EventSuccess, 1)
		started := q.Stats()["started"]
		failIf(t, started != 3, "expected two endless attempts and an honest one, found %d started", started)
		up.stop()
		c.start("up", "--fetch", t.TempDir(), "--allow-private", "--stall", "50ms")
		q.AwaitEvent(model.EventFailure, 4)
		expectContains(t, c.do("model", "get", "e1"), "The server of the feed ")
	})
}

func TestTheUsualPortOfTheDashboardGivesWayWhenItIsTakenAndOneThatIsGivenDoesNot(t *testing.T) {
	c := &console{t: t}
	first, second := c.start("up", "-o", "json"), c.start("up", "-o", "json")
	first.line(t, `"dashboard":"http`)
	second.line(t, `"dashboard":"http`)
	taken, other := first.dashboardOf(t), second.dashboardOf(t)
	failIf(t, taken == other, "expected two addresses, found %s twice", taken)
	theirs := strings.TrimPrefix(hook(t, nil), "http://")
	expectContains(t, c.fail(exitFailed, "up", "--dashboard", theirs), "--dashboard: listen: ", "address already in use")
	first.ends(t)
	second.ends(t)
}
