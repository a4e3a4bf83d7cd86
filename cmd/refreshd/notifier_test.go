package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// The first failure is told, then the final one, and at last the recovery: in order, from the worker's words to the webhook.
func TestUpTellsTheOwnerOfAFailureTheEndAndTheRecovery(t *testing.T) {
	t.Parallel()
	got := make(chan map[string]string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var message struct{ Data map[string]string }
		_ = json.Unmarshal(body, &message)
		got <- message.Data
	}))
	t.Cleanup(hook.Close)
	well := filepath.Join(t.TempDir(), "well")
	secret := file(t, "secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	routes := file(t, "routes.yaml", "channels:\n  ops: {webhook: "+hook.URL+", secret: {file: "+secret+"}, digest: none}\n"+
		"routes:\n- {events: [disabled, recovered, failing], models: tenant=t1, channels: [ops]}\n")
	models := file(t, "models.yaml", "uid: a\nlabels: {tenant: t1}\npolicy: {timeout: 1m, retries: [0], on_exhausted: give_up, failing_from: 1}\n")
	c := &console{t: t}
	up := c.start("up", "-o", "json", "--tick", "20ms", "--models", models, "--routes", routes, "--exec", "sh", "--", "-c", "test -e "+well)
	var hint struct{ Redis string }
	if err := json.Unmarshal([]byte(up.line(t, "redis")), &hint); err != nil {
		t.Fatal(err)
	}
	up.line(t, `"uid":"a"`)
	for _, want := range []string{"failing", "disabled"} {
		if told := testkit.Await(t, got, want); told["event"] != want || told["uid"] != "a" || told["reason"] == "" {
			t.Errorf("told %v, want %s", told, want)
		}
	}
	if err := os.WriteFile(well, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.do("--redis", hint.Redis, "model", "enable", "a") // which starts a one-shot at once
	if told := testkit.Await(t, got, "recovered"); told["event"] != "recovered" || told["uid"] != "a" {
		t.Errorf("told %v, want the recovery", told)
	}
	if code := up.stop(); code != exitDone {
		t.Errorf("it ended with %d: %s", code, up.stderr)
	}
}
