package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

func TestFeedsThatNeverEndHoldTheLimitOfTheirHostUntilTheyStall(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
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
		if started := q.Stats()["started"]; started != 3 {
			t.Errorf("expected two endless attempts and an honest one, found %d started", started)
		}
		up.stop()
		c.start("up", "--fetch", t.TempDir(), "--allow-private", "--stall", "50ms")
		q.AwaitEvent(model.EventFailure, 4)
		expectContains(t, c.do("model", "get", "e1"), "The server of the feed ")
	})
}
