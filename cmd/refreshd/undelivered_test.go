package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestWhatCouldNotBeDeliveredIsListedRequeuedAndDropped(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c, q := at(t, server), fixture.Live(t, server)
		keys := q.Store.Keys
		for _, recipient := range []string{"ops", "owners ann@example.com", "owners bob@example.com"} {
			channel, _, _ := strings.Cut(recipient, " ")
			entry := `{"at":"2026-11-21T07:00:00.000Z","channel":"` + channel + `","recipient":"` + recipient + `","reason":"HTTP 503\u001b[2J","tries":15,"notices":["{\"event\":\"disabled\",\"uid\":\"m1\"}"]}`
			if err := q.Redis.RPush(t.Context(), keys.Undelivered, entry).Err(); err != nil {
				t.Fatal(err)
			}
		}
		table := c.do("undelivered", "ls")
		expectContains(t, table, "RECIPIENT", "owners ann@example.com", "15", "HTTP 503 [2J")
		expectContains(t, c.do("undelivered", "ls", "-o", "json"), `"notices":[{"event":"disabled","uid":"m1"}]`, `"tries":15`)
		rows := strings.Split(strings.TrimSpace(table), "\n")
		id := strings.Fields(rows[2])[0]
		expectContains(t, c.do("undelivered", "requeue", id), "1 message\n")
		if waits := q.List(keys.Notices("owners ann@example.com")); len(waits) != 1 || q.Scores(keys.Recipients("owners"))["owners ann@example.com"] == 0 {
			t.Errorf("%v waits", waits)
		}
		expectContains(t, c.fail(exitFailed, "undelivered", "requeue", id), "expected the ID of an undelivered message")
		expectContains(t, c.fail(exitUsage, "undelivered", "drop"), "expected the ID of an undelivered message, or several, or --all, found neither")
		expectContains(t, c.do("undelivered", "drop", "--all"), "2 messages\n")
		if left := q.List(keys.Undelivered); len(left) != 0 {
			t.Errorf("%v are left", left)
		}
	})
}

func TestANotifierNeedsAFileOfRoutesThatCanBeRead(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		expectContains(t, c.fail(exitUsage, "notifier"), "--routes: expected a file, found nothing")
		path := filepath.Join(t.TempDir(), "routes.yaml")
		if err := os.WriteFile(path, []byte("channels:\n  ops: {list: ops}\nroutes:\n- {events: [circuit], channels: [ops]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		expectContains(t, c.fail(exitUsage, "notifier", "--routes", path), path+" line 4: routes[0].events: expected a list of circuit_closed")
		expectContains(t, c.fail(exitUsage, "up", "--routes", path), path+" line 4")
	})
}
